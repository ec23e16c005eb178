"""Counts bytes as they arrive, and tells how many there are and how fast they come."""

import threading
import time
from collections import deque
from collections.abc import Callable

from tokendyno.backend.messages import Amount
from tokendyno.backend.worker.channel import Steps

WINDOW_S = 5.0
"""The rate is that of the last seconds: it falls to nothing soon after a connection stalls."""

REPORT_S = 0.5

RESUMED_BYTES = 32 << 20
"""The Hub client counts pieces of 10 MB; more than this at once lay on disk from an earlier attempt, and says nothing
about the rate."""


class Arrivals:
    """Any thread may add; `report` sends how far it is, twice a second, even while nothing arrives.

    total_bytes  of all that will arrive; None where it is unknown
    """

    def __init__(self, total_bytes: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.total_bytes = total_bytes
        self._clock, self._lock = clock, threading.Lock()
        self._begin_s = clock()
        self._done_bytes = 0
        self._recent: deque[tuple[float, int]] = deque()

    def add(self, size_bytes: int) -> None:
        """So many more bytes are there; fewer, if part of them must be fetched again."""
        with self._lock:
            self._done_bytes = max(0, self._done_bytes + size_bytes)
            if 0 < size_bytes <= RESUMED_BYTES:
                self._recent.append((self._clock(), size_bytes))

    def amount(self) -> Amount:
        """How far it is now. The rate is None in the first half second."""
        with self._lock:
            now_s = self._clock()
            while self._recent and self._recent[0][0] < now_s - WINDOW_S:
                self._recent.popleft()
            span_s = min(WINDOW_S, now_s - self._begin_s)
            rate = sum(size for _, size in self._recent) / span_s if span_s >= REPORT_S else None
            return Amount(self._done_bytes, self.total_bytes, rate)


class Reporting:
    """Within it, `arrivals` are reported as the steps of a phase."""

    def __init__(self, arrivals: Arrivals, steps: Steps) -> None:
        self._arrivals, self._steps, self._stop = arrivals, steps, threading.Event()
        self._thread = threading.Thread(target=self._work, name="arrivals", daemon=True)

    def __enter__(self) -> "Reporting":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()
        self._report()

    def _work(self) -> None:
        while not self._stop.wait(REPORT_S):
            self._report()

    def _report(self) -> None:
        now = self._arrivals.amount()
        fraction = min(1.0, now.done_bytes / now.total_bytes) if now.total_bytes else None
        self._steps.step(fraction, amount=now)
