"""Reads the header of a safetensors file and checks that its tensors fill the file, one after the other.

Format: the header's length in 8 bytes (little endian), a JSON header, then the tensors' bytes
(https://github.com/huggingface/safetensors#format).
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from tokendyno.backend.errors import InputError

MAX_HEADER_BYTES = 25_000_000
"""The format allows 100 MB. DeepSeek-V3 needs 13 MB if all of its 91,000 tensors were in one file."""

MAX_DIMENSIONS = 16
MAX_EXTENT = 1 << 48
MAX_TENSOR_JSON = 4096
"""Bytes of a tensor's entry in the header; real ones have about 100."""

TORCH_NAMES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}


class _Tensor(msgspec.Struct):
    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


_DECODE = msgspec.json.Decoder(_Tensor).decode


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
            if size < 8 or length > min(size - 8, MAX_HEADER_BYTES):
                raise _broken(path, "its header is truncated")
            data = file.read(length)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}). Check its permissions.") from None
    try:
        raw = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        raw.pop("__metadata__", None)
        found = _summary(raw, path)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise _broken(path, "its header is invalid") from None
    whole = 8 + length + found.end
    if size < whole:
        raise _broken(path, f"it has {size:,} of {whole:,} bytes")
    if size > whole:
        raise _broken(path, f"it goes on for {size - whole:,} bytes behind its tensors")
    return Header(found.elements, found.tensor_bytes, found.dtype)


class _Summary(NamedTuple):
    elements: int
    tensor_bytes: int
    dtype: str | None
    end: int


def _summary(raw: dict[str, msgspec.Raw], path: Path) -> _Summary:
    """Adds up the tensors, one at a time: all of a hostile header together take ten times its bytes."""
    elements, total, places = 0, 0, list[tuple[int, int]]()
    first, dtype = "", None
    for name, item in raw.items():
        if len(memoryview(item)) > MAX_TENSOR_JSON:
            raise _broken(path, "the description of a tensor is too long")
        tensor = _DECODE(item)
        _check(tensor, path)
        size = tensor.data_offsets[1] - tensor.data_offsets[0]
        elements, total = elements + math.prod(tensor.shape), total + size
        places.append(tensor.data_offsets)
        if tensor.dtype in TORCH_NAMES and (dtype is None or name < first):
            first, dtype = name, TORCH_NAMES[tensor.dtype]
    end = 0
    for begin, after in sorted(places):
        if begin != end:
            raise _broken(
                path, f"its tensors {'overlap' if begin < end else 'leave a hole'} at byte {min(begin, end):,}"
            )
        end = after
    return _Summary(elements, total, dtype, end)


def _check(tensor: _Tensor, path: Path) -> None:
    """InputError for a tensor that no model has: the product of 60,000 extents alone takes minutes."""
    if len(tensor.shape) > MAX_DIMENSIONS:
        raise _broken(path, f"a tensor has {len(tensor.shape):,} dimensions")
    begin, end = tensor.data_offsets
    if not all(0 <= extent <= MAX_EXTENT for extent in tensor.shape) or not 0 <= begin <= end <= MAX_EXTENT:
        raise _broken(path, "a tensor has an impossible size")


def _broken(path: Path, reason: str) -> InputError:
    return InputError(f"{path} is not a complete safetensors file ({reason}). Download or copy it again.")
