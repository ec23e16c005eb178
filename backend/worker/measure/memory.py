"""Samples the worker's memory beside the measured path: from NVML on a GPU, resident memory on a CPU."""

import contextlib
import ctypes
import gc
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import torch

from tokendyno.backend.counts import Memory, RunCounts
from tokendyno.backend.messages import Annotation, RankMemory
from tokendyno.backend.worker.channel import repeating
from tokendyno.backend.worker.measure.interference import CHECK_EVERY_S, CpuProbe, GpuProbe, Nvml, Watch, open_nvml
from tokendyno.backend.worker.prove.tensor_bytes import bytes_on, cache_tensors, weight_tensors

SAMPLE_EVERY_S = 0.1
SENT_SAMPLES = 200
"""About as many memory samples of each rank or device are sent with a run."""


class MemoryMeter:
    """Reads one number of bytes; `label` says what it is. On a GPU what NVML counts for this process, or for the whole
    device where it does not show processes (containers, WSL).

    shared_process  other work runs in this process too: the label says that the worker's part cannot be separated
    """

    def __init__(self, device: str, shared_process: bool = False, index: int | None = None) -> None:
        process = psutil.Process()
        self.device, self.index = device, index
        self.gpu: Nvml | None = None
        self.label = "resident memory of the worker (RSS)"
        self._source: Callable[[], int | None] = lambda: int(process.memory_info().rss)
        self._last = 0
        self._peaks = False
        if device == "cuda":
            self._use_nvml()
        if shared_process:
            self.label = self.label.replace("of the worker", "of this process") + ", not separable by arm"

    def read(self) -> int:
        """Bytes now; where a read is refused the latest value, because 0 was never read."""
        self._last = self._source() or self._last
        return self._last

    def settled(self) -> int:
        """Bytes now, after everything unused was given back to the system."""
        self.empty()
        return self.read()

    def empty(self) -> None:
        """Give back to the system what earlier runs no longer use, on the GPU too. The next steps allocate anew."""
        gc.collect()
        if sys.platform == "linux":  # glibc keeps the free part of its heap otherwise; musl has no such function
            getattr(ctypes.CDLL(None), "malloc_trim", lambda _: None)(0)
        if self.device == "cuda":
            torch.cuda.empty_cache()

    def begin_peak(self) -> None:
        """Let the kernel find the peak of resident memory from now on, where it does (Linux, `man 5 proc`)."""
        self._peaks = False
        if self.device != "cuda":
            with contextlib.suppress(OSError):  # refused
                Path("/proc/self/clear_refs").write_text("5")
                self._peaks = True

    def peak(self) -> int:
        """Peak since `begin_peak`; 0 where nobody looked for it between two readings."""
        lines = Path("/proc/self/status").read_text().splitlines() if self._peaks else []
        return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:")), 0)

    def _use_nvml(self) -> None:
        self._source = lambda: int(torch.cuda.memory_reserved(self.index))
        self.label = "GPU memory reserved by the allocator (NVML gives none)"
        torch.zeros(1, device=torch.device("cuda", self.index))  # a context, so that NVML shows this process
        gpu = self.gpu = open_nvml(self.index)
        if gpu is None:
            return
        if gpu.memory_bytes() is not None:
            self._source, self.label = gpu.memory_bytes, "GPU memory of the worker (NVML)"
        elif gpu.used_bytes() is not None:
            self._source, self.label = gpu.used_bytes, "GPU memory in use on the whole device (NVML)"


class Sampler:
    """While entered, a thread that reads the meters every 0.1 s and looks for interference each half second.

    latest     the newest reading
    peak       the highest, or on a CPU the kernel's own, which misses nothing in between
    histories  of each device: (seconds since it was entered, bytes)
    history    of the first
    """

    def __init__(self, meter: MemoryMeter, other_meters: Sequence[MemoryMeter] = ()) -> None:
        self._meter, self._meters = meter, [meter, *other_meters]
        self.histories: list[list[tuple[float, int]]] = [[] for _ in self._meters]
        self.history = self.histories[0]
        self._taken = 0
        self.latest = self.peak = meter.read()
        self._begin_s = time.perf_counter()
        self._watch = Watch([CpuProbe(), *([GpuProbe(meter.gpu)] if meter.gpu is not None else [])])
        self._sampling = repeating(self._sample, SAMPLE_EVERY_S, "memory")

    def __enter__(self) -> "Sampler":
        if self._meter.device == "cuda":
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        self._begin_s = time.perf_counter()
        self._meter.begin_peak()
        self._read()
        self._watch.begin()
        self._sampling.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._sampling.__exit__(None, None, None)
        self._read()
        self.peak = max(self.peak, self._meter.peak())
        self._watch.end()

    def take(self) -> list[tuple[float, int]]:
        first, self._taken = self._taken, len(self.history)
        return self.history[first : self._taken]

    def take_annotations(self) -> list[Annotation]:
        return self._watch.take()

    def figures(self) -> RunCounts:
        """Memory of the run that ended, as the meter's label says and by torch's allocator (CUDA), and the figures of
        the probes."""
        allocator: dict[str, int] = {}
        if self._meter.device == "cuda":
            allocator["allocator_now_bytes"] = torch.cuda.memory_allocated()
            allocator["allocator_peak_bytes"] = torch.cuda.max_memory_allocated()
            allocator["allocator_reserved_bytes"] = torch.cuda.max_memory_reserved()
        memory = Memory(process_now_bytes=self.latest, **allocator)
        return RunCounts(memory=memory, machine=self._watch.figures())

    def _sample(self) -> None:
        self._read()
        if len(self.history) % round(CHECK_EVERY_S / SAMPLE_EVERY_S) == 0:
            self._watch.check()

    def _read(self) -> None:
        for meter, history in zip(self._meters, self.histories, strict=True):
            history.append((time.perf_counter() - self._begin_s, meter.read()))
        self.latest = self.history[-1][1]
        self.peak = max(self.peak, self.latest)


# --- several ranks or devices -------------------------------------------------------------------------


def of_devices(model: Any, cache: Any, sampler: Sampler) -> list[RankMemory]:
    """What each GPU holds over which the layers of this process are spread."""
    weights, cached, devices = list(weight_tensors(model)), list(cache_tensors(cache)), []
    for index, history in enumerate(sampler.histories):
        device = f"cuda:{index}"
        sizes = bytes_on(device, weights), bytes_on(device, cached), max(size for _, size in history)
        devices.append(RankMemory(*sizes, *columns(history), of="device"))
    return devices


def columns(history: Sequence[tuple[float, int]]) -> tuple[list[float], list[int]]:
    """Seconds and bytes of about `SENT_SAMPLES` readings."""
    samples = history[:: max(1, len(history) // SENT_SAMPLES)]
    return [t_s for t_s, _ in samples], [size for _, size in samples]
