"""The tables of the history, as the steps that make them."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress

from tokendyno.backend.runs.records import BROKEN_RECORD, Created, decode_record
from tokendyno.backend.runs.row import row_of


def _tables(db: sqlite3.Connection) -> None:
    """The verdict is NULL until it is known: a run that was interrupted gets it when it is listed."""
    texts = ["kind", "label", "machine", "choices", "arms", "origin", "words", "said", "name", "note", "work"]
    db.execute(
        "CREATE TABLE runs (id TEXT PRIMARY KEY, created REAL NOT NULL, model TEXT NOT NULL, status TEXT NOT NULL, "
        "pid INTEGER NOT NULL, pid_started REAL NOT NULL, owner TEXT NOT NULL DEFAULT '', "
        "shared INTEGER NOT NULL DEFAULT 0, pinned INTEGER NOT NULL DEFAULT 0, verdict TEXT, deleted_at REAL, "
        + ", ".join(f"{text} TEXT NOT NULL DEFAULT ''" for text in texts)
        + ")"
    )
    db.execute("CREATE INDEX runs_created ON runs (created)")
    db.execute("CREATE INDEX runs_owner ON runs (owner, created)")
    db.execute("CREATE INDEX runs_listed ON runs (owner, deleted_at, created)")
    db.execute(
        "CREATE TABLE records (run_id TEXT NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL, "
        "PRIMARY KEY (run_id, seq)) WITHOUT ROWID"
    )


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


OLDEST = 6
"""The format that the first step makes: none before it was released."""

MIGRATIONS: list[Callable[[sqlite3.Connection], None]] = [_tables, _trials]
"""Each step but the first brings a file to the next format. Append new steps, never change an old one."""


def newest() -> int:
    """The format of this version."""
    return OLDEST + len(MIGRATIONS) - 1
