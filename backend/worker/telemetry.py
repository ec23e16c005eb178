"""Samples the worker's memory beside the measured path: NVML for a GPU, resident memory on a CPU."""

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import psutil

SAMPLE_EVERY_S = 0.1


class MemoryMeter:
    """Reads one number, bytes, and says what it is.

    On a GPU: what NVML counts for this process; where NVML does not show processes (containers, WSL), what
    is in use on the whole device, and the label says so.
    """

    def __init__(self, device: str) -> None:
        self._process = psutil.Process()
        self.label = "resident memory of the worker (RSS)"
        self.read: Callable[[], int] = self._resident
        if device == "cuda":
            self._use_nvml()

    def _resident(self) -> int:
        return int(self._process.memory_info().rss)

    def _use_nvml(self) -> None:
        import torch

        def allocator() -> int:
            return int(torch.cuda.memory_reserved())

        self.read, self.label = allocator, "GPU memory reserved by the allocator (NVML gives none)"
        with contextlib.suppress(Exception):
            import pynvml

            pynvml.nvmlInit()
            handle = _own_device(pynvml)
            torch.zeros(1, device="cuda")

            def own() -> int | None:
                for found in pynvml.nvmlDeviceGetComputeRunningProcesses(handle):
                    if found.pid == os.getpid() and found.usedGpuMemory:
                        return int(found.usedGpuMemory)
                return None

            if own() is not None:
                self.read, self.label = lambda: own() or 0, "GPU memory of the worker (NVML)"
            else:
                self.read = lambda: int(pynvml.nvmlDeviceGetMemoryInfo(handle).used)
                self.label = "GPU memory in use on the whole device (NVML)"


def _own_device(pynvml: Any) -> Any:
    """NVML's handle of the device that torch calls 0: their numbering differs under CUDA_VISIBLE_DEVICES."""
    import torch

    uuid = str(torch.cuda.get_device_properties(0).uuid)
    return pynvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith("GPU-") else f"GPU-{uuid}")


class Sampler:
    """A thread that reads a meter every 0.1 s between `start` and `stop`.

    `latest` is the newest reading; `take` hands out the samples since the last take as (seconds since
    `start`, bytes).
    """

    def __init__(self, meter: MemoryMeter) -> None:
        self._meter = meter
        self._stop = threading.Event()
        self._samples: deque[tuple[float, int]] = deque()
        self.latest = meter.read()
        self.peak = self.latest
        self._begin_s = time.perf_counter()
        self._thread = threading.Thread(target=self._work, name="telemetry", daemon=True)

    def start(self) -> None:
        """Begin; time 0 is now."""
        self._begin_s = time.perf_counter()
        self._read()
        self._thread.start()

    def stop(self) -> None:
        """Take a last sample and end."""
        self._stop.set()
        self._thread.join()
        self._read()

    def take(self) -> list[tuple[float, int]]:
        """Samples that were not taken yet."""
        return [self._samples.popleft() for _ in range(len(self._samples))]

    def _work(self) -> None:
        while not self._stop.wait(SAMPLE_EVERY_S):
            self._read()

    def _read(self) -> None:
        self.latest = self._meter.read()
        self.peak = max(self.peak, self.latest)
        self._samples.append((time.perf_counter() - self._begin_s, self.latest))
