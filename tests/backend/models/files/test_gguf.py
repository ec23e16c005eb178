"""Hand-written GGUF metadata, valid and invalid."""

import struct
import time
from pathlib import Path
from typing import Any

import pytest

from tokendyno.backend.errors import InputError
from tokendyno.backend.models import check_loadable, resolve

U32, F32, TEXT, ARRAY, U64 = 4, 6, 8, 9, 10


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def pair(key: str, value: Any) -> bytes:
    if isinstance(value, str):
        return text(key) + struct.pack("<I", TEXT) + text(value)
    if isinstance(value, list):
        return text(key) + struct.pack("<IIQ", ARRAY, TEXT, len(value)) + b"".join(map(text, value))
    if isinstance(value, float):
        return text(key) + struct.pack("<If", F32, value)
    return text(key) + struct.pack("<II", U32, value)


LLAMA: dict[str, Any] = {
    "general.architecture": "llama",
    "general.name": "tiny",
    "llama.block_count": 2,
    "llama.context_length": 256,
    "llama.embedding_length": 64,
    "llama.feed_forward_length": 96,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.rope.freq_base": 1e4,
    "tokenizer.ggml.tokens": [f"t{i}" for i in range(100)],
}


def gguf(values: dict[str, Any], tensors: dict[str, int] | None = None) -> bytes:
    """A complete file with float32 vectors of these lengths as tensors."""
    tensors = {"token_embd.weight": 16} if tensors is None else tensors
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    head += b"".join(pair(key, value) for key, value in values.items())
    offset = 0
    for name, count in tensors.items():
        head += text(name) + struct.pack("<IQIQ", 1, count, 0, offset)
        offset += -(-count * 4 // 32) * 32
    return head + bytes(-len(head) % 32) + bytes(offset)


def test_a_whole_file_is_read_and_can_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(gguf(LLAMA))
    facts = resolve(str(path))
    assert (facts.source.kind, facts.source.path, facts.label) == ("gguf", str(path), "tiny.gguf")
    assert (facts.layers, facts.hidden, facts.heads, facts.kv_heads, facts.vocab) == (2, 64, 4, 2, 100)
    assert facts.max_positions == 256 and facts.tied
    assert facts.dtype == "float32" and "dequantized" in facts.note
    check_loadable(facts)
    assert resolve("tiny.gguf", tmp_path).source == facts.source


def test_an_output_matrix_of_its_own_means_that_nothing_is_tied(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(gguf(LLAMA, {"token_embd.weight": 16, "output.weight": 16}))
    assert not resolve(str(tmp_path / "a.gguf")).tied


def test_a_file_cut_off_in_its_tensors_gives_facts_but_cannot_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(gguf(LLAMA)[:-8])
    facts = resolve(str(path))
    with pytest.raises(InputError, match="8 bytes are missing"):
        check_loadable(facts)


@pytest.mark.parametrize("size", [0, 3, 4, 10, 24, 40, 200, 600])
def test_a_file_cut_off_in_its_header_is_refused(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(gguf(LLAMA)[:size])
    with pytest.raises(InputError, match="GGUF file"):
        resolve(str(path))


BOMBS = {
    "array of 10**18 texts": text("a") + struct.pack("<IIQ", ARRAY, TEXT, 10**18),
    "array of 10**18 numbers": text("a") + struct.pack("<IIQ", ARRAY, U64, 10**18),
    "array of arrays": text("a") + struct.pack("<IIQ", ARRAY, ARRAY, 10**18),
    "text of 10**18 bytes": struct.pack("<Q", 10**18),
    "unknown type": text("a") + struct.pack("<I", 99),
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_file_that_promises_too_much_is_refused_at_once(tmp_path: Path, bomb: bytes) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + bomb + bytes(64))
    began = time.process_time()
    with pytest.raises(InputError, match="damaged or truncated GGUF file"):
        resolve(str(path))
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"general.architecture": "mamba"}, "architecture 'mamba'"),
        ({"general.architecture": 7}, "architecture 7"),
        ({"llama.block_count": 0}, "num_hidden_layers"),
        ({"general.alignment": 0}, "damaged or truncated GGUF file"),
    ],
)
def test_metadata_that_make_no_sense_are_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(gguf(LLAMA | change))
    with pytest.raises(InputError, match=said):
        resolve(str(path))


def test_counts_beyond_reason_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 1 << 60) + bytes(64))
    with pytest.raises(InputError, match="GGUF"):
        resolve(str(path))


def test_the_block_sizes_are_those_of_the_gguf_package() -> None:
    constants = pytest.importorskip("gguf.constants")
    from tokendyno.backend.models.files.gguf import BLOCKS

    real = {int(kind): size for kind, size in constants.GGML_QUANT_SIZES.items()}
    assert {kind: real[kind] for kind in BLOCKS} == BLOCKS
