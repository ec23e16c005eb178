"""The tables of the history, as the steps that make them."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from tokendyno.backend.runs.records import BROKEN_RECORD, Created, decode_record
from tokendyno.backend.runs.row import RunRow, row_of


def _first(db: sqlite3.Connection) -> None:
    db.execute(
        "CREATE TABLE runs (id TEXT PRIMARY KEY, created REAL NOT NULL, model TEXT NOT NULL, "
        "status TEXT NOT NULL, pid INTEGER NOT NULL, pid_started REAL NOT NULL)"
    )
    db.execute("CREATE INDEX runs_created ON runs (created)")
    db.execute(
        "CREATE TABLE records (run_id TEXT NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL, "
        "PRIMARY KEY (run_id, seq)) WITHOUT ROWID"
    )


def _owners(db: sqlite3.Connection) -> None:
    """Whose run it is, and whether everybody who is logged in may find it. Until now only the record said whose."""
    db.execute("ALTER TABLE runs ADD COLUMN owner TEXT NOT NULL DEFAULT ''")
    db.execute("ALTER TABLE runs ADD COLUMN shared INTEGER NOT NULL DEFAULT 0")
    for run_id, body in db.execute("SELECT run_id, body FROM records WHERE seq = 0").fetchall():
        with suppress(*BROKEN_RECORD):  # a damaged record belongs to the local user
            owner = msgspec.json.decode(body, type=_Owned).owner
            db.execute("UPDATE runs SET owner = ? WHERE id = ?", (owner, run_id))
    db.execute("CREATE INDEX runs_owner ON runs (owner, created)")


class _Owned(msgspec.Struct):
    """What a first record says of its owner."""

    owner: str = ""


def _pins(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE runs ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0")


def _search(db: sqlite3.Connection) -> None:
    """What runs are found by, from their first records; names and notes; when a run was deleted.

    The verdict is NULL until it is known: runs that ended before get it when they are listed.
    """
    for column in ("kind", "label", "machine", "choices", "arms", "origin", "words", "said", "name", "note"):
        db.execute(f"ALTER TABLE runs ADD COLUMN {column} TEXT NOT NULL DEFAULT ''")
    db.execute("ALTER TABLE runs ADD COLUMN verdict TEXT")
    db.execute("ALTER TABLE runs ADD COLUMN deleted_at REAL")
    _fill(db, [column for column in RunRow._fields if column not in ("work", "trial")])


def _listed(db: sqlite3.Connection) -> None:
    """An owner's runs in the order in which they are listed, which also counts them."""
    db.execute("CREATE INDEX runs_listed ON runs (owner, deleted_at, created)")


def _worked(db: sqlite3.Connection) -> None:
    """What the model had to do in a run, which is also searched."""
    db.execute("ALTER TABLE runs ADD COLUMN work TEXT NOT NULL DEFAULT ''")
    _fill(db, ["work", "words"])


def _trials(db: sqlite3.Connection) -> None:
    """Of which ablation or sweep a run is a trial, which is also searched: its runs are listed as one."""
    db.execute("ALTER TABLE runs ADD COLUMN trial TEXT NOT NULL DEFAULT ''")
    db.execute("CREATE INDEX runs_trial ON runs (owner, deleted_at, trial, created)")
    _fill(db, ["trial", "words"])


def _fill(db: sqlite3.Connection, columns: Sequence[str]) -> None:
    """Columns of every row, from its run's first record. Of a run whose record is damaged they stay empty."""
    firsts = db.execute("SELECT id, body FROM runs JOIN records ON run_id = id AND seq = 0").fetchall()
    for run_id, body in firsts:
        with suppress(*BROKEN_RECORD):
            first = decode_record(body)
            if isinstance(first, Created):
                values = {**row_of(first)._asdict(), "id": run_id}
                db.execute(f"UPDATE runs SET {', '.join(f'{c} = :{c}' for c in columns)} WHERE id = :id", values)


MIGRATIONS: list[Callable[[sqlite3.Connection], None]] = [_first, _owners, _pins, _search, _listed, _worked, _trials]
"""Step i brings a file from version i to i + 1. Append new steps, never change an old one."""
