"""Model folders: complete, truncated, incomplete, pickled; a damaged tokenizer.json is found before a worker is
started."""

import itertools
import json
import os
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import POCKET
from tokendyno.backend.errors import InputError
from tokendyno.backend.models import check_loadable, obstacle, resolve
from tokendyno.backend.models.files import folder as files
from tokendyno.backend.models.files.folder import INDEX, check_tokenizer, named_files

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 1,
    "hidden_size": 8,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "vocab_size": 10,
}


def safetensors(elements: int = 64, dtype: str = "BF16", itemsize: int = 2) -> bytes:
    """A complete file with one tensor."""
    end = elements * itemsize
    header = json.dumps(
        {"__metadata__": {"format": "pt"}, "w": {"dtype": dtype, "shape": [elements], "data_offsets": [0, end]}}
    )
    return struct.pack("<Q", len(header)) + header.encode() + bytes(end)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "tokenizer.json").write_text('{"model": {}}')
    return tmp_path


def shard(folder: Path, names: list[str]) -> None:
    """An index of these files."""
    index = {"weight_map": {f"w{i}": name for i, name in enumerate(names)}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def test_a_whole_folder_can_be_loaded_and_its_dtype_is_read_from_the_header(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(safetensors())
    facts = resolve(str(folder))
    assert facts.dtype == "bfloat16" and facts.packed_bytes == 128
    check_loadable(facts)


@pytest.mark.parametrize(
    ("files", "has_chat_template"),
    [
        ({}, True),  # nothing is known
        ({"tokenizer_config.json": "{}"}, False),
        ({"tokenizer_config.json": '{"chat_template": "{{ messages }}"}'}, True),
        ({"tokenizer_config.json": "{}", "chat_template.jinja": "{{ messages }}"}, True),
        ({"tokenizer_config.json": "{}", "chat_template.json": "{}"}, True),
        ({"tokenizer_config.json": "not JSON"}, True),
    ],
)
def test_a_tokenizer_without_a_chat_template_is_known_from_its_files(
    folder: Path, files: dict[str, str], has_chat_template: bool
) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)
    assert resolve(str(folder)).has_chat_template is has_chat_template
    assert resolve(f"random:{folder}").has_chat_template is False


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("{{ messages }}", ()),
        ("{% if enable_thinking %}{% endif %}", ("enable_thinking",)),
        ("{% if thinking is defined and thinking %}{% endif %}", ("thinking",)),
        ("{% if not thinking is defined %}{% set thinking = false %}{% endif %}", ("thinking",)),
        ("I am thinking. {{ messages[0].thinking }}{{ 'thinking' }}{# thinking #}", ()),
        ("{{ reasoning_effort }}", ("reasoning_effort",)),
    ],
)
def test_the_variables_of_a_template_are_known_beforehand(folder: Path, text: str, known: tuple[str, ...]) -> None:
    assert resolve(str(folder)).template_variables is None
    (folder / "chat_template.jinja").write_text(text)
    assert resolve(str(folder)).template_variables == known
    (folder / "chat_template.jinja").unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": text}))
    assert resolve(str(folder)).template_variables == known


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("{% for p in m.content %}{{ p.text }}{% endfor %}", True),
        ("{{ message.content[0]['text'] }}", True),
        ("{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{% endfor %}{% endif %}", False),
        ("{% for m in messages %}{{ m.content }}{% endfor %}", False),
    ],
)
def test_whether_a_template_takes_parts_alone_is_known_beforehand(folder: Path, text: str, parts: bool) -> None:
    (folder / "chat_template.jinja").write_text(text)
    assert resolve(str(folder)).template_parts is parts


def test_the_dtype_of_the_config_comes_first(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps(CONFIG | {"torch_dtype": "float16"}))
    (folder / "model.safetensors").write_bytes(safetensors())
    assert resolve(str(folder)).dtype == "float16"


def test_without_one_it_is_the_first_float_s_that_is_no_packed_one(folder: Path) -> None:
    """By name, as transformers takes it: here the most bytes are in float8, and the first tensor is whole numbers."""
    from transformers.modeling_utils import get_state_dict_dtype, load_state_dict

    sizes = {"z": ("F32", 4), "m": ("BF16", 2), "c": ("F8_E4M3", 64), "a": ("I32", 4)}
    ends = list(itertools.accumulate(size for _, size in sizes.values()))
    header = json.dumps(
        {
            name: {
                "dtype": dtype,
                "shape": [size // 4 or 1] if "32" in dtype else [64] if size == 64 else [1],
                "data_offsets": [end - size, end],
            }
            for (name, (dtype, size)), end in zip(sizes.items(), ends, strict=True)
        }
    ).encode()
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(ends[-1]))
    assert resolve(str(folder)).dtype == "bfloat16"
    assert str(get_state_dict_dtype(load_state_dict(path, map_location="meta"))) == "torch.bfloat16"


BESIDE = [
    ("hf_quant_config.json", {"quantization": {"quant_algo": "NVFP4"}}, "quant_algo: 'NVFP4'"),
    ("hf_quant_config.json", {"quantization": {"quant_algo": None, "kv_cache_quant_algo": "FP8"}}, ""),
    ("quantize_config.json", {"bits": 4, "group_size": 128}, "bits: 4"),
    ("quant_config.json", {"w_bit": 4, "zero_point": True}, "w_bit: 4"),
]


@pytest.mark.parametrize(("name", "said", "refused"), BESIDE)
def test_weights_that_a_file_beside_the_config_says_to_be_packed_are_refused(
    folder: Path, name: str, said: dict[str, Any], refused: str
) -> None:
    (folder / "model.safetensors").write_bytes(safetensors())
    (folder / name).write_text(json.dumps(said))
    if refused:
        with pytest.raises(InputError, match=f"{name} says that the weights are quantized .{refused}.*cannot load"):
            resolve(str(folder))
    (folder / "config.json").write_text(json.dumps(CONFIG | {"quantization_config": {"quant_method": "fp8"}}))
    assert resolve(str(folder)).quantization == "fp8"


def test_whole_shards_can_be_loaded(folder: Path) -> None:
    shard(folder, ["a.safetensors", "b.safetensors"])
    (folder / "a.safetensors").write_bytes(safetensors())
    (folder / "b.safetensors").write_bytes(safetensors())
    facts = resolve(str(folder))
    assert facts.packed_bytes == 256
    check_loadable(facts)


def two_shards(folder: Path, second: bytes | None) -> None:
    """An index of a whole shard and of one with these bytes, or of one that is not there."""
    shard(folder, ["a.safetensors", "b.safetensors"])
    (folder / "a.safetensors").write_bytes(safetensors())
    if second is not None:
        (folder / "b.safetensors").write_bytes(second)


def test_an_index_of_the_largest_models_is_read_within_a_bound(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DeepSeek-V3's has 8.9 MB and 91,991 weights."""
    shards = [f"model-{n:05d}-of-000163.safetensors" for n in range(163)]
    weights = {
        f"model.layers.{n % 61}.mlp.experts.{n}.down_proj.weight_scale_inv": shards[n % 163] for n in range(91_991)
    }
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 688586727753}, "weight_map": weights}, indent=4))
    assert named_files(folder / INDEX) == shards
    monkeypatch.setattr(files, "MAX_INDEX_BYTES", 8 << 20)
    with pytest.raises(InputError, match="is no index"):
        named_files(folder / INDEX)


Break = Callable[[Path], object]
BROKEN: list[tuple[str, Break, str]] = [
    ("truncated", lambda p: (p / "model.safetensors").write_bytes(safetensors()[:-1]), "complete safetensors"),
    (
        "more than its tensors",
        lambda p: (p / "model.safetensors").write_bytes(safetensors() + b"12"),
        "it has .* bytes, and .* by its header",
    ),
    ("empty", lambda p: (p / "model.safetensors").write_bytes(b""), "truncated"),
    ("no JSON", lambda p: (p / "model.safetensors").write_bytes(struct.pack("<Q", 4) + b"{{{{"), "invalid"),
    ("an LFS pointer", lambda p: (p / "model.safetensors").write_text("version https://git-lfs..."), "truncated"),
    ("an empty shard", lambda p: two_shards(p, b""), r"b\.safetensors is not a complete.*truncated"),
    ("a shard cut in its header", lambda p: two_shards(p, safetensors()[:20]), r"b\.safetensors.*truncated"),
    ("one of two shards missing", lambda p: two_shards(p, None), "1 of 2 weight files are missing .*first b"),
    ("a shard outside", lambda p: shard(p, ["../../etc/passwd.safetensors"]), "not in that folder"),
    ("a pickle shard", lambda p: shard(p, ["a.bin"]), "not in that folder"),
    ("a nested index", lambda p: (p / INDEX).write_text('{"weight_map": {"a": {"b": "c"}}}'), "is no index"),
    ("an empty map", lambda p: (p / INDEX).write_text('{"weight_map": {}}'), "names no weight files"),
    ("a broken index", lambda p: (p / "model.safetensors.index.json").write_text("{"), "is no index"),
]


@pytest.mark.parametrize(("name", "damage", "said"), BROKEN, ids=[name for name, _, _ in BROKEN])
def test_broken_weights_still_give_facts_but_cannot_be_loaded(
    folder: Path, name: str, damage: Break, said: str
) -> None:
    damage(folder)
    facts = resolve(str(folder))
    assert facts.layers == 1 and facts.packed_bytes is None
    with pytest.raises(InputError, match=said):
        check_loadable(facts)


def test_files_without_a_tensor_are_no_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"\2" + bytes(7) + b"{}")
    with pytest.raises(InputError, match="holds no weights at all"):
        check_loadable(resolve(str(folder)))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.ckpt", "pytorch_model-00001-of-00002.bin"])
def test_a_pickle_only_checkpoint_is_refused_with_the_way_out(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"\x80\x04")
    with pytest.raises(InputError, match=r"pickle.*save_pretrained"):
        resolve(str(folder))


def test_a_pickle_beside_safetensors_is_left_alone(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(safetensors())
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04")
    check_loadable(resolve(str(folder)))


def test_training_leftovers_are_no_checkpoint(folder: Path) -> None:
    (folder / "training_args.bin").write_bytes(b"\x80\x04")
    assert resolve(str(folder)).layers == 1


def test_a_folder_without_config_names_what_lies_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no config\.json"):
        resolve(str(tmp_path))
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    with pytest.raises(InputError, match=r"Give the GGUF file itself: .*m\.gguf"):
        resolve(str(tmp_path))


def test_a_folder_that_went_away_is_reported(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(safetensors())
    facts = resolve(str(folder))
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    with pytest.raises(InputError, match="no longer exists"):
        check_loadable(facts)


def test_a_huge_config_is_refused_quickly(folder: Path) -> None:
    with (folder / "config.json").open("r+b") as file:
        file.truncate(100 << 20)
    with pytest.raises(InputError, match="more than 4,194,304 bytes"):
        resolve(str(folder))


HOSTILE_HEADERS: dict[str, bytes] = {
    "60,000 dimensions": json.dumps(
        {"w": {"dtype": "F32", "shape": [10**15] * 60_000, "data_offsets": [0, 0]}}
    ).encode(),
    "a size of 10^18": json.dumps({"w": {"dtype": "F32", "shape": [10**18], "data_offsets": [0, 0]}}).encode(),
    "a negative size": json.dumps({"w": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 0]}}).encode(),
    "offsets that run back": json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [8, 4]}}).encode(),
    "a number of 10^5 digits": b'{"w": {"dtype": "F32", "shape": [' + b"9" * 100_000 + b'], "data_offsets": [0, 0]}}',
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_HEADERS)
def test_a_hostile_header_costs_a_second_and_one_sentence(name: str, folder: Path) -> None:
    header = HOSTILE_HEADERS[name]
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    began = time.process_time()
    with pytest.raises(InputError, match="not a complete safetensors file"):
        check_loadable(resolve(str(folder)))
    assert time.process_time() - began < 1


def test_a_sparse_header_of_a_file_of_20_gb_is_not_read(folder: Path) -> None:
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", 19 * 10**9))
        file.truncate(20 * 10**9)
    began = time.process_time()
    with pytest.raises(InputError, match="not a complete safetensors file"):
        check_loadable(resolve(str(folder)))
    assert time.process_time() - began < 1


WHOLE = (POCKET / "tokenizer.json").read_bytes()
CUT, EMPTY = "is cut off, or no JSON object", 'has no vocabulary (no "model")'

DAMAGED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", CUT),
    "cut": (WHOLE[: len(WHOLE) // 2], CUT),
    "zeros": (WHOLE[:1000] + bytes(len(WHOLE) - 1000), CUT),
    "an LFS pointer": (b"version https://git-lfs.github.com/spec/v1", CUT),
    "nested": (b"[" * 200_000, CUT),
    "no model": (b'{"model": null}', EMPTY),
}


def with_file(folder: Path, name: str, data: bytes) -> Path:
    """Pocket, with this in that file."""
    folder.mkdir(exist_ok=True)
    for file in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(POCKET / file, folder)
    (folder / name).write_bytes(data)
    return folder


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_vocabulary_is_refused_with_what_to_do(tmp_path: Path, name: str) -> None:
    data, what = DAMAGED[name]
    folder = with_file(tmp_path / "m", "tokenizer.json", data)
    advice = "Copy the tokenizer's files of the original model again: save_pretrained of a tokenizer writes them."
    said = obstacle(resolve(str(folder)), offline=True)
    assert said == f"The tokenizer cannot be read: {folder / 'tokenizer.json'} {what}. {advice}"
    assert obstacle(resolve(f"random:{folder}"), offline=True) == "", "random weights need no tokenizer"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_transformers_fails_on_what_is_refused(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    for name, (data, _) in DAMAGED.items():
        with pytest.raises(Exception):  # noqa: B017, whatever its libraries raise
            AutoTokenizer.from_pretrained(with_file(tmp_path / name, "tokenizer.json", data))


def test_a_file_is_read_again_once_it_has_changed_and_within_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = with_file(tmp_path / "m", "tokenizer.json", WHOLE[:-2])
    with pytest.raises(InputError, match="is cut off"):
        check_tokenizer(folder)
    (folder / "tokenizer.json").write_bytes(WHOLE)
    check_tokenizer(folder)
    monkeypatch.setattr(files, "MAX_TOKENIZER_BYTES", 1000)
    (folder / "tokenizer.json").touch()
    with pytest.raises(InputError, match="has more than 1,000 bytes, more than any tokenizer's"):
        check_tokenizer(folder)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["tokenizer_config.json", "chat_template.jinja", "generation_config.json"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path, name: str) -> None:
    folder = with_file(tmp_path / "m", "README.md", b"")
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    assert obstacle(resolve(str(folder)), offline=True) == ""


@pytest.mark.timeout(20)
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to(path), lambda path: None])
def test_a_vocabulary_that_is_no_file_is_none(tmp_path: Path, make: Callable[[Path], object]) -> None:
    folder = with_file(tmp_path / "m", "README.md", b"")
    (folder / "tokenizer.json").unlink()
    make(folder / "tokenizer.json")
    assert "has no tokenizer (no tokenizer.json)" in obstacle(resolve(str(folder)), offline=True)
