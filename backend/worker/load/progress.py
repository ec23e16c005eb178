"""Progress and peak memory of a load, sampled by a thread beside it."""

import threading

import torch

from tokendyno.backend.messages import Amount
from tokendyno.backend.plan import LoadPlan
from tokendyno.backend.worker.channel import Steps
from tokendyno.backend.worker.load.device import Observed
from tokendyno.backend.worker.measure.memory import MemoryMeter

HOST_SAMPLE_S = 0.02
"""Host memory is sampled: a peak shorter than this may be missed."""
_REPORT_S = 0.5


class LoadProgress:
    """Reports a load's progress as the memory that has arrived of `expected_bytes`, every half second while it grows,
    and records the peaks of host and device memory in `observed`."""

    def __init__(self, plan: LoadPlan, steps: Steps, expected_bytes: int, observed: Observed) -> None:
        self._steps, self._expected_bytes, self._peak_bytes = steps, expected_bytes, observed.peak_bytes
        self._cuda, self._host_bytes = plan.device == "cuda", MemoryMeter("cpu").read
        self._devices = plan.parallel.devices
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="load-progress", daemon=True)

    def __enter__(self) -> "LoadProgress":
        if self._cuda:
            torch.cuda.reset_peak_memory_stats()
        self._base_bytes = self._read()
        self._peak_bytes["host"] = self._host_bytes()
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()
        self._peak_bytes["host"] = max(self._peak_bytes["host"], self._host_bytes())
        if self._cuda:
            self._peak_bytes["device"] = torch.cuda.max_memory_reserved()

    def _read(self) -> int:
        """Bytes on the device, or on all those over which the layers are spread."""
        if not self._cuda:
            return self._host_bytes()
        if self._devices == 1:
            return int(torch.cuda.memory_allocated())
        return sum(int(torch.cuda.memory_allocated(index)) for index in range(self._devices))

    def _work(self) -> None:
        last, due_s = 0.0, _REPORT_S
        while not self._stop.wait(HOST_SAMPLE_S):
            self._peak_bytes["host"] = max(self._peak_bytes["host"], self._host_bytes())
            due_s -= HOST_SAMPLE_S
            if due_s > 0:
                continue
            due_s = _REPORT_S
            loaded_bytes = max(0, self._read() - self._base_bytes)
            fraction = min(0.99, loaded_bytes / self._expected_bytes) if self._expected_bytes else None
            if (fraction or loaded_bytes) > last:
                last = fraction or loaded_bytes
                self._steps.step(fraction, amount=Amount(loaded_bytes, self._expected_bytes or None))
