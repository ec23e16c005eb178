"""Reads the metadata of a GGUF file, which may be hostile.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The reader of the `gguf` package takes 2 s for a
vocabulary of 49,152 and trusts any array length. This one skips over arrays (80 ms) and rejects any length that exceeds
the file.
"""

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from tokendyno.backend.errors import InputError

ARCHITECTURES = {
    "llama": "llama",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "qwen3moe": "qwen3_moe",
    "phi3": "phi3",
    "gemma2": "gemma2",
    "gemma3": "gemma3_text",
    "gpt2": "gpt2",
    "gpt-oss": "gpt_oss",
}
"""GGUF name -> model_type, of those that transformers 5.22 loads from GGUF and that `families` has."""

KEYS = {
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.sliding_window": "sliding_window",
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "vocab_size": "vocab_size",
}

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9


@dataclass(frozen=True, slots=True)
class GgufFile:
    """A file's metadata. `config`: as in the model's config.json; `missing_bytes`: of its tensors, if truncated."""

    config: dict[str, Any]
    missing_bytes: int


class _Reader:
    def __init__(self, file: BinaryIO, size: int) -> None:
        self.file, self.size = file, size

    def bytes(self, count: int) -> bytes:
        self.require(count)
        return self.file.read(count)

    def scalar(self, code: int) -> Any:
        form = SCALARS[code]
        return struct.unpack(form, self.bytes(struct.calcsize(form)))[0]

    def text(self) -> str:
        return self.bytes(self.scalar(10)).decode("utf-8", "replace")

    def value(self, code: int) -> Any:
        """A number or text; an array is skipped and returned as ("array", length)."""
        if code == STRING:
            return self.text()
        if code != ARRAY:
            return self.scalar(code)
        kind, count = self.scalar(4), self.scalar(10)
        if kind in SCALARS:
            self.skip(count * struct.calcsize(SCALARS[kind]))
        elif kind == STRING:
            for _ in range(count):
                self.skip(self.scalar(10))
        else:
            raise ValueError("an array of arrays")
        return ("array", count)

    def skip(self, count: int) -> None:
        self.require(count)
        self.file.seek(count, 1)

    def require(self, count: int) -> None:
        """EOFError unless so many bytes are left."""
        if not 0 <= count <= self.size - self.file.tell():
            raise EOFError


def read_gguf(path: Path) -> GgufFile:
    """The metadata of one GGUF file. InputError if it cannot be read or is not a valid one."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise InputError(f"{path} is not a GGUF file. Give one, or the folder with the weights.")
            return _read(_Reader(file, size), path)
    except InputError:  # a ValueError too, but already worded
        raise
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}). Check the path and its permissions.") from None
    except (EOFError, ValueError, KeyError, struct.error, OverflowError):
        raise InputError(f"{path} is a damaged or truncated GGUF file. Download or copy it again.") from None


def _read(reader: _Reader, path: Path) -> GgufFile:
    version, tensors, pairs = reader.scalar(4), reader.scalar(10), reader.scalar(10)
    if version not in (2, 3):
        raise InputError(f"{path} is GGUF version {version}; only versions 2 and 3 are supported. Convert it again.")
    values: dict[str, Any] = {}
    for _ in range(pairs):
        key = reader.text()
        values[key] = reader.value(reader.scalar(4))
    sizes = dict[str, tuple[int, ...]]()
    last = 0
    for _ in range(tensors):
        name = reader.text()
        sizes[name] = tuple(reader.scalar(10) for _ in range(reader.scalar(4)))  # its dimensions
        kind, offset = reader.scalar(4), reader.scalar(10)
        last = max(last, offset + _tensor_bytes(kind, sizes[name]))
    align = values.get("general.alignment", 32)
    if not isinstance(align, int) or not 1 <= align <= 1 << 20:
        raise ValueError("alignment")
    start = -(-reader.file.tell() // align) * align
    config = _config(values, sizes, path)
    return GgufFile(config, max(0, start + last - reader.size))


def _tensor_bytes(kind: int, extents: tuple[int, ...]) -> int:
    """Bytes of a tensor; 0 for a block type that is not in the table, which makes the size check weaker."""
    per_block, block_bytes = BLOCKS.get(kind, (1, 0))
    return math.prod(extents) // per_block * block_bytes


BLOCKS = {  # GGML type -> elements and bytes per block; from GGML_QUANT_SIZES of gguf 0.19
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 20: (32, 18),
    23: (256, 136), 30: (1, 2), 39: (32, 17),
}  # fmt: skip


def _config(values: dict[str, Any], tensors: dict[str, tuple[int, ...]], path: Path) -> dict[str, Any]:
    """The metadata under the names that config.json uses."""
    name = values.get("general.architecture")
    if name not in ARCHITECTURES:
        raise InputError(
            f"{path}: GGUF files of architecture {name!r} are not supported. "
            f"Choose one of {', '.join(ARCHITECTURES)}, or the model's safetensors."
        )
    model_type = ARCHITECTURES[name]
    config: dict[str, Any] = {"model_type": model_type, "dtype": "float32"}
    for key, field in KEYS.items():
        value = values.get(f"{name}.{key}")
        if isinstance(value, int):
            config[field] = value
    tokens = values.get("tokenizer.ggml.tokens")
    if "vocab_size" not in config and isinstance(tokens, tuple):
        config["vocab_size"] = tokens[1]
    config["tie_word_embeddings"] = "output.weight" not in tensors
    return config
