"""History in SQLite: every record of every run, one writer thread, readers anywhere.

The file survives crashes (WAL, transactions); a file that cannot be read is kept aside under another name
and a new one is begun, and `messages` says so. Nothing is ever deleted here.
"""

import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import psutil

from backend.errors import InputError
from backend.records import Created, Ended, Record, decode_record, encode_record


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


MIGRATIONS: list[Callable[[sqlite3.Connection], None]] = [_first]
"""Step i brings a file from version i to i + 1. Steps are added at the end and never changed."""

WAIT_S = 10.0
"""How long a lock that another process holds is waited for."""


class Store:
    """Implements `backend.runlog.Keeper`. `path` None keeps the history in memory only."""

    def __init__(self, path: Path | None) -> None:
        self.messages: list[str] = []
        self.path = path
        self._memory: dict[str, list[Record]] = {}
        self._queue: queue.Queue[tuple[str, Record] | threading.Event | None] = queue.Queue()
        self._seq: dict[str, int] = {}
        if path is not None:
            self._open(path)
            self._thread = threading.Thread(target=self._write, name="history", daemon=True)
            self._thread.start()

    # --- keeping ----------------------------------------------------------------------------------

    def add(self, run_id: str, record: Record) -> None:
        """Keep one more record. Returns at once; it is on disk within about 0.1 s, or after `flush`."""
        if self.path is None:
            self._memory.setdefault(run_id, []).append(record)
        else:
            self._queue.put((run_id, record))

    def flush(self) -> None:
        """Return when everything added so far is on disk."""
        if self.path is not None and self._thread.is_alive():
            done = threading.Event()
            self._queue.put(done)
            done.wait(timeout=30)

    def close(self) -> None:
        """Write what is left and end the writer."""
        if self.path is not None and self._thread.is_alive():
            self._queue.put(None)
            self._thread.join(timeout=30)

    def read(self, run_id: str) -> list[Record]:
        """All records of a run in order; empty if there is no such run."""
        if self.path is None:
            return list(self._memory.get(run_id, []))
        self.flush()
        with closing(self._connect()) as db:
            rows = db.execute("SELECT body FROM records WHERE run_id = ? ORDER BY seq", (run_id,)).fetchall()
        return [decode_record(body) for (body,) in rows]

    def newest(self) -> str | None:
        """Id of the run created last."""
        if self.path is None:
            return next(reversed(self._memory), None)
        self.flush()
        with closing(self._connect()) as db:
            row = db.execute("SELECT id FROM runs ORDER BY created DESC LIMIT 1").fetchone()
        return row[0] if row else None

    # --- the writer -------------------------------------------------------------------------------

    def _write(self) -> None:
        db = self._connect()
        ending = False
        pending: list[tuple[str, Record]] = []  # what could not be written yet is tried again with what comes next
        while not ending:
            batch = [self._queue.get()]
            deadline_s = time.monotonic() + 0.1
            while batch[-1] is not None and not isinstance(batch[-1], threading.Event):
                try:
                    batch.append(self._queue.get(timeout=max(0.0, deadline_s - time.monotonic())))
                except queue.Empty:
                    break
            ending = batch[-1] is None
            pending += [item for item in batch if isinstance(item, tuple)]
            try:
                self._commit(db, pending)
                pending = []
            except sqlite3.Error as error:
                self._say(f"The history could not be written ({error}): this session's runs stay in memory only.")
            except Exception as error:  # a record that cannot be encoded must not end the history of all others
                pending = []
                self._say(f"A part of the history could not be kept ({type(error).__name__}: {error}).")
            for item in batch:
                if isinstance(item, threading.Event):
                    item.set()
        db.close()

    def _commit(self, db: sqlite3.Connection, items: list[tuple[str, Record]]) -> None:
        if not items:
            return
        me = psutil.Process()
        seqs = dict(self._seq)
        db.execute("BEGIN IMMEDIATE")
        try:
            for run_id, record in items:
                if isinstance(record, Created):
                    db.execute(
                        "INSERT INTO runs VALUES (?, ?, ?, 'running', ?, ?)",
                        (run_id, record.created, record.request.model, me.pid, me.create_time()),
                    )
                elif isinstance(record, Ended):
                    db.execute("UPDATE runs SET status = ? WHERE id = ?", (record.status, run_id))
                seq = seqs[run_id] = seqs.get(run_id, -1) + 1
                db.execute("INSERT INTO records VALUES (?, ?, ?)", (run_id, seq, encode_record(record)))
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        self._seq = seqs

    # --- opening ----------------------------------------------------------------------------------

    def _connect(self) -> sqlite3.Connection:
        assert self.path is not None
        db = sqlite3.connect(self.path, timeout=WAIT_S, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA synchronous = NORMAL")
        return db

    def _open(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "ab"):
                pass
        except OSError as error:
            raise _unwritable(path, error.strerror or str(error)) from error
        try:
            self._prepare(path)
        except (sqlite3.DatabaseError, msgspec.MsgspecError) as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_THE_FILES_FAULT:
                raise _unwritable(path, str(error)) from error
            aside = _set_aside(path)
            self._say(f"The history file {path.name} could not be read ({error}). It was kept as {aside.name}, and a "
                      "new one was begun.")  # fmt: skip
            self._prepare(path)

    def _prepare(self, path: Path) -> None:
        with closing(self._connect()) as db:
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
                (now,) = db.execute("PRAGMA user_version").fetchone()  # another process may have done this step
                if now == number:
                    MIGRATIONS[number](db)
                    db.execute(f"PRAGMA user_version = {number + 1}")
                db.execute("COMMIT")
            self._mark_interrupted(db)

    def _mark_interrupted(self, db: sqlite3.Connection) -> None:
        """Runs whose process is gone were cut off: give each its last record."""
        db.execute("BEGIN IMMEDIATE")  # before looking: another process may be marking the same runs
        open_runs = db.execute("SELECT id, pid, pid_started FROM runs WHERE status = 'running'").fetchall()
        for run_id, pid, pid_started in open_runs:
            if _alive(pid, pid_started):
                continue
            (last,) = db.execute("SELECT max(seq) FROM records WHERE run_id = ?", (run_id,)).fetchone()
            body = db.execute("SELECT body FROM records WHERE run_id = ? AND seq = ?", (run_id, last)).fetchone()
            record = decode_record(body[0])
            at_s = getattr(record, "at_s", 0.0)
            ended = Ended(at_s, "interrupted", "The app was ended while this run was going on. What was measured until "
                          "then is kept; press Run to measure again.")  # fmt: skip
            db.execute("INSERT INTO records VALUES (?, ?, ?)", (run_id, last + 1, encode_record(ended)))
            db.execute("UPDATE runs SET status = 'interrupted' WHERE id = ?", (run_id,))
        db.execute("COMMIT")

    def _say(self, message: str) -> None:
        if message not in self.messages:
            self.messages.append(message)


_NOT_THE_FILES_FAULT = (
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
)  # fmt: skip
"""Errors that say nothing against a history's content: it stays where it is."""


def _unwritable(path: Path, why: str) -> InputError:
    return InputError(
        f"The history file {path} cannot be written ({why}). Name another with --history, or make its folder writable."
    )


def _use_wal(db: sqlite3.Connection) -> None:
    """Switch to a write-ahead log. The switch needs the file alone and does not wait by itself."""
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
        extra = path.with_name(path.name + suffix)
        if extra.exists():
            os.replace(extra, aside.with_name(aside.name + suffix))
    return aside
