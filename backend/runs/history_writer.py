"""The one thread that writes the history file. What is not written yet waits in memory, in order."""

import logging
import operator
import sqlite3
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import psutil

from tokendyno.backend.errors import InputError
from tokendyno.backend.paths import ablation_folder
from tokendyno.backend.redact import redact
from tokendyno.backend.runs.history_file import cannot_be, check_format, connect, open_file
from tokendyno.backend.runs.records import Created, Ended, Record, encode_record
from tokendyno.backend.runs.retention import Deleted, Retention, prune, prune_ablations, remove_marked
from tokendyno.backend.runs.row import RunRow, row_of, searched
from tokendyno.backend.units import plural

log = logging.getLogger("tokendyno")

GATHER_S = 0.1
"""How long records are gathered for one transaction."""

RETRY_S = 2.0
"""The pause between attempts while the file cannot be written."""

END_S = 30.0
"""How long the end of the app waits for what is left to be written."""

PRUNE_EVERY_S = 3600.0

AGES_AFTER_S = 600.0
"""Nothing is deleted for its age sooner after the start: a machine's clock may not be set yet."""

STEADY_S = 60.0
"""A wall clock that moved further than this against a steady one has jumped: ages are not trusted."""


class Item(NamedTuple):
    """A record on its way to disk. `seq`: its place in the run."""

    run_id: str
    seq: int
    record: Record


class HistoryWriter:
    """Writes one history file. Any thread may call it. InputError if no history can be kept at `path`.

    trouble   what is not being kept at this moment, and what to do; "" while all is well
    messages  what was deleted, and what could not be kept
    """

    def __init__(self, path: Path, retention: Retention) -> None:
        self.trouble = ""
        self._path, self._retention = path, retention
        self._items: list[Item] = []
        self._numbers: dict[str, int] = {}
        self._changed = threading.Condition()
        self._flushes_requested = self._flushes_done = 0
        self._closing = self._ended = False
        self._db: sqlite3.Connection | None = None
        process = psutil.Process()
        self._process = (process.pid, process.create_time())
        self._clock_s, self._steady_s = time.time(), time.monotonic()
        self._prune_at_s = self._steady_s
        self._deleted, self._lost = Deleted(), ""
        self._attempt(first=True)  # what is wrong with the file is known now
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)
        self._thread.start()

    @property
    def messages(self) -> list[str]:
        deleted = self._retention.sentence(self._deleted) if any(self._deleted) else ""
        return [message for message in (deleted, self._lost) if message]

    def add(self, run_id: str, *records: Record) -> None:
        """Append records of a run; they are written in one transaction, within about 0.1 s."""
        with self._changed:
            seq = self._numbers.get(run_id, 0)
            self._numbers[run_id] = seq + len(records)
            self._items += [Item(run_id, seq + i, record) for i, record in enumerate(records)]
            self._changed.notify_all()

    def waiting(self) -> list[Item]:
        """What is not on disk yet, oldest first."""
        with self._changed:
            return list(self._items)

    def flush(self, limit_s: float = END_S) -> None:
        """Return when everything added so far is on disk, or could not be written, or after `limit_s`."""
        with self._changed:
            self._flushes_requested += 1
            number = self._flushes_requested
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._flushes_done >= number or self._ended, limit_s)

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(END_S)

    # --- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closing:
            with self._changed:
                if not self.trouble:
                    idle_s = max(0.05, min(PRUNE_EVERY_S, self._prune_at_s - time.monotonic()))
                    self._changed.wait_for(lambda: self._items or self._urgent(), idle_s)
                self._changed.wait_for(self._urgent, RETRY_S if self.trouble else GATHER_S)
                requested = self._flushes_requested
            if self._attempt():
                self._prune()
            with self._changed:
                self._flushes_done = requested
                self._changed.notify_all()
        if self.waiting():  # what came during the last attempt
            self._attempt()
        if unsaved := {item.run_id for item in self.waiting()}:
            self._lose(
                f"{plural(len(unsaved), 'run')} could not be kept in the history, or only in part: "
                "tokendyno ended before it could be written."
            )
        self._close_file()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _urgent(self) -> bool:
        return self._closing or self._flushes_requested > self._flushes_done

    def _attempt(self, first: bool = False) -> bool:
        """Write everything that waits. False if that cannot be done now; then `trouble` says why."""
        items = self.waiting()
        try:
            db = self._opened()
            with db:
                db.execute("BEGIN IMMEDIATE")
                for item in items:
                    self._insert(db, item)
        except Exception as error:  # no fault of the history ends the writer
            if first and isinstance(error, InputError):
                raise
            self._fail(error)
            return False
        with self._changed:
            del self._items[: len(items)]
        self.trouble = ""
        return True

    def _fail(self, error: Exception) -> None:
        self._close_file()  # its descriptors may be of a disk that has gone
        why = cannot_be("written", self._path, error)
        count = len(self._items)
        waiting = f" Waiting in memory until that is over: {plural(count, 'record')}." if count else ""
        self.trouble = f"Runs are not being kept. {why}{waiting}"

    def _lose(self, message: str) -> None:
        if message != self._lost:  # of a run whose file is gone each record says it
            log.warning("%s", message)
        self._lost = message

    def _opened(self) -> sqlite3.Connection:
        """The file, opened anew after it could not be written."""
        if self._db is None:
            open_file(self._path)
            self._db = connect(self._path)
        check_format(self._db, self._path)
        return self._db

    def _close_file(self) -> None:
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
            self._db = None

    def _insert(self, db: sqlite3.Connection, item: Item) -> None:
        run_id, seq, record = item
        try:
            body = encode_record(record)
            if isinstance(record, Created):
                db.execute(
                    "INSERT INTO runs (id, created, model, status, pid, pid_started, owner, "
                    f"{', '.join(RunRow._fields)}) VALUES (?, ?, ?, 'running', ?, ?, ?{', ?' * len(RunRow._fields)})",
                    (run_id, record.created, record.request.model, *self._process, record.owner, *row_of(record)),
                )
            elif isinstance(record, Ended):
                verdict = redact(record.message) if record.verdict is None else record.verdict
                db.execute(
                    "UPDATE runs SET status = ?, verdict = ?, said = said || ' ' || ? WHERE id = ?",
                    (record.status, verdict, searched(verdict), run_id),
                )
            insert = "INSERT INTO records SELECT id, ?, ? FROM runs WHERE id = ?"
            if not db.execute(insert, (seq, body, run_id)).rowcount:
                self._lose(f"Run {run_id[:8]} is not kept: the file that its beginning was in is gone.")
        except (sqlite3.IntegrityError, sqlite3.DataError, ValueError, TypeError) as error:
            # this record never fits; the others do
            self._lose(f"Part of the history could not be kept ({type(error).__name__}: {error}).")

    def _prune(self) -> None:
        """Remove what was deleted a while ago and some runs that are past a limit, if it is time and nothing waits."""
        if self._db is None or time.monotonic() < self._prune_at_s or self._items:
            return
        deleted, retention, up_s = Deleted(), self._retention, time.monotonic() - self._steady_s
        if up_s < AGES_AFTER_S or abs(time.time() - self._clock_s - up_s) >= STEADY_S:
            retention = replace(retention, max_age_s=None)
        try:
            remove_marked(self._db, time.time())
            deleted = prune(self._db, retention, time.time())
            if deleted == Deleted():
                deleted = prune_ablations(ablation_folder(self._path), retention, time.time())
        except sqlite3.Error as error:
            log.warning("old runs could not be deleted: %s", error)
        if deleted == Deleted():
            self._prune_at_s = time.monotonic() + (AGES_AFTER_S if up_s < AGES_AFTER_S else PRUNE_EVERY_S)
        self._deleted = Deleted(*map(operator.add, self._deleted, deleted))
