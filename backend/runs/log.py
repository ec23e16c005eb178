"""All runs: live and recent ones in memory, every one in the store."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

from tokendyno.backend.errors import InputError
from tokendyno.backend.runs.earlier import expected_s, whole_s
from tokendyno.backend.runs.quality import PairReading, same_pair, whole_reading
from tokendyno.backend.runs.records import UNREADABLE, Created, Ended, Expected, Record
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.store import Store

log = logging.getLogger("tokendyno")

CACHED_RUNS = 16

END_WAIT_S = 0.5
"""How long the end of a run may wait for the disk before it is shown; it takes some milliseconds as a rule."""

MAX_SEARCHED = 200
"""Runs of a model among which a reading of two arms is looked for, the newest first."""


class RunLog:
    """All runs: live and recent ones in memory, every one in the store. `recordings`: records of runs from files."""

    def __init__(self, store: Store, recordings: Callable[[str], list[Record]] = lambda run_id: []) -> None:
        self._store, self._recordings = store, recordings
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def trouble(self) -> str:
        return self._store.trouble

    def create(self, created: Created) -> Run:
        run = Run(created, live=True)
        self._store.add(created.id, created)
        self._remember(run)
        return run

    def append(self, run_id: str, record: Record) -> None:
        """Add a record to a live run. KeyError without one. An end is on disk before anybody sees it."""
        self._store.add(run_id, record)
        if isinstance(record, Ended) and not self._store.trouble:
            self._store.flush(END_WAIT_S)
        run = self.get(run_id)
        if run is None:
            raise KeyError(run_id)
        run.append(record)

    def get(self, run_id: str) -> Run | None:
        """A run by id, from memory or the store; None if there is none. InputError if the store cannot be read."""
        with self._lock:
            run = self._runs.get(run_id)
            if run is not None:
                self._runs.move_to_end(run_id)
                return run
        run = self._read(run_id)
        if run is not None and run.ended:  # a live run of another process keeps growing: read it again each time
            self._remember(run)
        return run

    def forget(self, run_id: str) -> None:
        """Drop what memory has of a run that was deleted or restored, once it has ended."""
        with self._lock:
            run = self._runs.get(run_id)
            if run is not None and run.ended:
                del self._runs[run_id]

    def _read(self, run_id: str) -> Run | None:
        records = self._recordings(run_id) or self._store.read(run_id)
        if not records or not isinstance(records[0], Created):
            return None
        run = Run(records[0])
        for record in records[1:]:
            try:
                run.append(record)
            except Exception as error:  # a file may hold anything
                log.warning("run %s cannot be followed to its end: %s: %s", run_id, type(error).__name__, error)
                run.append(Ended(getattr(record, "at_s", 0.0), "interrupted", UNREADABLE))
                break
        return run

    def expect(self, created: Created) -> None:
        """Add to a new run how long its phases took in earlier runs of the same shape, where there are any."""
        with suppress(InputError):  # a history that cannot be read stops no run
            whole_of = whole_s(self._store, created)
            for arm in created.arms:
                seconds, whole = expected_s(self._store, created, arm), whole_of.get(arm.name, {})
                if seconds or whole:
                    self.append(created.id, Expected(arm.name, seconds, whole))

    def reading(self, compared: Created) -> PairReading | None:
        """The newest complete run of the same owner that read texts with the arms of this one, or, where there is none,
        with its arms swapped; else None."""
        with suppress(InputError):
            recent = self._store.recent(compared.request.model, MAX_SEARCHED)
            for swapped in (False, True):
                for created in recent:
                    if same_pair(created, compared, swapped):
                        run = self.get(created.id)
                        whole = whole_reading(run.snapshot()) if run is not None and run.status == "done" else None
                        if whole is not None and whole.difference is not None:
                            return PairReading(created, whole, swapped)
        return None

    def compared(self, reading: Created) -> str:
        """Id of the newest complete run that compared the two arms of a reading with one prompt; "" without one."""
        with suppress(InputError):
            for created in self._store.recent(reading.request.model, MAX_SEARCHED):
                if created.request.quality is None and created.request.traffic is None and same_pair(reading, created):
                    run = self.get(created.id)
                    if run is not None and run.status == "done":
                        return run.id
        return ""

    def newest(self, owner: str) -> str | None:
        """Id of the owner's run in progress, else of the first in the queue, else of the newest; None without one."""
        with self._lock:
            live = [run for run in self._runs.values() if not run.ended and run.created.owner == owner]
            if live:
                return min(live, key=lambda run: run.created.created).id
        return self._store.newest(owner)

    def _remember(self, run: Run) -> None:
        with self._lock:
            self._runs[run.id] = run
            ended = [other.id for other in self._runs.values() if other.ended and other.id != run.id]
            for run_id in ended[: max(0, len(self._runs) - CACHED_RUNS)]:
                del self._runs[run_id]
