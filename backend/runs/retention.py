"""What the history forgets: runs and ablations that are too old, and the oldest where they are too large.

Running and pinned runs are never deleted, nor is an ablation that goes on. A run that has a name or a note is not
deleted for its age, and for size after those that have none.
"""

import fcntl
import os
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.limits import Limits
from tokendyno.backend.units import plural

DAYS, MIB = "TOKENDYNO_HISTORY_DAYS", "TOKENDYNO_HISTORY_MIB"

UNDO_S = 3_600.0
"""A deleted run can be had back for this long; then it is removed."""

NAMED = "(coalesce(name, '') || coalesce(note, '') != '')"
"""SQL on a row: whether somebody gave the run a name or wrote a note on it."""

AT_ONCE = 16
"""Runs a transaction deletes, so that writing never waits for long."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How much history is kept: the age of runs and ablations, bytes of runs, bytes of ablations. None: without a
    limit."""

    max_age_s: float | None = None
    max_bytes: int | None = None
    max_ablation_bytes: int | None = None

    @staticmethod
    def from_environment(limits: Limits, env: Mapping[str, str] = os.environ) -> "Retention":
        """The limits of a mode, or as set; 0 lifts one. InputError for anything but a number of days or MiB."""
        days, mib = _number(env, DAYS, limits.history_days), _number(env, MIB, limits.history_bytes >> 20)
        return Retention(days * 86_400 or None, int(mib * (1 << 20)) or None, limits.ablation_bytes)

    @property
    def days(self) -> float:
        return (self.max_age_s or 0.0) / 86_400

    def sentence(self, deleted: "Deleted") -> str:
        old, large, ablations = deleted
        parts = [f"{plural(old, 'run')} older than {self.days:g} day{'' if self.days == 1 else 's'}"] if old else []
        if large:
            parts.append(f"{large:,} of the oldest runs, to stay below {(self.max_bytes or 0) >> 20:,} MiB")
        if ablations:
            parts.append(f"{plural(ablations, 'ablation')}, too old or the oldest of too many")
        return f"Deleted from the history since the start: {', '.join(parts)}."


class Deleted(NamedTuple):
    """Runs that were deleted for their age, and for the size of the file; ablations, for either."""

    old: int = 0
    large: int = 0
    ablations: int = 0


def prune(db: sqlite3.Connection, retention: Retention, now_s: float) -> Deleted:
    """Delete up to `AT_ONCE` runs past a limit. `now_s`: since the epoch."""
    if retention.max_age_s is not None:
        old = _delete(db, f"NOT pinned AND NOT {NAMED} AND created < ?", (now_s - retention.max_age_s,))
        if old:
            return Deleted(old=old)
    if retention.max_bytes is not None and used_bytes(db) > retention.max_bytes:
        return Deleted(large=_delete(db, "NOT pinned", ()))
    return Deleted()


def prune_ablations(folder: Path, retention: Retention, now_s: float) -> Deleted:
    """Delete the journals of this folder that are past a limit, by when they were last written."""
    journals, left_bytes = [], 0
    for path in folder.glob("*.jsonl"):
        with suppress(OSError):  # another process may have deleted it
            stat = path.stat()
            journals.append((stat.st_mtime, stat.st_size, path))
            left_bytes += stat.st_size
    deleted = 0
    for at_s, size, path in sorted(journals):
        old = retention.max_age_s is not None and at_s < now_s - retention.max_age_s
        large = retention.max_ablation_bytes is not None and left_bytes > retention.max_ablation_bytes
        if old or large:
            with suppress(OSError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # an ablation that goes on holds it
                path.unlink()
                deleted, left_bytes = deleted + 1, left_bytes - size
    return Deleted(ablations=deleted)


def remove_marked(db: sqlite3.Connection, now_s: float) -> int:
    """Remove runs that were deleted longer than `UNDO_S` ago, bytes overwritten; returns how many."""
    removed = 0
    db.execute("PRAGMA secure_delete = ON")
    try:
        while deleted := _delete(db, "abs(? - deleted_at) > ?", (now_s, UNDO_S)):
            removed += deleted
    finally:
        db.execute("PRAGMA secure_delete = OFF")
    return removed


def used_bytes(db: sqlite3.Connection) -> int:
    """Bytes of the file's pages that are in use; free ones are filled before the file grows."""
    (pages,), (free,), (size,) = (
        db.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _delete(db: sqlite3.Connection, where: str, values: tuple[float, ...]) -> int:
    with db:
        db.execute("BEGIN IMMEDIATE")
        run_ids = db.execute(
            f"SELECT id FROM runs WHERE status != 'running' AND {where} ORDER BY {NAMED}, rowid LIMIT {AT_ONCE}",
            values,
        ).fetchall()
        for table, column in (("records", "run_id"), ("runs", "id")):
            db.executemany(f"DELETE FROM {table} WHERE {column} = ?", run_ids)
    db.executescript("PRAGMA incremental_vacuum(4096)")  # `execute` would stop after one page
    return len(run_ids)


def _number(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(name, "").strip()
    try:
        value = float(text) if text else default
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise InputError(f"{name} must be a number from 0 (no limit), not {text[:40]!r}. Set it to {default:g}, say.")
    return value
