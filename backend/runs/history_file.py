"""The history file: created, migrated, checked, and set aside if it cannot be read.

It survives crashes (WAL, transactions). Nothing in it is ever deleted.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import psutil

from backend.errors import InputError
from backend.runs.records import Ended, decode_record, encode_record


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
        with contextlib.suppress(msgspec.MsgspecError):  # a damaged record belongs to the local user
            owner = msgspec.json.decode(body, type=_Owned).owner
            db.execute("UPDATE runs SET owner = ? WHERE id = ?", (owner, run_id))
    db.execute("CREATE INDEX runs_owner ON runs (owner, created)")


class _Owned(msgspec.Struct):
    """What a first record says of its owner."""

    owner: str = ""


MIGRATIONS: list[Callable[[sqlite3.Connection], None]] = [_first, _owners]
"""Step i brings a file from version i to i + 1. Append new steps, never change an old one."""

WAIT_S = 10.0
"""How long to wait for a lock that another process holds."""

_NOT_THE_FILES_FAULT = (
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
)  # fmt: skip
"""Errors that say nothing about the content of the file: it stays where it is."""


def connect(path: Path) -> sqlite3.Connection:
    """A connection that any thread may use, one at a time."""
    db = sqlite3.connect(path, timeout=WAIT_S, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA synchronous = NORMAL")
    return db


def open_file(path: Path) -> str:
    """Make the file ready: migrated to this version, with the runs of dead processes marked as interrupted.

    Returns a message for the user if the old file could not be read, "" otherwise; it is then kept under another name
    and a new one is begun. InputError if the path cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab"):
            pass
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from error
    try:
        _prepare(path)
    except (sqlite3.DatabaseError, msgspec.MsgspecError) as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_THE_FILES_FAULT:
            raise _unwritable(path, str(error)) from error
        aside = _set_aside(path)
        _prepare(path)
        return (
            f"The history file {path.name} could not be read ({error}). It was kept as {aside.name}, and a new one was "
            "begun."
        )
    return ""


def _prepare(path: Path) -> None:
    with closing(connect(path)) as db:
        _use_wal(db)
        (state,) = db.execute("PRAGMA quick_check").fetchone()
        if state != "ok":
            raise sqlite3.DatabaseError(f"quick_check: {state}")
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version > len(MIGRATIONS):
            raise sqlite3.DatabaseError(f"it was written by a newer version of tokendyno (format {version})")
        if 0 < version < len(MIGRATIONS):
            with closing(sqlite3.connect(f"{path}.backup-v{version}")) as backup:
                db.backup(backup)
        for number in range(version, len(MIGRATIONS)):
            db.execute("BEGIN IMMEDIATE")
            (now,) = db.execute("PRAGMA user_version").fetchone()  # another process may have taken this step
            if now == number:
                MIGRATIONS[number](db)
                db.execute(f"PRAGMA user_version = {number + 1}")
            db.execute("COMMIT")
        _mark_interrupted(db)


def _mark_interrupted(db: sqlite3.Connection) -> None:
    """Append a last record to every run whose process is gone."""
    db.execute("BEGIN IMMEDIATE")  # before reading: another process may be marking the same runs
    open_runs = db.execute("SELECT id, pid, pid_started FROM runs WHERE status = 'running'").fetchall()
    for run_id, pid, pid_started in open_runs:
        if _alive(pid, pid_started):
            continue
        (last,) = db.execute("SELECT max(seq) FROM records WHERE run_id = ?", (run_id,)).fetchone()
        body = db.execute("SELECT body FROM records WHERE run_id = ? AND seq = ?", (run_id, last)).fetchone()
        record = decode_record(body[0])
        at_s = getattr(record, "at_s", 0.0)
        ended = Ended(at_s, "interrupted", "The app stopped during this run. What was measured until then is kept; "
                      "press Run to measure again.")  # fmt: skip
        db.execute("INSERT INTO records VALUES (?, ?, ?)", (run_id, last + 1, encode_record(ended)))
        db.execute("UPDATE runs SET status = 'interrupted' WHERE id = ?", (run_id,))
    db.execute("COMMIT")


def _use_wal(db: sqlite3.Connection) -> None:
    """Switch to a write-ahead log. SQLite needs the file to itself for that and does not wait on its own."""
    deadline_s = time.monotonic() + WAIT_S
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                raise
            time.sleep(0.02)


def _alive(pid: int, started: float) -> bool:
    """Whether the process that had this pid at `started` (seconds since the epoch) still exists."""
    try:
        return bool(abs(psutil.Process(pid).create_time() - started) < 2)
    except psutil.Error:
        return False


def _set_aside(path: Path) -> Path:
    """Rename a history with its WAL files; returns the new name."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    aside = path.with_name(f"{path.name}.unreadable-{stamp}")
    n = 1
    while aside.exists():
        n += 1
        aside = path.with_name(f"{path.name}.unreadable-{stamp}-{n}")
    os.replace(path, aside)
    for suffix in ("-wal", "-shm"):
        companion = path.with_name(path.name + suffix)
        if companion.exists():
            os.replace(companion, aside.with_name(aside.name + suffix))
    return aside


def _unwritable(path: Path, why: str) -> InputError:
    return InputError(
        f"The history file {path} cannot be written ({why}). Name another with --history, or make its folder writable."
    )
