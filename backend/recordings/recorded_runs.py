"""Runs that come with tokendyno, and runs that are taken from files into a history."""

import functools
import logging
import secrets
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tokendyno.backend.errors import InputError
from tokendyno.backend.paths import PRESETS
from tokendyno.backend.recordings.format import ENDING, first_record, read_recording
from tokendyno.backend.runs.records import Created, Origin, Record
from tokendyno.backend.runs.store import Store

log = logging.getLogger("tokendyno")

SHIPPED = PRESETS / "recordings"
PREFIX = "recorded-"
"""Of the ids of shipped runs: the name of the file follows."""

ID_BYTES = 12

NOT_STORED = "The history could not be written, so this run may be missing from it. Take the file in again."


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
        return _as(run_id, "", "shipped", read_recording(SHIPPED / f"{name}{ENDING}", shipped=True))
    except InputError as error:
        log.warning("%s", error)
        return []


@functools.cache
def shipped_firsts() -> tuple[Created, ...]:
    """What was asked for in each shipped run. A file that is damaged is left out, which the log says."""
    firsts = []
    for name in shipped_names():
        try:
            first = first_record((SHIPPED / f"{name}{ENDING}").read_bytes())
            firsts.append(msgspec.structs.replace(first, id=shipped_id(name), owner="", origin="shipped"))
        except (InputError, OSError) as error:
            log.warning("%s: %s", name, error)
    return tuple(firsts)


def import_run(path: Path, store: Store, owner: str = "") -> str:
    """Take the run of a file into a history as the owner's; returns its new id. InputError if it cannot be stored."""
    return import_records(read_recording(path), store, owner)


def import_records(records: Sequence[Record], store: Store, owner: str) -> str:
    """Take the records of a recording into a history as the owner's, in one transaction; returns the run's new id. They
    are on disk when this returns. The run is pinned, for its date may lie before what the history keeps. InputError if
    the history cannot be written now."""
    run_id = secrets.token_hex(ID_BYTES)
    store.add(run_id, *_as(run_id, owner, "imported", records))
    store.flush()
    try:
        store.pin(run_id, True)
    except (KeyError, sqlite3.Error) as error:
        raise InputError(store.trouble or NOT_STORED) from error
    return run_id


def _as(run_id: str, owner: str, origin: Origin, records: Sequence[Record]) -> list[Record]:
    first, *rest = records
    assert isinstance(first, Created)
    return [msgspec.structs.replace(first, id=run_id, owner=owner, origin=origin), *rest]
