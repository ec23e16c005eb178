"""Runs that come with tokendyno, and runs that are taken from files into a history."""

import logging
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from backend.errors import InputError
from backend.paths import PRESETS
from backend.recordings.files import ENDING, read_recording
from backend.runs.records import Created, Origin, Record

log = logging.getLogger("tokendyno")

SHIPPED = PRESETS / "recordings"
PREFIX = "recorded-"
"""Of the ids of shipped runs: the name of the file follows."""

ID_BYTES = 12


class Keeps(Protocol):
    """Where imported runs go (`backend.runs.store.Store`)."""

    def add(self, run_id: str, record: Record) -> None: ...
    def flush(self) -> None: ...
    def pin(self, run_id: str, pinned: bool) -> None: ...


def shipped_names() -> list[str]:
    """Names of the recordings that come with tokendyno."""
    return sorted(path.stem for path in SHIPPED.glob(f"*{ENDING}"))


def shipped_id(name: str) -> str:
    """The id under which a shipped recording is opened, as any run is."""
    return f"{PREFIX}{name}"


def shipped_records(run_id: str) -> list[Record]:
    """The records of a shipped run; empty if there is none of that id, or its file is damaged, which the log says."""
    name = run_id.removeprefix(PREFIX)
    if name == run_id or name not in shipped_names():
        return []
    try:
        return _as(run_id, "", "shipped", read_recording(SHIPPED / f"{name}{ENDING}"))
    except InputError as error:
        log.warning("%s", error)
        return []


def import_run(path: Path, store: Keeps, owner: str = "") -> str:
    """Take the run of a file into a history as the owner's, marked as imported; returns its new id.

    It is read whole before anything is stored, and on disk when this returns. It is pinned, for its date may lie before
    what the history keeps. InputError if it cannot be read; KeyError if it could not be stored.
    """
    run_id = secrets.token_hex(ID_BYTES)
    for record in _as(run_id, owner, "imported", read_recording(path)):
        store.add(run_id, record)
    store.flush()
    store.pin(run_id, True)
    return run_id


def _as(run_id: str, owner: str, origin: Origin, records: Sequence[Record]) -> list[Record]:
    first, *rest = records
    assert isinstance(first, Created)
    return [msgspec.structs.replace(first, id=run_id, owner=owner, origin=origin), *rest]
