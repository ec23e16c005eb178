"""Reads a TOML file strictly into a struct that forbids unknown fields: a misspelled key is never a silent default."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tokendyno.backend.errors import InputError

T = TypeVar("T", bound=msgspec.Struct)

MAX_BYTES = 1 << 20
"""Fifty times the largest that comes with tokendyno."""


def read_toml(path: Path, kind: type[T]) -> T:
    """The file as `kind`. InputError names the file and what is wrong in it."""
    try:
        return msgspec.convert(parse_toml(path, read_text(path)), kind, strict=True)
    except msgspec.ValidationError as error:
        raise invalid(path, f"{error}.") from None


def read_text(path: Path) -> str:
    """A file as text. InputError names it if it cannot be read, is too large or is not UTF-8."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise invalid(path, f"it has more than {MAX_BYTES:,} bytes.")
        return data.decode("utf-8")
    except OSError as error:
        raise invalid(path, f"it cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise invalid(path, "it is not UTF-8 text.") from None


def parse_toml(path: Path, text: str) -> dict[str, Any]:
    """The table in a text of this file. InputError names the file if it is not TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise invalid(path, f"it is not valid TOML: {error}.") from None
    except RecursionError:
        raise invalid(path, "it is nested too deeply.") from None


def invalid(path: Path, reason: object) -> InputError:
    """The InputError for a file with wrong content. `reason` is a sentence, full stop included."""
    return InputError(f"{path} cannot be used: {reason} Correct or remove it; if it came with tokendyno, reinstall.")


def refuse_duplicates(path: Path, names: Iterable[str]) -> None:
    """InputError if a name occurs twice in a file."""
    seen = set[str]()
    for name in names:
        if name in seen:
            raise invalid(path, f"the name {name!r} occurs twice.")
        seen.add(name)
