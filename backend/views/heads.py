"""What was last made of each run, for the many viewers who ask for the same at about the same time, and what one of
them gets."""

import threading
import time
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from tokendyno.backend.runs.run import Past, Run
from tokendyno.backend.runs.snapshot import Snapshot

KEPT_S = 1.0
"""What an ended run is said to be also depends on later runs, such as a reading of texts by its arms."""

H = TypeVar("H", bound=msgspec.Struct)
C = TypeVar("C")


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


def pulled(
    run: Run,
    version: int,
    now_s: float,
    heads: Heads[H] | None,
    read: Callable[[int | None], Past[C]],
    make: Callable[[Snapshot, float], H],
) -> tuple[Past[C], H | None]:
    """What lies past a viewer's cursors, and the head where the viewer's version is not current. `read`: the run past
    the cursors, without a snapshot at the version of a head that is kept."""
    kept = heads.get(run) if heads else None
    past = read(kept.version if kept else None)
    if past.snapshot is not None:
        head = make(past.snapshot, now_s)
        if heads:
            heads.keep(run, past.version, head)
        return past, head
    if kept and past.version != version:
        return past, msgspec.structs.replace(kept.head, now_s=now_s)
    return past, None
