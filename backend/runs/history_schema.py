"""The tables of the history: the steps that make them, and how a file differs from what they make."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress

import msgspec

from backend.runs.records import BROKEN_RECORD, Created, decode_record
from backend.runs.row import RunRow, row_of


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
    _fill(db, [column for column in RunRow._fields if column != "work"])


def _listed(db: sqlite3.Connection) -> None:
    """An owner's runs in the order in which they are listed, which also counts them."""
    db.execute("CREATE INDEX runs_listed ON runs (owner, deleted_at, created)")


def _worked(db: sqlite3.Connection) -> None:
    """What the model had to do in a run, which is also searched."""
    db.execute("ALTER TABLE runs ADD COLUMN work TEXT NOT NULL DEFAULT ''")
    _fill(db, ["work", "words"])


def _fill(db: sqlite3.Connection, columns: Sequence[str]) -> None:
    """Columns of every row, from its run's first record. Of a run whose record is damaged they stay empty."""
    firsts = db.execute("SELECT id, body FROM runs JOIN records ON run_id = id AND seq = 0").fetchall()
    for run_id, body in firsts:
        with suppress(*BROKEN_RECORD):
            first = decode_record(body)
            if isinstance(first, Created):
                values = {**row_of(first)._asdict(), "id": run_id}
                db.execute(f"UPDATE runs SET {', '.join(f'{c} = :{c}' for c in columns)} WHERE id = :id", values)


MIGRATIONS: list[Callable[[sqlite3.Connection], None]] = [_first, _owners, _pins, _search, _listed, _worked]
"""Step i brings a file from version i to i + 1. Append new steps, never change an old one."""


MAX_FORMAT = 1000
"""A file that claims to be of a later one is damaged."""


class Foreign(Exception):
    """The file is a database of another program: it is left as it is."""


class Newer(sqlite3.OperationalError):
    """A newer version of tokendyno wrote the file, which is left as it is. `version`: its number, where it is known."""

    def __init__(self, number: int, version: str = "") -> None:
        which = f"{version}, format {number}" if version else f"format {number}"
        super().__init__(
            f"a newer version of tokendyno wrote it ({which}; this one knows formats up to {len(MIGRATIONS)}), and it "
            "is left as it is"
        )


def check_schema(db: sqlite3.Connection) -> int:
    """The file's version. DatabaseError if its tables are not those of that version; Newer if a newer tokendyno wrote
    it; Foreign if it was never a history."""
    db.execute("BEGIN")  # one moment: another process may be migrating it
    try:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        found = _schema(db)
    finally:
        db.execute("ROLLBACK")
    if found and not _ours(found):
        raise Foreign
    if is_newer(version):
        raise Newer(version)
    if not 0 <= version <= len(MIGRATIONS) or found != _expected(version):
        raise sqlite3.DatabaseError(f"its tables are not those of format {version}")
    return int(version)


def is_newer(number: int) -> bool:
    """Whether this is the format of a later version."""
    return len(MIGRATIONS) < number <= MAX_FORMAT


def is_ours(db: sqlite3.Connection) -> bool:
    """Whether there are tables of a history, of whatever version."""
    return _ours(_schema(db))


def _ours(found: set[tuple[str, str, str]]) -> bool:
    return bool({"runs", "records"} & {name for _, name, _ in found})


def _schema(db: sqlite3.Connection) -> set[tuple[str, str, str]]:
    """(type, name, definition) of all tables, indexes, views and triggers; SQLite's own aside."""
    rows = db.execute("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'").fetchall()
    return {(str(kind), str(name), " ".join(str(sql).split())) for kind, name, sql in rows}


def _expected(version: int) -> set[tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:")) as db:
        for step in MIGRATIONS[:version]:
            step(db)
        return _schema(db)
