"""The host memory that an arm's processes may hold, where a mode limits it.

Polled, since no limit of the kernel fits: CUDA reserves far more addresses than it uses (RLIMIT_AS, RLIMIT_DATA), and
making a control group takes rights. An executor without processes of its own (a thread, a call on ZeroGPU) gives
nothing to poll: what it holds is the app's own memory, and is not limited.
"""

import contextlib
import time
from collections.abc import Callable

import psutil

from tokendyno.backend.engine.executor import Executor
from tokendyno.backend.hardware import Machine
from tokendyno.backend.hosting.limits import Limits

POLL_S = 0.2
"""A process that fills memory gets about 0.4 GB further in that time."""

FAMILY_S = 1.0
"""How often descendants are looked for: that reads something of every process of the machine."""

MACHINE_SHARE = 0.75
"""Of the machine's memory, where that is less than the mode's limit: the rest is for the page and the other arm."""

PREDICTED_SHARE = 0.9
"""Of the limit, which a prediction must not exceed: predictions are within 10% (lab/measurements.md)."""


def worker_limit(limits: Limits, machine: Machine) -> int | None:
    """Bytes that the processes of an arm may hold; None: no limit."""
    if limits.worker_bytes is None:
        return None
    return min(limits.worker_bytes, int(MACHINE_SHARE * machine.memory_bytes))


class MemoryWatch:
    """Polls processes, at most every `POLL_S`. `limit_bytes`: for all of them together, None for no limit."""

    def __init__(self, limit_bytes: int | None) -> None:
        self.limit_bytes = limit_bytes
        self._due_s = self._family_due_s = 0.0
        self._family = set[psutil.Process]()

    @property
    def wait_s(self) -> float:
        """Until the next poll is due."""
        return float("inf") if self.limit_bytes is None else max(0.0, self._due_s - time.monotonic())

    def exceeded(self, executor: Executor) -> bool:
        """Whether its processes hold more memory, files apart, shared pages once. False where no poll is due."""
        if self.limit_bytes is None or self.wait_s:
            return False
        now_s = time.monotonic()
        self._due_s = now_s + POLL_S
        if now_s >= self._family_due_s:
            self._family_due_s = now_s + FAMILY_S
            self._family = _family_of(executor)
        return all(_sum(self._family, bytes_of) > self.limit_bytes for bytes_of in (_resident_bytes, _shared_out_bytes))


def _family_of(executor: Executor) -> set[psutil.Process]:
    family = set[psutil.Process]()
    for pid in executor.pids:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            family |= {process, *process.children(recursive=True)}
    return family


def _sum(family: set[psutil.Process], bytes_of: Callable[[psutil.Process], int]) -> int:
    total = 0
    for process in family:
        with contextlib.suppress(psutil.Error):  # it has ended
            total += bytes_of(process)
    return total


def _resident_bytes(process: psutil.Process) -> int:
    info = process.memory_info()
    return int(info.rss) - int(getattr(info, "shared", 0))  # Linux alone tells that


def _shared_out_bytes(process: psutil.Process) -> int:
    info = process.memory_full_info()
    return int(getattr(info, "pss", info.uss))  # Linux alone tells that
