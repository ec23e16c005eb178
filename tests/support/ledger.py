"""What rows of a ledger say when nothing is wrong."""

from collections.abc import Iterable, Mapping
from typing import Any

SOUND = ("verified", "off", "not_applicable", "unchecked")


def unsound(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows of a document's ledger that are amber or red."""
    return [row for row in rows if row["status"] not in SOUND]
