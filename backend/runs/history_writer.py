"""Writes waiting records into the history file, and begins a new file where the old one is damaged or gone.

Used by one thread at a time; any thread may read `trouble` and `messages`.
"""

import logging
import math
import operator
import sqlite3
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil

from backend.errors import InputError
from backend.paths import ablation_folder
from backend.runs.history_file import (
    CHECKED_AT_ONCE_BYTES,
    aside_message,
    connect,
    damage_of,
    identity,
    open_file,
    readable_asides,
    set_aside,
)
from backend.runs.newer import refuse_newer_now
from backend.runs.records import Created, Ended, decode_record
from backend.runs.retention import AGES_AFTER_S, STEADY_S, Deleted, Retention, prune, prune_ablations, remove_marked
from backend.runs.row import RunRow, row_of, searched
from backend.runs.trouble import code_of, lost_sentence, passes, sentence
from backend.runs.waiting import Item, Waiting

log = logging.getLogger("tokendyno")

MAX_COPY_BYTES = 32 << 20
"""Of the records of running runs, kept so that a new file can begin with them."""

PRUNE_EVERY_S = 3600.0

MAX_MESSAGES = 8


class HistoryWriter:
    """One history file, as the writer thread sees it.

    trouble  what is not being kept at this moment; "" while all is well
    suspect  a reader met damage: look at the file before writing on
    set_aside  what was said when the file was set aside last, since it could not be read; "" if it never was
    """

    def __init__(self, path: Path, waiting: Waiting, retention: Retention) -> None:
        self.trouble = ""
        self.messages: list[str] = []
        self.suspect = False
        self.set_aside = ""
        self._path, self._waiting, self._retention = path, waiting, retention
        self._db: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._left = False  # the file was given up, and the next one does not have what is in `_copies`
        self._copies: dict[str, list[bytes]] = {}
        me = psutil.Process()
        self._process = (me.pid, me.create_time())
        self._clock_s, self._steady_s = time.time(), time.monotonic()
        self._prune_at_s = self._steady_s
        self._deleted, self._deleted_message = Deleted(), ""

    def report(self, message: str) -> None:
        """Say something once. The latest messages are kept; whoever opens the history says those of the start."""
        if message not in self.messages:
            if self._file is not None:
                log.warning("%s", message)
            self.messages = [*self.messages, message][-MAX_MESSAGES:]

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
            self._db = None

    # --- writing ----------------------------------------------------------------------------------

    def attempt(self, first: bool = False) -> bool:
        """Write everything that waits. False if the file cannot be written now; then `trouble` says why. The first
        attempt raises InputError if this is no place for a history."""
        self._waiting.encode(self._unencodable)
        try:
            self._ready()
            assert self._db is not None
            self._waiting.shed(math.inf)  # of runs that lost records before, the rest makes no whole
            items = [item for item in self._waiting.all() if item.body]
            if items:
                self._commit(self._db, items)
        except InputError as error:
            if first:
                raise
            return self._fail(str(error))
        except (sqlite3.Error, OSError) as error:
            if not passes(error):
                self.suspect = True
            return self._fail(error)
        self._waiting.remove(items)
        self._copy(items)
        self.trouble = ""
        return True

    def _fail(self, why: Exception | str) -> bool:
        lost = self._waiting.shed(self._waiting.most_bytes)
        if lost:
            limit = self._waiting.most_bytes >> 20
            self.report(lost_sentence(lost, f"more than {limit} MiB waited while the file could not be written"))
        state = self._waiting.state
        if isinstance(why, str):
            self.trouble = why
        else:
            self.trouble = sentence(self._path.name, why, state, self._waiting.most_bytes)
        if isinstance(why, Exception) and code_of(why) in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
            self.close()  # its descriptors may be of a disk that has gone
        return False

    def _unencodable(self, error: Exception) -> None:
        self.report(f"Part of the history could not be kept ({type(error).__name__}: {error}).")

    def _commit(self, db: sqlite3.Connection, items: list[Item]) -> None:
        db.execute("BEGIN IMMEDIATE")
        try:
            refuse_newer_now(db)
            for item in items:
                self._insert(db, item.run_id, item.seq, item.body, item.record)
            db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                if db.in_transaction:
                    db.execute("ROLLBACK")
            raise

    def _insert(self, db: sqlite3.Connection, run_id: str, seq: int, body: bytes, record: object) -> None:
        try:
            if isinstance(record, Created):
                db.execute(
                    "INSERT INTO runs (id, created, model, status, pid, pid_started, owner, "
                    f"{', '.join(RunRow._fields)}) VALUES (?, ?, ?, 'running', ?, ?, ?{', ?' * len(RunRow._fields)})",
                    (run_id, record.created, record.request.model, *self._process, record.owner, *row_of(record)),
                )
            elif isinstance(record, Ended):
                db.execute(
                    "UPDATE runs SET status = ?, verdict = ?, said = said || ' ' || ? WHERE id = ?",
                    (record.status, record.verdict, searched(record.verdict or ""), run_id),
                )
            db.execute("INSERT INTO records (run_id, seq, body) VALUES (?, ?, ?)", (run_id, seq, body))
        except (sqlite3.IntegrityError, sqlite3.DataError, UnicodeError) as error:
            self._unencodable(error)  # this record never fits; the others do

    def _copy(self, items: list[Item]) -> None:
        """Remember what running runs have on disk."""
        for item in items:
            if isinstance(item.record, Created):
                self._copies[item.run_id] = [item.body]
            elif isinstance(item.record, Ended):
                self._copies.pop(item.run_id, None)
            elif item.run_id in self._copies:
                self._copies[item.run_id].append(item.body)
        while sum(len(body) for bodies in self._copies.values() for body in bodies) > MAX_COPY_BYTES:
            del self._copies[max(self._copies, key=lambda run_id: sum(map(len, self._copies[run_id])))]

    # --- the file itself --------------------------------------------------------------------------

    def _ready(self) -> None:
        """Open the file, or a new one where the old one is damaged, was removed or replaced."""
        found = identity(self._path)
        if self._db is not None and self._file is not None and found != self._file:
            self._leave()
            was = "removed" if found is None else "replaced"
            self.report(
                f"The history file {self._path.name} was {was} at {time.strftime('%H:%M:%S')}. A new one is used."
            )
        if self.suspect:
            self.suspect = False
            self._set_damaged_aside()
        if self._db is not None:
            return
        self._say_set_aside(open_file(self._path))
        if self._file is None:
            for message in readable_asides(self._path):
                self.report(message)
        before, self._file = self._file, identity(self._path)
        self._db = connect(self._path)
        if self._left or (before is not None and self._file != before):
            self._restore(self._db)
            self._left = False
        elif before is None and self._path.stat().st_size > CHECKED_AT_ONCE_BYTES:
            threading.Thread(target=self._check_later, name="history-check", daemon=True).start()

    def _leave(self) -> None:
        self.close()
        self._left = True

    def _check_later(self) -> None:
        if damage_of(self._path):
            self.suspect = True

    def _set_damaged_aside(self) -> None:
        damage = damage_of(self._path)
        if damage:
            self._leave()
            self._say_set_aside(aside_message(self._path, damage, set_aside(self._path)))

    def _say_set_aside(self, message: str) -> None:
        if message:
            self.set_aside = message
            self.report(message)

    def _restore(self, db: sqlite3.Connection) -> None:
        """Begin a new file with what running runs had in the old one."""
        items = []
        for run_id, bodies in self._copies.items():
            if db.execute("SELECT 1 FROM runs WHERE id = ?", (run_id,)).fetchone() is None:
                items += [Item(run_id, seq, decode_record(body), body) for seq, body in enumerate(bodies)]
        self._commit(db, items)

    # --- retention --------------------------------------------------------------------------------

    def idle_s(self) -> float:
        """Seconds until something is due though nothing is added."""
        return max(0.05, min(PRUNE_EVERY_S, self._prune_at_s - time.monotonic()))

    def prune(self) -> None:
        """Remove what was deleted a while ago and some runs that are past a limit, if that is due and nothing waits."""
        now_s = time.monotonic()
        if self._db is None or now_s < self._prune_at_s or self._waiting.all():
            return
        up_s = now_s - self._steady_s
        steady = abs(time.time() - self._clock_s - up_s) < STEADY_S
        try:
            refuse_newer_now(self._db)
            remove_marked(self._db, time.time())
            ages = steady and up_s >= AGES_AFTER_S
            gone = prune(self._db, self._retention, time.time(), ages)
            if gone == Deleted():
                gone = prune_ablations(ablation_folder(self._path), self._retention, time.time(), ages)
        except sqlite3.Error as error:
            log.warning("old runs could not be deleted: %s", error)
            gone = Deleted()
        if gone == Deleted():
            self._prune_at_s = now_s + (AGES_AFTER_S if up_s < AGES_AFTER_S else PRUNE_EVERY_S)
            return
        self._deleted = Deleted(*map(operator.add, self._deleted, gone))
        self._say_deleted()

    def _say_deleted(self) -> None:
        old, large, ablations = self._deleted
        parts = [f"{old:,} runs older than {self._retention.days:g} days"] if old else []
        if large:
            parts.append(f"{large:,} of the oldest runs, to stay below {(self._retention.max_bytes or 0) >> 20:,} MiB")
        if ablations:
            parts.append(f"{ablations:,} ablation{'s' * (ablations > 1)}, too old or the oldest of too many")
        message = f"Deleted from the history since the start: {', '.join(parts)}."
        self.messages = [one for one in self.messages if one != self._deleted_message]
        self._deleted_message = message
        self.report(message)
