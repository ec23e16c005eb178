"""Reads model.safetensors.index.json, which names the file of each weight: of all files of a model but its weights the
largest, and the only one of which a few names are all that is wanted.

DeepSeek-V3's has 9 MB and 91,991 weights. It is read in place: a text of 32 MiB that names millions of weights becomes
no dictionary.
"""

import re
from pathlib import Path

import msgspec

from tokendyno.backend.errors import InputError
from tokendyno.backend.models.files.config_fields import show

MAX_INDEX_BYTES = 32 << 20
MAX_WEIGHTS = 1 << 20
MAX_FILES = 1 << 14

_WEIGHT = re.compile(rb'\s*"(?:[^"\\]|\\.)*+"\s*+:\s*+("(?:[^"\\]|\\.)*+"|[^,}]{1,80})\s*+([,}])', re.DOTALL)


_NO_JSON = re.compile(rb'"(?:[^"\\]|\\.)*+"|-?Infinity|NaN', re.DOTALL)
"""Texts, which stay as they are, and numbers that Python's reader takes, with which transformers reads an index."""


class _Index(msgspec.Struct):
    weight_map: msgspec.Raw = msgspec.Raw(b"null")


def named_files(path: Path) -> list[str]:
    """The weight files that an index names, in order of their names. InputError if it cannot be read, is too large, or
    names anything but safetensors files beside it."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_INDEX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}). Check the path and its permissions.") from None
    if len(data) > MAX_INDEX_BYTES:
        raise _odd(path, f"has more than {MAX_INDEX_BYTES:,} bytes, more than any model's")
    try:
        try:
            weights = bytes(msgspec.json.decode(data, type=_Index).weight_map)
        except msgspec.DecodeError:
            data = _NO_JSON.sub(lambda found: found[0] if found[0][:1] == b'"' else b"null", data)
            weights = bytes(msgspec.json.decode(data, type=_Index).weight_map)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise InputError(f"{path} is not valid JSON. Copy it again from the original checkpoint.") from None
    names = [_parsed(text) for text in _values(path, weights)]
    for name in names:
        if not isinstance(name, str) or not name.endswith(".safetensors") or Path(name).name != name:
            raise InputError(f"{path} names {show(name)}, which is not in that folder. Download it again.")
    return sorted({str(name) for name in names})


def _values(path: Path, weights: bytes) -> set[bytes]:
    """The different values of a JSON object, as they stand in it."""
    at, found, count = 1, set[bytes](), 0
    while weights[:1] == b"{" and (pair := _WEIGHT.match(weights, at)):
        found.add(pair[1])
        count += 1
        if count > MAX_WEIGHTS or len(found) > MAX_FILES:
            raise _odd(path, f"names more than {MAX_WEIGHTS:,} weights or {MAX_FILES:,} files, more than any model has")
        if pair[2] == b"}":
            return found
        at = pair.end()
    raise _odd(path, "names no weight files")


def _parsed(text: bytes) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError):  # the beginning of something nested, or half of a character
        return text.decode("utf-8", "replace")


def _odd(path: Path, what: str) -> InputError:
    return InputError(f"{path} {what}. Download or copy it again.")
