"""Records that are not on disk yet: in order, and bounded, so that a disk that stays full cannot take all memory."""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from backend.runs.records import Created, Ended, Record, encode_record

MAX_WAITING_BYTES = 64 << 20
"""Of encoded records. A run of 2,000 tokens has about 0.2 MB."""

KEPT_NUMBERS = 4096
"""Runs whose next record number is remembered; the oldest are long over."""

CUT = "The history could not be written during this run: part of it is missing here. Press Run to measure again."


@dataclass(slots=True, eq=False)
class Item:
    """A record on its way to disk. `seq`: its place in the run; `body`: encoded, empty until the writer did so."""

    run_id: str
    seq: int
    record: Record
    body: bytes = b""


class Waiting:
    """Any thread adds and looks; one writer encodes, takes out what it has written, and sheds what is too much."""

    def __init__(self, most_bytes: int = MAX_WAITING_BYTES) -> None:
        self.most_bytes = most_bytes
        self._items: deque[Item] = deque()
        self._next: dict[str, int] = {}
        self._cut: dict[str, bool] = {}  # runs that lost records and have not ended: whether wholly
        self._lock = threading.Lock()

    def add(self, run_id: str, *records: Record) -> None:
        """Append records of a run; several are written in one transaction."""
        with self._lock:
            seq = self._next.get(run_id, 0)
            self._next[run_id] = seq + len(records)
            if len(self._next) > KEPT_NUMBERS:
                del self._next[next(iter(self._next))]
            self._items += [Item(run_id, seq + i, record) for i, record in enumerate(records)]

    def all(self) -> list[Item]:
        """Everything that waits, oldest first."""
        with self._lock:
            return list(self._items)

    def of(self, run_id: str) -> list[Item]:
        """What waits of one run."""
        return [item for item in self.all() if item.run_id == run_id]

    @property
    def state(self) -> tuple[int, int, int]:
        """Records, runs and encoded bytes that wait."""
        items = self.all()
        return len(items), len({item.run_id for item in items}), sum(len(item.body) for item in items)

    # --- for the writer ---------------------------------------------------------------------------

    def encode(self, report: Callable[[Exception], None]) -> None:
        """Encode what is new. One record that cannot be encoded is reported and left out: it must not end the history
        of all others."""
        broken = []
        for item in self.all():
            if not item.body:
                try:
                    item.body = encode_record(item.record)
                except Exception as error:
                    broken.append(item)
                    report(error)
        self.remove(broken)

    def remove(self, items: Iterable[Item]) -> None:
        """Take out what was written, or cannot be."""
        gone = set(map(id, items))
        if gone:
            with self._lock:
                self._items = deque(item for item in self._items if id(item) not in gone)

    def shed(self, most_bytes: float) -> int:
        """Bring what waits below a limit, oldest run first; returns how many more runs lost records.

        A run that is wholly in memory goes as a whole; one that has begun on disk keeps its end, which says so.
        """
        lost = 0
        with self._lock:
            total = sum(len(item.body) for item in self._items)
            for run_id in dict.fromkeys(item.run_id for item in self._items):
                if total > most_bytes or run_id in self._cut:
                    fresh = run_id not in self._cut
                    freed = self._drop(run_id)
                    lost += fresh and freed > 0
                    total -= freed
        return lost

    def _drop(self, run_id: str) -> int:
        """Remove a run's records, all but its end if the disk has its beginning. Returns the bytes that this frees."""
        mine = [item for item in self._items if item.run_id == run_id]
        whole = self._cut.setdefault(run_id, isinstance(mine[0].record, Created))
        before = sum(len(item.body) for item in mine)
        end = mine[-1]
        kept: list[Item] = []
        if isinstance(end.record, Ended):
            del self._cut[run_id]
            if not whole:
                end.record = Ended(end.record.at_s, "interrupted", CUT)
                end.body = encode_record(end.record)
                kept = [end]
        self._items = deque(item for item in self._items if item.run_id != run_id or item in kept)
        return before - sum(len(item.body) for item in kept)
