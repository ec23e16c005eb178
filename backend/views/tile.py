"""A figure in words: three significant digits, a unit beside each, "n/a" where nothing is known."""

import msgspec

from tokendyno.backend.units import bytes_text, seconds_text, three


class Tile(msgspec.Struct, frozen=True):
    """A figure with its unit, and a note in small print."""

    key: str
    label: str
    value: str
    unit: str
    note: str = ""


Pair = tuple[str, str]
"""A value and its unit."""


def tile(key: str, label: str, pair: Pair | None, note: str = "") -> Tile:
    value, unit = pair or ("n/a", "")
    return Tile(key, label, value, unit, note)


def of_unit(value: float | None, unit: str) -> Pair | None:
    return None if value is None else (three(value), unit)


def in_seconds(value: float | None) -> Pair | None:
    return None if value is None else seconds_text(value)


def joined(seconds: float) -> str:
    return " ".join(seconds_text(seconds))


def in_bytes(value: float | None) -> Pair | None:
    return None if value is None else bytes_text(value)


def in_percent(share: float | None) -> Pair | None:
    return None if share is None else (three(100 * share), "%")
