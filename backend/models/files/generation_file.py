"""The ids of special tokens in generation_config.json, which count before those of config.json.

transformers 5.22 checks none of them when it reads the file; a run fails later, on the first tensor of them. Where the
file is no JSON, transformers goes by config.json.
"""

import json
from pathlib import Path
from typing import Any

from tokendyno.backend.errors import InputError
from tokendyno.backend.models.files.config_fields import MAX_CONFIG_BYTES, show

NAME = "generation_config.json"
MAX_ID = (1 << 63) - 1
"""torch keeps ids in 64 bits."""


def check_generation(folder: Path) -> None:
    """InputError if there is such a file, and no text can be generated with the ids in it."""
    path = folder / NAME
    if not path.is_file():
        return
    try:
        with path.open("rb") as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}). Check its permissions.") from None
    if len(data) > MAX_CONFIG_BYTES:
        raise _odd(path, f"has more than {MAX_CONFIG_BYTES:,} bytes, more than any model's")
    try:
        found = json.loads(data.decode())
    except ValueError:
        return
    except RecursionError:
        found = None
    if not isinstance(found, dict):
        raise _odd(path, "is not a JSON object")
    eos, pad = found.get("eos_token_id"), found.get("pad_token_id")
    if not _ends(eos):
        raise _wrong(path, "eos_token_id", eos, "the id of a token, a list of ids or null")
    if not (pad is None or _is_id(pad)):
        raise _wrong(path, "pad_token_id", pad, "the id of a token or null")


def _ends(value: Any) -> bool:
    """Whether no run fails on it. Empty values end no text, as null does."""
    if isinstance(value, list):
        return all(_is_id(one) or isinstance(one, list) for one in value)
    return not isinstance(value, float) and (not value or _is_id(value))


def _is_id(value: Any) -> bool:
    return isinstance(value, int | float) and -MAX_ID - 1 <= value <= MAX_ID


def _wrong(path: Path, name: str, value: Any, needed: str) -> InputError:
    return InputError(
        f"{path}: {name!r} is {show(value)}; {needed} is needed. Correct the file, or remove it: config.json has the "
        "ids, too."
    )


def _odd(path: Path, what: str) -> InputError:
    return InputError(f"{path} {what}. Copy it again from the original checkpoint, or remove it.")
