"""How often a viewer should pull: less often, the busier this process is, but at least once a second."""

import threading
import time

SHARE = 0.35
"""Of one core: what this process may use while it is watched. It also feeds the runs, and may share its cores with
them."""

FASTEST_MS, SLOWEST_MS = 60, 800
"""The slowest leaves the answer 200 ms of the second."""

WINDOW_S = 0.5


class Pace:
    """Measures this process's CPU time between pulls. Any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._every_ms = float(FASTEST_MS)
        self._at_s, self._used_s = time.monotonic(), time.process_time()

    def every_ms(self) -> int:
        """Milliseconds until a viewer should pull again."""
        now_s = time.monotonic()
        with self._lock:
            passed_s = now_s - self._at_s
            if passed_s >= WINDOW_S:
                used_s = time.process_time()
                self._every_ms = adapted(self._every_ms, (used_s - self._used_s) / passed_s)
                self._at_s, self._used_s = now_s, used_s
            return round(self._every_ms)


def adapted(every_ms: float, share: float) -> float:
    """The next period, where this process used `share` of a core at the present one. A step at most doubles or halves
    it, so that one slow moment does not make all viewers wait."""
    return min(SLOWEST_MS, max(FASTEST_MS, every_ms * min(2.0, max(0.5, share / SHARE))))


PACE = Pace()
"""Of this process, for all panels."""
