"""The queue: waiting runs of each owner in order, and turns by owner. The bench holds its lock around every call."""

import itertools
import statistics
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import NamedTuple

from tokendyno.backend.config import Request
from tokendyno.backend.engine.conductor import Job
from tokendyno.backend.engine.prediction import work_of

KNOWN_RUNS = 32
"""Runs whose seconds the expected wait is estimated from."""


class QueuePlace(NamedTuple):
    """Where a run stands.

    ahead   runs that come before it, the one at work included
    wait_s  seconds until its turn as estimated from earlier runs; None: of a model before it none is known
    """

    ahead: int
    wait_s: float | None


class Turns:
    """Runs that wait. Owners take turns: the next run is of the owner whose last turn is longest ago."""

    def __init__(self) -> None:
        self._queues: OrderedDict[str, deque[Job]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def __iter__(self) -> Iterator[Job]:
        """In the order in which they will be taken."""
        queues = [list(queue) for queue in self._queues.values()]
        for turn in range(max(map(len, queues), default=0)):
            yield from (queue[turn] for queue in queues if turn < len(queue))

    def add(self, job: Job) -> None:
        self._queues.setdefault(job.owner, deque()).append(job)

    def take(self) -> Job | None:
        if not self._queues:
            return None
        owner, queue = self._queues.popitem(last=False)
        job = queue.popleft()
        if queue:
            self._queues[owner] = queue  # at the end: the others come first
        return job

    def remove(self, run_id: str) -> Job | None:
        for owner, queue in self._queues.items():
            for job in queue:
                if job.id == run_id:
                    queue.remove(job)
                    if not queue:
                        del self._queues[owner]
                    return job
        return None

    def clear(self) -> None:
        self._queues.clear()


class Pace:
    """How long runs took, and how long others of the same model will, by their tokens: another model's tell nothing."""

    def __init__(self) -> None:
        self._runs: deque[tuple[str, int, float]] = deque(maxlen=KNOWN_RUNS)

    def note(self, request: Request, seconds: float) -> None:
        self._runs.append((request.model, work_of(request), seconds))

    def expected_s(self, request: Request) -> float | None:
        rates = [seconds / work for model, work, seconds in self._runs if model == request.model]
        return statistics.median(rates) * work_of(request) if rates else None


def place_of(run_id: str, current: Job | None, turns: Turns, pace: Pace, now_s: float) -> QueuePlace | None:
    """Where a waiting run stands at `now_s` (time.monotonic); None if it does not wait. `current`: the run at work."""
    before = list(itertools.takewhile(lambda job: job.id != run_id, turns))
    if len(before) == len(turns):
        return None
    expected_s = [pace.expected_s(job.request) for job in before]
    if current is not None:
        whole_s = pace.expected_s(current.request)
        expected_s.append(None if whole_s is None else max(0.0, whole_s - (now_s - current.begin_s)))
    known = [seconds for seconds in expected_s if seconds is not None]
    return QueuePlace(len(expected_s), sum(known) if len(known) == len(expected_s) else None)
