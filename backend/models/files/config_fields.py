"""Reads a config.json that may be wrong or hostile: every value is checked before it is used.

JSON is read as `PreTrainedConfig._dict_from_json_file` of transformers 5.22 reads it: by Python's own reader, which
takes `Infinity`, `-Infinity` and `NaN`, and with the tags that transformers 5 writes in their place.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tokendyno.backend.errors import InputError

MAX_CONFIG_BYTES = 4 << 20  # the largest in use, with label tables, have a few hundred kB

TAG = "__float__"
TAGGED = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
"""What `{"__float__": "Infinity"}` and the like stand for: these numbers are no JSON."""

MAX_FIELD = {  # far beyond any model; a hostile file could ask for a loop over 10**9 layers
    "layers": 4_096,
    "width": 1 << 24,
    "heads": 1 << 16,
    "vocab": 1 << 26,
    "positions": 1 << 31,
    "experts": 1 << 16,
}


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file. InputError if it cannot be read, is too large, or is not a JSON object."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}). Check the path and its permissions.") from None
    return parse_json(data, str(path))


def parse_json(data: bytes, where: str) -> dict[str, Any]:
    """The JSON object in `data`. InputError, with `where` as its name, if it is too large or not a JSON object."""
    if len(data) > MAX_CONFIG_BYTES:
        raise InputError(
            f"{where} has more than {MAX_CONFIG_BYTES:,} bytes, more than any model's config. "
            "Use the config.json of the original checkpoint."
        )
    try:
        value = decode_config(data.decode())
    except (ValueError, RecursionError):
        raise InputError(f"{where} is not valid JSON. Copy it again from the original checkpoint.") from None
    if not isinstance(value, dict):
        raise InputError(f"{where} is not a JSON object. Copy it again from the original checkpoint.")
    return value


def decode_config(text: str) -> Any:
    """The value of the text of a config.json. ValueError or RecursionError if it has none."""
    return _untagged(json.loads(text))


def encode_config(config: dict[str, Any]) -> str:
    """A config as JSON that every reader takes, tags in place of numbers that are none; equal configs, equal texts."""
    return json.dumps(_tagged(config), sort_keys=True, allow_nan=False)


def _untagged(value: Any) -> Any:
    match value:
        case {"__float__": str(word)} if len(value) == 1:
            return TAGGED.get(word, value)
        case dict():
            return {name: _untagged(item) for name, item in value.items()}
        case list():
            return [_untagged(item) for item in value]
    return value


def _tagged(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return {TAG: "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}
        case dict():
            return {name: _tagged(item) for name, item in value.items()}
        case list():
            return [_tagged(item) for item in value]
    return value


class Fields:
    """Typed, bounded access to one config; `where` names it in errors."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self._values = values
        self.where = where

    def has(self, *names: str) -> bool:
        return any(self._values.get(name) is not None for name in names)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def raw(self, *names: str) -> Any:
        """The first of these that is given and not null; None otherwise."""
        return next((self._values[name] for name in names if self._values.get(name) is not None), None)

    def count(self, names: tuple[str, ...], default: int | None, limit: str, least: int = 1) -> int:
        """An integer from `least` to the limit of its kind (a key of MAX_FIELD). InputError otherwise."""
        value = self.raw(*names)
        if value is None:
            value = default
        if value is None:
            raise InputError(
                f"{self.where} has no {names[0]!r}, which every model of its kind has. "
                "Copy it again from the original checkpoint."
            )
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_FIELD[limit]:
            raise InputError(
                f"{self.where}: {names[0]!r} is {show(value)}; a whole number from {least:,} to "
                f"{MAX_FIELD[limit]:,} is needed. Copy it again from the original checkpoint."
            )
        return value

    def flag(self, name: str, default: bool) -> bool:
        value = self.raw(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise InputError(f"{self.where}: {name!r} is {show(value)}; true or false is needed. Correct the file.")
        return value

    def text(self, *names: str) -> str | None:
        value = self.raw(*names)
        if value is None:
            return None
        if not isinstance(value, str) or not 0 < len(value) <= 100 or not value.isprintable():
            raise InputError(f"{self.where}: {names[0]!r} is {show(value)}; a name is needed. Correct the file.")
        return value

    def part(self, name: str) -> "Fields | None":
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise InputError(f"{self.where}: {name!r} is {show(value)}; an object is needed. Correct the file.")
        return Fields(value, f"{self.where}: {name}")

    def items(self, name: str, most: int) -> list[Any] | None:
        """A list of at most `most` items; None if it is not given."""
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) > most:
            raise InputError(f"{self.where}: {name!r} must be a list of at most {most:,} items. Correct the file.")
        return value


def show(value: object) -> str:
    """A value shortened for an error message."""
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**18 else "a number of more than 18 digits"
    return text if len(text) <= 60 else text[:57] + "..."
