"""Every record of every run, in the history file or in memory: one writer thread, any number of readers."""

import logging
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from tokendyno.backend.errors import InputError
from tokendyno.backend.messages import Progress
from tokendyno.backend.runs.history_file import READ_WAIT_S, cannot_be, check_format, connect
from tokendyno.backend.runs.history_writer import END_S, HistoryWriter, Item
from tokendyno.backend.runs.records import BROKEN_RECORD, UNREADABLE, ArmEvent, Created, Ended, Record, decode_record
from tokendyno.backend.runs.retention import Retention

log = logging.getLogger("tokendyno")

CHANGE_WAIT_S = 2.0
"""How long a change that a user asked for waits for a lock."""

_PHASES = "SELECT body FROM records WHERE run_id = ? AND instr(body, CAST('\"progress\"' AS BLOB)) ORDER BY seq"


class Store:
    """`path` None keeps the history in memory only. InputError if no history can be kept at `path`."""

    def __init__(self, path: Path | None, retention: Retention | None = None) -> None:
        self.path = path
        self._memory: dict[str, list[Record]] = {}
        self._writer = None if path is None else HistoryWriter(path, retention or Retention())

    @property
    def messages(self) -> list[str]:
        return self._writer.messages if self._writer else []

    @property
    def trouble(self) -> str:
        return self._writer.trouble if self._writer else ""

    def add(self, run_id: str, *records: Record) -> None:
        """Store further records in one transaction. They are on disk within about 0.1 s, or after `flush`."""
        if self._writer:
            self._writer.add(run_id, *records)
        else:
            self._memory.setdefault(run_id, []).extend(records)

    def flush(self, limit_s: float = END_S) -> None:
        """Return when everything added so far is on disk, or could not be written, or after `limit_s`."""
        if self._writer:
            self._writer.flush(limit_s)

    def settle(self) -> None:
        """Write what waits, so that a query sees it, unless the file cannot be written at this moment."""
        if self._waiting() and not self.trouble:
            self.flush()

    def close(self) -> None:
        if self._writer:
            self._writer.close()

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """A transaction on the rows of runs, of a history with a `path`. sqlite3.Error if it cannot be written."""
        self.settle()
        assert self.path is not None
        with closing(connect(self.path, CHANGE_WAIT_S)) as db, db:
            db.execute("BEGIN IMMEDIATE")
            check_format(db, self.path)
            yield db

    def pin(self, run_id: str, pinned: bool) -> None:
        """Keep a run whatever its age, or no longer. KeyError: no such run; sqlite3.Error: not written."""
        with self.change() as db:
            if not db.execute("UPDATE runs SET pinned = ? WHERE id = ?", (pinned, run_id)).rowcount:
                raise KeyError(run_id)

    # --- reading ----------------------------------------------------------------------------------

    def read(self, run_id: str) -> list[Record]:
        """All records of a run in order, up to one that cannot be read. InputError if the file cannot be read."""
        if self.path is None:
            return list(self._memory.get(run_id, []))
        waiting = [item for item in self._waiting() if item.run_id == run_id]  # before the file: some may be in both
        records = [] if waiting and waiting[0].seq == 0 else self._read_file(run_id)
        records += [item.record for item in waiting if item.seq >= len(records)]
        return records if records and isinstance(records[0], Created) else []

    def ended_phases(self, run_id: str) -> list[ArmEvent]:
        """The ends of a run's phases in order. InputError if the file cannot be read now."""
        if self.path is None or any(item.run_id == run_id for item in self._waiting()):
            return _phase_ends(self.read(run_id))
        records = list[Record]()
        for (body,) in self.query(_PHASES, (run_id,)):
            with suppress(*BROKEN_RECORD):
                records.append(decode_record(body))
        return _phase_ends(records)

    def _read_file(self, run_id: str) -> list[Record]:
        records, whole = list[Record](), True
        rows = self.query(
            "SELECT status, body FROM runs JOIN records ON run_id = id WHERE id = ? AND deleted_at IS NULL "
            "ORDER BY seq",
            (run_id,),
        )
        for status, body in rows:
            try:
                records.append(decode_record(body))
            except BROKEN_RECORD:
                whole = False
                break
            whole = status == "running" or isinstance(records[-1], Ended)
        if not whole:
            records.append(Ended(getattr(records[-1], "at_s", 0.0) if records else 0.0, "interrupted", UNREADABLE))
        return records

    def recent(self, model: str, limit: int) -> list[Created]:
        """The first records of a model's newest runs, the newest first. InputError if the file cannot be read."""
        by_id = {created.id: created for created in reversed(self._begun()) if created.request.model == model}
        if self.path is not None:
            sql = (
                "SELECT body FROM runs JOIN records ON run_id = id AND seq = 0 WHERE model = ? "
                "AND deleted_at IS NULL ORDER BY created DESC LIMIT ?"
            )
            for (body,) in self.query(sql, (model, limit)):
                with suppress(*BROKEN_RECORD):
                    if isinstance(created := decode_record(body), Created):
                        by_id.setdefault(created.id, created)
        return sorted(by_id.values(), key=lambda created: -created.created)[:limit]

    def newest(self, owner: str) -> str | None:
        """Id of an owner's run that was created last; None if there is none, or the file cannot be read now."""
        runs = [(created.created, created.id) for created in self._begun() if created.owner == owner]
        if self.path is not None:
            sql = (
                "SELECT CAST(created AS REAL), id FROM runs WHERE owner = ? AND deleted_at IS NULL "
                "ORDER BY created DESC LIMIT 1"
            )
            with suppress(InputError):
                runs += self.query(sql, (owner,))
        runs.reverse()  # of runs of one moment the last counts
        return max(runs, key=lambda run: run[0])[1] if runs else None

    def query(self, sql: str, values: Sequence[object] | Mapping[str, object]) -> list[tuple[Any, ...]]:
        """Rows of the file. InputError if it cannot be read now. Only of a history with a `path`."""
        assert self.path is not None
        try:
            with closing(connect(self.path, READ_WAIT_S)) as db:
                return db.execute(sql, values).fetchall()
        except UnicodeEncodeError:  # nothing that is kept has half of a character
            return []
        except sqlite3.Error as error:
            log.warning("the history could not be read: %s", error)
            raise InputError(cannot_be("read", self.path, error)) from error

    def _begun(self) -> list[Created]:
        """The first records of runs in memory."""
        records = [of_run[0] for of_run in list(self._memory.values())]
        records += [item.record for item in self._waiting()]
        return [record for record in records if isinstance(record, Created)]

    def _waiting(self) -> list[Item]:
        return self._writer.waiting() if self._writer else []


def _phase_ends(records: Sequence[Record]) -> list[ArmEvent]:
    events = [record for record in records if isinstance(record, ArmEvent)]
    return [record for record in events if isinstance(record.event, Progress) and record.event.state == "end"]
