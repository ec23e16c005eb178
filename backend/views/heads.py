"""What was last made of each run, for the many viewers who ask for the same at about the same time."""

import threading
import time
from typing import Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from tokendyno.backend.runs.run import Run

KEPT_S = 1.0
"""What an ended run is said to be also depends on later runs, such as a reading of texts by its arms."""

H = TypeVar("H")


class Kept(NamedTuple, Generic[H]):
    """The head of a run at a version, and when it was made (time.monotonic())."""

    version: int
    head: H
    at_s: float


class Heads(Generic[H]):
    """The newest head of each run that is in memory. Any thread may ask."""

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[Run, Kept[H]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def get(self, run: Run) -> Kept[H] | None:
        """The head of a run; None if there is none, or it is too old."""
        with self._lock:
            kept = self._kept.get(run)
        return kept if kept is not None and time.monotonic() < kept.at_s + KEPT_S else None

    def keep(self, run: Run, version: int, head: H) -> None:
        """This head was made of a run at this version."""
        with self._lock:
            self._kept[run] = Kept(version, head, time.monotonic())
