"""Every record of every run, in the history file or in memory: one writer thread, any number of readers."""

import queue
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil

from backend.runs.history_file import connect, open_file
from backend.runs.records import Created, Ended, Record, decode_record, encode_record


class Store:
    """Implements `backend.runs.log.Keeper`. `path` None keeps the history in memory only.

    messages  sentences for the user: what could not be read or written
    """

    def __init__(self, path: Path | None) -> None:
        self.messages: list[str] = []
        self.path = path
        self._memory: dict[str, list[Record]] = {}
        self._queue: queue.Queue[tuple[str, Record] | threading.Event | None] = queue.Queue()
        self._seq: dict[str, int] = {}
        if path is not None:
            message = open_file(path)
            if message:
                self._report(message)
            self._thread = threading.Thread(target=self._write, name="history", daemon=True)
            self._thread.start()

    def add(self, run_id: str, record: Record) -> None:
        """Store one more record. Returns at once; it is on disk within about 0.1 s, or after `flush`."""
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
        """Write what is left and end the writer thread."""
        if self.path is not None and self._thread.is_alive():
            self._queue.put(None)
            self._thread.join(timeout=30)

    def read(self, run_id: str) -> list[Record]:
        """All records of a run in order; empty if there is no such run."""
        if self.path is None:
            return list(self._memory.get(run_id, []))
        self.flush()
        with closing(connect(self.path)) as db:
            rows = db.execute("SELECT body FROM records WHERE run_id = ? ORDER BY seq", (run_id,)).fetchall()
        return [decode_record(body) for (body,) in rows]

    def recent(self, model: str, limit: int) -> list[Created]:
        """The first records of the newest runs of a model, as it was named, the newest first."""
        if self.path is None:
            return [first for _, first in self._begun() if first.request.model == model][:limit]
        self.flush()
        with closing(connect(self.path)) as db:
            rows = db.execute(
                "SELECT body FROM runs JOIN records ON run_id = id AND seq = 0 WHERE model = ? "
                "ORDER BY created DESC LIMIT ?", (model, limit),
            ).fetchall()  # fmt: skip
        return [one for (body,) in rows if isinstance(one := decode_record(body), Created)]

    def newest(self, owner: str) -> str | None:
        """Id of an owner's run that was created last; None if there is none."""
        if self.path is None:
            return next((run_id for run_id, first in self._begun() if first.owner == owner), None)
        self.flush()
        with closing(connect(self.path)) as db:
            query = "SELECT id FROM runs WHERE owner = ? ORDER BY created DESC LIMIT 1"
            row = db.execute(query, (owner,)).fetchone()
        return row[0] if row else None

    def _begun(self) -> Iterator[tuple[str, Created]]:
        """Runs that are kept in memory only, the one that was begun last first."""
        for run_id, records in reversed(list(self._memory.items())):
            if isinstance(records[0], Created):
                yield run_id, records[0]

    # --- the writer thread ------------------------------------------------------------------------

    def _write(self) -> None:
        assert self.path is not None
        db = connect(self.path)
        ending = False
        pending: list[tuple[str, Record]] = []  # what could not be written yet is retried with the next batch
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
                self._report(f"The history could not be written ({error}): this session's runs stay in memory only.")
            except Exception as error:  # one record that cannot be encoded must not end the history of all others
                pending = []
                self._report(f"Part of the history could not be kept ({type(error).__name__}: {error}).")
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
                        "INSERT INTO runs (id, created, model, status, pid, pid_started, owner) "
                        "VALUES (?, ?, ?, 'running', ?, ?, ?)",
                        (run_id, record.created, record.request.model, me.pid, me.create_time(), record.owner),
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

    def _report(self, message: str) -> None:
        if message not in self.messages:
            self.messages.append(message)
