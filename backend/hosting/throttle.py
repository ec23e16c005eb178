"""Counts failures by key and says when there were too many lately. Bounded: the oldest keys are forgotten first."""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

MAX_KEYS = 4_096


class Throttle:
    """At most `most` failures of a key in `per_s` seconds."""

    def __init__(self, most: int, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._per_s, self._clock = most, per_s, clock
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait_s(self, key: str) -> float:
        """Seconds until this key may try again; 0: now."""
        with self._lock:
            failures = self._recent(key)
            return failures[0] + self._per_s - self._clock() if len(failures) >= self._most else 0.0

    def take(self, key: str) -> None:
        """Count an attempt of this key, before it is known to fail: attempts at the same time count as well."""
        with self._lock:
            failures = self._recent(key)
            failures.append(self._clock())
            self._failures[key] = failures
            self._failures.move_to_end(key)
            while len(self._failures) > MAX_KEYS:
                self._failures.popitem(last=False)

    def give_back(self, key: str) -> None:
        """This key's last attempt succeeded: it does not count, those before it still do."""
        with self._lock:
            failures = self._recent(key)
            if failures:
                failures.pop()

    def _recent(self, key: str) -> deque[float]:
        failures = self._failures.get(key, deque())
        while failures and failures[0] <= self._clock() - self._per_s:
            failures.popleft()
        return failures
