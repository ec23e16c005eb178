"""Reads the header of a safetensors file, without the library, which imports numpy.

Format: the header's length in 8 bytes (little endian), a JSON header, then the tensors' bytes
(https://github.com/huggingface/safetensors#format).
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from tokendyno.backend.errors import UNDECODABLE, InputError

MAX_HEADER_BYTES = 25_000_000
"""The format allows 100 MB. DeepSeek-V3 needs 13 MB if all of its 91,000 tensors were in one file."""

TORCH_NAMES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}

Extent = Annotated[int, msgspec.Meta(ge=0, le=1 << 48)]


class _Tensor(msgspec.Struct):
    dtype: str
    shape: Annotated[list[Extent], msgspec.Meta(max_length=16)]
    data_offsets: tuple[Extent, Extent]


@dataclass(frozen=True, slots=True)
class Header:
    """Elements and bytes of all tensors of a file, and the torch dtype that transformers takes for the file's: of its
    first tensor by name that is a float of at least 16 bits (`get_state_dict_dtype` in modeling_utils.py of 5.22)."""

    elements: int
    tensor_bytes: int
    dtype: str | None


def read_header(path: Path) -> Header:
    """The header, checked against the file's size. InputError for a damaged or truncated file."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > min(size - 8, MAX_HEADER_BYTES):
                raise _broken(path, "its header is truncated")
            raw = msgspec.json.decode(file.read(length), type=dict[str, msgspec.Raw])
        raw.pop("__metadata__", None)
        found = [msgspec.json.decode(raw[name], type=_Tensor) for name in sorted(raw)]
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}). Check its permissions.") from None
    except UNDECODABLE:
        raise _broken(path, "its header is invalid") from None
    whole = 8 + length + max((one.data_offsets[1] for one in found), default=0)
    if size != whole:
        raise _broken(path, f"it has {size:,} bytes, and {whole:,} by its header")
    dtype = next((TORCH_NAMES[one.dtype] for one in found if one.dtype in TORCH_NAMES), None)
    return Header(sum(math.prod(one.shape) for one in found), size - 8 - length, dtype)


def _broken(path: Path, reason: str) -> InputError:
    return InputError(f"{path} is not a complete safetensors file ({reason}). Download or copy it again.")
