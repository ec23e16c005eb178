"""How often a viewer should pull: less often, the busier this process or its machine is, but at least once a second."""

import threading
import time

SHARE = 0.35
"""Of one core: what this process may use while it is watched."""

WAIT_S = 0.05
"""How long an answer may take on average: it also tells that others use the cores."""

FASTEST_MS, SLOWEST_MS = 60, 800
"""The slowest leaves the answer 200 ms of the second."""

WINDOW_S = 0.5


class Pace:
    """Measures this process's CPU time and its answers between pulls. Any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._every_ms = float(FASTEST_MS)
        self._at_s, self._used_s = time.monotonic(), time.process_time()
        self._answers, self._answers_s = 0, 0.0

    def took(self, seconds: float) -> None:
        """A pull was answered in this time."""
        with self._lock:
            self._answers += 1
            self._answers_s += seconds

    def waited(self, seconds: float) -> None:
        """For so long an answer waited on purpose."""
        with self._lock:
            self._answers_s -= seconds

    def every_ms(self) -> int:
        """Milliseconds until a viewer should pull again."""
        now_s = time.monotonic()
        with self._lock:
            passed_s = now_s - self._at_s
            if passed_s >= WINDOW_S:
                used_s = time.process_time()
                mean_s = self._answers_s / max(1, self._answers)
                load = max((used_s - self._used_s) / passed_s / SHARE, mean_s / WAIT_S)
                self._every_ms = adapted(self._every_ms, load)
                self._at_s, self._used_s = now_s, used_s
                self._answers, self._answers_s = 0, 0.0
            return round(self._every_ms)


def adapted(every_ms: float, load: float) -> float:
    """The next period, by the load at the present one; a step at most doubles or halves it."""
    return min(SLOWEST_MS, max(FASTEST_MS, every_ms * min(2.0, max(0.5, load))))


PACE = Pace()
"""Of this process, for all panels."""
