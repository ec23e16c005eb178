"""Sends events up the pipe, one JSON line each, from any thread."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from backend.messages import Event, PhaseName, Progress, encode


class Outbox:
    """The worker's only way out. A broken pipe means that the parent is gone: the process ends."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self.phase: PhaseName = "start"

    def send(self, event: Event) -> None:
        """Write one event whole, before any other."""
        data = memoryview(encode(event) + b"\n")
        with self._lock:
            try:
                while data:
                    data = data[os.write(self._fd, data) :]
            except OSError:
                os._exit(0)

    @contextmanager
    def phasing(self, phase: PhaseName, note: str = "") -> Iterator["Steps"]:
        """Report the begin and end of a phase; yields what reports its steps."""
        self.phase = phase
        steps = Steps(self, phase)
        self.send(Progress(phase, "begin", 0.0, None, note))
        yield steps
        self.send(Progress(phase, "end", steps.seconds, 1.0))


class Steps:
    """Progress within one phase."""

    def __init__(self, outbox: Outbox, phase: PhaseName) -> None:
        self._outbox, self._phase, self._begin_s = outbox, phase, time.perf_counter()

    @property
    def seconds(self) -> float:
        """Since the phase began."""
        return time.perf_counter() - self._begin_s

    def step(self, fraction: float | None, note: str = "") -> None:
        """Say how far it is: 0..1, or None when unknown."""
        self._outbox.send(Progress(self._phase, "step", self.seconds, fraction, note))
