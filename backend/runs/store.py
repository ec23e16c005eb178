"""Every record of every run, in the history file or in memory: one writer thread, any number of readers.

Nobody waits for the disk but the writer. What is not written yet is read from memory; while the file cannot be written
that goes on within bounds, `trouble` says so, and all of it is written once the trouble is over.
"""

import itertools
import logging
import math
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from backend.errors import InputError
from backend.runs.history_file import READ_WAIT_S, check_path, connect
from backend.runs.history_writer import HistoryWriter
from backend.runs.newer import refuse_newer_now
from backend.runs.records import BROKEN_RECORD, UNREADABLE, Created, Ended, Record, decode_record
from backend.runs.retention import Retention
from backend.runs.trouble import lost_sentence, passes, unread_sentence
from backend.runs.waiting import Waiting

log = logging.getLogger("tokendyno")

GATHER_S = 0.1
"""How long records are gathered for one transaction."""

RETRY_S = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Pauses between attempts while the file cannot be written; the last is repeated."""

END_S = 30.0
"""How long a flush, and the end of the app, wait for what is left to be written."""

CLOCK_SLACK_S = 60.0

CHANGE_WAIT_S = 2.0
"""How long a change that a user asked for waits for a lock."""

MAX_RUN_BYTES = 128 << 20
"""A stored run with more is not read: it would take several times as much memory."""


class Store:
    """Implements `backend.runs.log.Keeper`. `path` None keeps the history in memory only.

    InputError if no history can be kept at `path`.
    """

    def __init__(self, path: Path | None, retention: Retention | None = None) -> None:
        self.path = path
        self._memory: dict[str, list[Record]] = {}
        self._waiting = Waiting()
        if path is None:
            return
        check_path(path)
        self._writer = HistoryWriter(path, self._waiting, retention or Retention())
        self._some, self._urgent = threading.Event(), threading.Event()
        self._attempts = threading.Condition()
        self._asked = self._answered = 0
        self._closing = False
        self._writer.attempt(first=True)  # opens the file, so that what is wrong with it is known now
        self._thread = threading.Thread(target=self._write, name="history", daemon=True)
        self._thread.start()

    @property
    def messages(self) -> list[str]:
        """Sentences for the user: what could not be read or kept, and what was deleted."""
        return self._writer.messages if self.path is not None else []

    @property
    def trouble(self) -> str:
        """What is not being kept at this moment, and what to do; "" while all is well."""
        return self._writer.trouble if self.path is not None else ""

    def add(self, run_id: str, *records: Record) -> None:
        """Store further records, all of them in one transaction. Returns at once; they are on disk within about 0.1 s,
        or after `flush`."""
        if self.path is None:
            self._memory.setdefault(run_id, []).extend(records)
        else:
            self._waiting.add(run_id, *records)
            self._some.set()

    def flush(self, limit_s: float = END_S) -> None:
        """Return when everything added so far is on disk, or could not be written, or after `limit_s`."""
        if self.path is None or not self._thread.is_alive():
            return
        with self._attempts:
            self._asked += 1
            mine = self._asked
            self._some.set()
            self._urgent.set()
            self._attempts.wait_for(lambda: self._answered >= mine or not self._thread.is_alive(), timeout=limit_s)

    def close(self) -> None:
        """Write what is left and end the writer thread."""
        if self.path is not None and self._thread.is_alive():
            self._closing = True
            self._some.set()
            self._urgent.set()
            self._thread.join(timeout=END_S)

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """A transaction on the rows of runs: all of it is kept, or, on an exception, nothing. sqlite3.Error if the file
        cannot be written now. Only of a history with a `path`."""
        self.settle()
        assert self.path is not None
        with closing(connect(self.path, CHANGE_WAIT_S)) as db:  # which takes back what was not committed
            db.execute("BEGIN IMMEDIATE")
            refuse_newer_now(db)
            yield db
            db.execute("COMMIT")

    def settle(self) -> None:
        """Write what waits, so that a query sees it."""
        if self._waiting.all():
            self.flush()

    def pin(self, run_id: str, pinned: bool) -> None:
        """Keep a run whatever its age and the size of the file, or no longer. KeyError if the file has no such run;
        sqlite3.Error if it cannot be written."""
        with self.change() as db:
            if not db.execute("UPDATE runs SET pinned = ? WHERE id = ?", (pinned, run_id)).rowcount:
                raise KeyError(run_id)

    def read(self, run_id: str) -> list[Record]:
        """All records of a run in order; empty if there is no such run. Where one cannot be read, the run ends there
        and says so. InputError if the file cannot be read now."""
        if self.path is None:
            return list(self._memory.get(run_id, []))
        waiting = self._waiting.of(run_id)  # before the file: what is written meanwhile is in both
        records = [] if waiting and waiting[0].seq == 0 else self._read_file(run_id)
        records += [item.record for item in waiting if item.seq >= len(records)]
        return records if records and isinstance(records[0], Created) else []

    def _read_file(self, run_id: str) -> list[Record]:
        records: list[Record] = []
        row = self.query("SELECT status, deleted_at IS NOT NULL FROM runs WHERE id = ?", (run_id,))
        if row and row[0][1]:
            return []
        for seq, body in self.query(
            "SELECT seq, body FROM records WHERE run_id = ? AND "
            f"(SELECT sum(length(body)) FROM records WHERE run_id = ?) <= {MAX_RUN_BYTES} ORDER BY seq",
            (run_id, run_id),
        ):
            record = None
            if seq == len(records):
                with suppress(*BROKEN_RECORD):
                    record = decode_record(body)
            if record is None:
                row = []
                break
            records.append(record)
        if records and row != [("running", 0)] and not isinstance(records[-1], Ended):
            records.append(Ended(getattr(records[-1], "at_s", 0.0), "interrupted", UNREADABLE))
        return records

    def recent(self, model: str, limit: int) -> list[Created]:
        """The first records of the newest runs of a model, as it was named, the newest first. InputError if the file
        cannot be read now."""
        found = {first.id: first for first in reversed(self._begun()) if first.request.model == model}
        if self.path is not None:
            firsts_of = (
                "SELECT body FROM runs JOIN records ON run_id = id AND seq = 0 WHERE model = ? "
                "AND deleted_at IS NULL ORDER BY created DESC LIMIT ?"
            )
            for (body,) in self.query(firsts_of, (model, limit)):
                with suppress(*BROKEN_RECORD):
                    if isinstance(first := decode_record(body), Created):
                        found.setdefault(first.id, first)
        return sorted(found.values(), key=lambda first: -first.created)[:limit]

    def newest(self, owner: str) -> str | None:
        """Id of an owner's run that was created last; None if there is none, or the file cannot be read now. A run from
        the future, which a clock that jumped has left, counts as older than all others."""
        latest = time.time() + CLOCK_SLACK_S
        begun = [one for one in self._begun() if one.owner == owner]
        found: list[tuple[float, str | None]] = [(one.created, one.id) for one in begun]
        if self.path is not None:
            newest_of = (
                "SELECT created, id FROM runs WHERE owner = ? AND deleted_at IS NULL "
                "ORDER BY created > ?, created DESC LIMIT 1"
            )
            with suppress(InputError):
                found += [(_number(at), str(run_id)) for at, run_id in self.query(newest_of, (owner, latest))]
        found.reverse()  # of runs of one moment the last counts
        return max(found, key=lambda one: (one[0] <= latest, one[0]))[1] if found else None

    def _begun(self) -> list[Created]:
        """The first records of runs in memory."""
        firsts = [records[0] for records in list(self._memory.values())]
        firsts += [item.record for item in self._waiting.all()]
        return [first for first in firsts if isinstance(first, Created)]

    def query(self, sql: str, values: Sequence[object] | Mapping[str, object]) -> list[tuple[Any, ...]]:
        """Rows of the file. InputError if it cannot be read now. Only of a history with a `path`."""
        assert self.path is not None
        try:
            with closing(connect(self.path, READ_WAIT_S)) as db:
                return db.execute(sql, values).fetchall()
        except UnicodeEncodeError:  # nothing that is kept has half of a character
            return []
        except (sqlite3.Error, OSError) as error:
            if not passes(error):
                log.warning("the history could not be read: %s", error)
                self._writer.suspect = True
                self._some.set()
            raise InputError(unread_sentence(self.path.name, error)) from error

    def refuse_set_aside(self) -> None:
        """InputError if the file could not be read and was set aside: the one in its place holds none of what was
        kept."""
        if self.path is not None and self._writer.set_aside:
            raise InputError(self._writer.set_aside)

    # --- the writer thread ------------------------------------------------------------------------

    def _write(self) -> None:
        pauses_s: Iterator[float] | None = None
        while not self._closing:
            if pauses_s is None:
                self._some.wait(self._writer.idle_s())
                self._urgent.wait(GATHER_S)
            else:  # records keep coming; do not try for each of them
                self._urgent.wait(next(pauses_s))
            with self._attempts:
                asked = self._asked
                self._some.clear()
                self._urgent.clear()
            if self._attempt():
                pauses_s = None
            elif pauses_s is None:
                pauses_s = retries_s()
            with self._attempts:
                self._answered = asked
                self._attempts.notify_all()
        with suppress(Exception):
            self._writer.attempt()
        _, runs, _ = self._waiting.state
        if runs:
            self._writer.report(lost_sentence(runs, "the app ended before the history could be written"))
        self._writer.close()
        with self._attempts:
            self._attempts.notify_all()

    def _attempt(self) -> bool:
        """Write what waits, and forget what is too old. Whether that could be done."""
        try:
            written = self._writer.attempt()
            if written:
                self._writer.prune()
        except Exception:  # no fault of the history ends the writer
            log.exception("the history's writer failed")
            return False
        return written


def retries_s() -> Iterator[float]:
    """The pauses before the next attempts, without an end."""
    yield from RETRY_S
    yield from itertools.repeat(RETRY_S[-1])


def _number(value: Any) -> float:
    """A stored number; a damaged one counts as oldest."""
    return value if isinstance(value, float) else -math.inf
