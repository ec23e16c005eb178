"""The history file: opened, refused where it is none or a newer version wrote it, migrated after a backup.

It survives crashes (WAL, transactions); only its owner may read it, for it holds prompts.
"""

import errno
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path

import psutil

from tokendyno.backend.errors import InputError
from tokendyno.backend.runs.records import BROKEN_RECORD, Created, Ended, decode_record, encode_record
from tokendyno.backend.runs.row import row_of

WAIT_S = 2.0
"""How long to wait for a lock that another process holds, where nobody looks on."""

READ_WAIT_S = 0.25
"""How long a reader waits for such a lock: the page waits for the reader."""

PRIVATE = 0o600

CAUSES = {
    sqlite3.SQLITE_FULL: ("its disk is full", "Free some space there."),
    sqlite3.SQLITE_BUSY: ("another program has locked it", "End that program, or wait for it."),
    sqlite3.SQLITE_READONLY: ("it may not be written", "Make the file and its folder writable."),
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", "Check that its folder exists and is writable."),
    sqlite3.SQLITE_IOERR: ("its disk reports an error", "Check that the disk works and has space."),
    **dict.fromkeys(
        (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB),
        ("the file is damaged", "Put a backup in its place, or move it away: a new one is then begun."),
    ),
}
"""Why a history cannot be read or written, and what to do about it."""

APP_STOPPED = "The app stopped during this run. What was measured until then is kept; press Run to measure again."


def connect(path: Path, wait_s: float | None = None) -> sqlite3.Connection:
    """A connection to an existing file that any thread may use, one at a time."""
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        timeout=WAIT_S if wait_s is None else wait_s,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
    )
    db.text_factory = lambda text: text.decode("utf-8", "replace")  # damage is no reason to raise
    try:
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA journal_size_limit = 16777216")
    except BaseException:  # of what is no database
        db.close()
        raise
    return db


def check_path(path: Path) -> None:
    """Create the file, for its owner alone, if there is none. InputError if no history can be kept at this path."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # What is there is never opened but by SQLite: closing it would release SQLite's locks on it
        # (https://www.sqlite.org/howtocorrupt.html, 2.2).
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE))
        if not path.is_file():  # a pipe would be waited for
            raise OSError(errno.EINVAL, "it is not a regular file")
        if not os.access(path, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from error
    with suppress(sqlite3.Error), closing(connect(path)) as db:  # `open_file` says what is wrong
        check_format(db, path)


def check_format(db: sqlite3.Connection, path: Path) -> int:
    """The version of its format. InputError if it is another program's, or if a newer tokendyno wrote it."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if tables and not {"runs", "records"} <= tables:
        raise _unwritable(path, "it is the database of another program")
    if version > newest():
        raise InputError(
            f"A newer version of tokendyno wrote the history {path.name} (format {version}; this one knows formats up "
            f"to {newest()}). It is left as it is. Update tokendyno, or name another file with "
            "--history (TOKENDYNO_HISTORY)."
        )
    return int(version)


def open_file(path: Path) -> None:
    """Make the file ready: migrated to this version, with the runs of dead processes marked as interrupted. InputError
    if this is no place for a history; sqlite3.Error if waiting may help, or it is damaged."""
    check_path(path)
    with closing(connect(path)) as db:
        if not path.stat().st_size:
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        check_format(db, path)
        with suppress(sqlite3.OperationalError):  # busy: another process sees to it, or the next opening
            db.execute("PRAGMA journal_mode = WAL")
        with db:
            db.execute("BEGIN IMMEDIATE")  # before looking: another process may be migrating it
            _migrate(db, path)
            _mark_interrupted(db)


def cannot_be(participle: str, path: Path, error: Exception) -> str:
    """A sentence: that the history cannot be "read" or "written", why, and what to do."""
    if isinstance(error, InputError):
        return str(error)
    why, cure = CAUSES.get(
        getattr(error, "sqlite_errorcode", 0) & 0xFF,  # SQLite's primary code
        (getattr(error, "strerror", None) or str(error), "Start tokendyno again; if this stays, move the file away."),
    )
    return f"The history {path.name} cannot be {participle}: {why}. {cure}"


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    """Take the steps that the file has not taken; where it holds runs, after a backup."""
    version, target = check_format(db, path), newest()
    if 0 < version < target:
        backup_path = Path(f"{path}.backup-v{version}")
        os.close(os.open(backup_path, os.O_RDWR | os.O_CREAT, PRIVATE))
        with closing(connect(path)) as source, closing(sqlite3.connect(backup_path)) as backup:
            source.backup(backup)
    for step in MIGRATIONS[version - OLDEST + 1 if version else 0 :]:
        step(db)
    db.execute(f"PRAGMA user_version = {target}")


def _mark_interrupted(db: sqlite3.Connection) -> None:
    """Append a last record to every run whose process is gone."""
    for run_id, pid, started in db.execute("SELECT id, pid, pid_started FROM runs WHERE status = 'running'").fetchall():
        with suppress(psutil.Error):
            if abs(psutil.Process(pid).create_time() - started) < 2:  # else the pid was given to another process
                continue
        last = "SELECT seq, body FROM records WHERE run_id = ? ORDER BY seq DESC LIMIT 1"
        for seq, body in db.execute(last, (run_id,)).fetchall():
            with suppress(*BROKEN_RECORD):  # whoever reads the run is told that it is cut there
                ended = Ended(getattr(decode_record(body), "at_s", 0.0), "interrupted", APP_STOPPED)
                db.execute("INSERT INTO records VALUES (?, ?, ?)", (run_id, seq + 1, encode_record(ended)))
        db.execute("UPDATE runs SET status = 'interrupted', verdict = ? WHERE id = ?", (APP_STOPPED, run_id))


def _unwritable(path: Path, why: str) -> InputError:
    return InputError(
        f"The history file {path} cannot be written ({why}). Name another with --history, or make its folder writable."
    )


# --- the tables, as the steps that make them -------------------------------------------------------


def _tables(db: sqlite3.Connection) -> None:
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
    """A column for the ablation or sweep that a run is a trial of: its runs are listed as one, and found by its id."""
    db.execute("ALTER TABLE runs ADD COLUMN trial TEXT NOT NULL DEFAULT ''")
    db.execute("CREATE INDEX runs_trial ON runs (owner, deleted_at, trial, created)")
    _fill(db, ["trial", "words"])


def _fill(db: sqlite3.Connection, columns: Sequence[str]) -> None:
    """Fill columns of every row from its run's first record; where that is damaged they stay empty."""
    first_records = db.execute("SELECT id, body FROM runs JOIN records ON run_id = id AND seq = 0").fetchall()
    for run_id, body in first_records:
        with suppress(*BROKEN_RECORD):
            created = decode_record(body)
            if isinstance(created, Created):
                values = {**row_of(created)._asdict(), "id": run_id}
                db.execute(f"UPDATE runs SET {', '.join(f'{c} = :{c}' for c in columns)} WHERE id = :id", values)


OLDEST = 6
"""The format that the first step makes: none before it was released."""

MIGRATIONS: list[Callable[[sqlite3.Connection], None]] = [_tables, _trials]
"""Each step but the first brings a file to the next format. Append new steps, never change an old one."""


def newest() -> int:
    return OLDEST + len(MIGRATIONS) - 1
