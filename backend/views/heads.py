"""A cache of the newest head of each run, for the many viewers who ask for it at about the same time, and the answer to
one of them."""

import threading
import time
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from tokendyno.backend.runs.run import Run, Update
from tokendyno.backend.runs.snapshot import Snapshot

FRESH_S = 1.0
"""How long a cached head is used: the verdict on an ended run also depends on later runs, such as a reading of texts
by its arms."""

H = TypeVar("H", bound=msgspec.Struct)
C = TypeVar("C")


class CachedHead(NamedTuple, Generic[H]):
    """The head of a run at a version, and when it was made (time.monotonic())."""

    version: int
    head: H
    at_s: float


class Heads(Generic[H]):
    """The newest head of each run that is in memory. Any thread may ask."""

    def __init__(self) -> None:
        self._heads: WeakKeyDictionary[Run, CachedHead[H]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def get(self, run: Run) -> CachedHead[H] | None:
        """The head of a run; None if there is none, or it is too old."""
        with self._lock:
            cached = self._heads.get(run)
        return cached if cached is not None and time.monotonic() < cached.at_s + FRESH_S else None

    def keep(self, run: Run, version: int, head: H) -> None:
        """This head was made of a run at this version."""
        with self._lock:
            self._heads[run] = CachedHead(version, head, time.monotonic())


def pulled(
    run: Run,
    version: int,
    now_s: float,
    heads: Heads[H] | None,
    read: Callable[[int | None], Update[C]],
    make: Callable[[Snapshot, float], H],
) -> tuple[Update[C], H | None]:
    """What lies past a viewer's cursors, and the head where the viewer's version is not current. `read`: the run past
    the cursors, without a snapshot at the version of a head that is cached."""
    cached = heads.get(run) if heads else None
    past = read(cached.version if cached else None)
    if past.snapshot is not None:
        head = make(past.snapshot, now_s)
        if heads:
            heads.keep(run, past.version, head)
        return past, head
    if cached and past.version != version:
        return past, msgspec.structs.replace(cached.head, now_s=now_s)
    return past, None
