"""The clocks of a measured run: the host's, and that of the device.

On CUDA an event is recorded in the stream, without waiting. Its time is read later, by another thread: the measured
path is never synchronized.
"""

import time
from typing import Any, Protocol

import torch


class Clock(Protocol):
    """Takes times, and tells the seconds between two of them."""

    def now(self) -> Any:
        """A time, or an event that has one once the device gets there."""

    def between(self, begin: Any, end: Any) -> float:
        """Seconds."""


class HostClock:
    """`time.perf_counter`."""

    def now(self) -> float:
        return time.perf_counter()

    def between(self, begin: float, end: float) -> float:
        return end - begin


class CudaClock:
    """CUDA events in the current stream."""

    def now(self) -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, begin: Any, end: Any) -> float:
        return float(begin.elapsed_time(end)) / 1e3


def clock_of(cuda: bool) -> Clock:
    """The clock of a device."""
    return CudaClock() if cuda else HostClock()
