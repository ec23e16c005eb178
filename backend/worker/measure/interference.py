"""Watches for interference with a measurement: lowered clocks, other programs on the GPU or the cores."""

import contextlib
import os
import statistics
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec
import psutil
import torch

from tokendyno.backend.counts import Machine
from tokendyno.backend.messages import Annotation, AnnotationKind

SLOWED = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x10: "sync boost",
    0x20: "heat (driver)",
    0x40: "heat (hardware)",
    0x80: "power brake",
}
"""Bits of the clocks event reasons that mean slower than the load would allow, which an idle GPU and clocks set by the
user do not. https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html"""

BUSY_PERCENT = 5
"""SM utilization from which another process counts as busy; a desktop takes less."""


class Nvml:
    """One GPU. Any single reading may be refused (containers, WSL, MIG, old boards): it is None then, never 0."""

    def __init__(self, pynvml: Any, handle: Any) -> None:
        self._nvml, self._handle = pynvml, handle
        self._seen_us = 0

    def _read(self, name: str, *args: Any) -> Any:
        try:
            return getattr(self._nvml, name)(self._handle, *args)
        except self._nvml.NVMLError:  # refused
            return None

    def memory_bytes(self) -> int | None:
        processes = self._read("nvmlDeviceGetComputeRunningProcesses") or []
        return next((int(p.usedGpuMemory) for p in processes if p.pid == os.getpid() and p.usedGpuMemory), None)

    def used_bytes(self) -> int | None:
        info = self._read("nvmlDeviceGetMemoryInfo")
        return None if info is None else int(info.used)

    def energy_j(self) -> float | None:
        """Energy used by the whole GPU since the driver was loaded."""
        millijoules = self._read("nvmlDeviceGetTotalEnergyConsumption")
        return None if millijoules is None else millijoules / 1e3

    def figures(self) -> dict[str, float]:
        """Clock, temperature and power now, by the names of `counts.Machine`; refused readings are left out."""
        reads = {
            "sm_clock_mhz": (self._read("nvmlDeviceGetClockInfo", 1), 1.0),  # NVML_CLOCK_SM
            "temperature_c": (self._read("nvmlDeviceGetTemperature", 0), 1.0),  # NVML_TEMPERATURE_GPU
            "power_w": (self._read("nvmlDeviceGetPowerUsage"), 1e-3),
        }
        return {name: value * scale for name, (value, scale) in reads.items() if value is not None}

    def slowed(self) -> list[str] | None:
        """Why the clocks are lower than the load would allow; None where the driver does not say."""
        bits = self._read("nvmlDeviceGetCurrentClocksEventReasons")
        return None if bits is None else [word for bit, word in SLOWED.items() if bits & bit]

    def other_processes(self) -> list[int] | None:
        """Other programs' processes that kept the SMs busy since the last call; None where the driver does not say, or
        gives ids of another namespace (in a container), in which this process is not listed."""
        processes = self._read("nvmlDeviceGetComputeRunningProcesses") or []
        if os.getpid() not in {process.pid for process in processes}:
            return None
        samples = self._read("nvmlDeviceGetProcessUtilization", self._seen_us)
        if samples is None:
            return None
        self._seen_us = max([self._seen_us, *(int(s.timeStamp) for s in samples)])
        return sorted({int(s.pid) for s in samples if s.smUtil >= BUSY_PERCENT and not of_this_bench(int(s.pid))})


def open_nvml(index: int | None = None) -> Nvml | None:
    """NVML for torch's device with that index, or for its current one; None where it is missing or refuses."""
    with contextlib.suppress(Exception):  # NVML raises its own hierarchy, and ImportError when absent
        import pynvml

        pynvml.nvmlInit()
        uuid = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0].strip()
        if not uuid.startswith("MIG-") or "/" in uuid:  # a MIG slice is the only device
            uuid = f"GPU-{str(torch.cuda.get_device_properties(index).uuid).removeprefix('GPU-')}"
        return Nvml(pynvml, pynvml.nvmlDeviceGetHandleByUUID(uuid))
    return None


def of_this_bench(pid: int) -> bool:
    """Whether a process is this worker, or another worker of the same engine (an arm that waits for its turn)."""
    with contextlib.suppress(psutil.Error):
        return pid == os.getpid() or psutil.Process(pid).ppid() == os.getppid()
    return False


def process_name(pid: int) -> str:
    with contextlib.suppress(psutil.Error):
        return f"{psutil.Process(pid).name()}, process {pid}"
    return f"process {pid}"


# --- probes -------------------------------------------------------------------------------------------

CHECK_EVERY_S = 0.5
FULL_SHARE, OTHERS_SHARE = 0.95, 0.10
"""CPU cores are contended when less than 1 - FULL_SHARE of their time is idle and other programs take OTHERS_SHARE. A
browser that shows the live page takes 6% to 13% of two cores (lab/measurements.md), so on its own it does not count."""

Cause = tuple[AnnotationKind, str]


class GpuProbe:
    """Clocks, temperature, power, energy and other programs, from NVML: means of the samples, but for
    `sm_clock_low_mhz` (the lowest), `temperature_c` (the highest) and `energy_j` (of the whole GPU, begin to end)."""

    def __init__(self, gpu: Nvml) -> None:
        self._gpu = gpu
        self._samples: dict[str, list[float]] = {}
        self._energy_j: float | None = None
        self._spent_j: float | None = None

    def begin(self) -> None:
        self._gpu.other_processes()  # activity before the run does not count
        self._energy_j = self._gpu.energy_j()

    def check(self) -> list[Cause]:
        figures, now_j = self._gpu.figures(), self._gpu.energy_j()
        if now_j is not None and self._energy_j is not None:
            self._spent_j = now_j - self._energy_j
        slowed, other_pids = self._gpu.slowed(), self._gpu.other_processes()
        for name, answer in (("gpu_slowed_share", slowed), ("gpu_others_share", other_pids)):
            if answer is not None:
                figures[name] = bool(answer)
        for name, value in figures.items():
            self._samples.setdefault(name, []).append(value)
        causes: list[Cause] = [("throttle", f"the GPU lowered its clocks ({why})") for why in slowed or []]
        return causes + [("foreign", f"another program used the GPU ({process_name(pid)})") for pid in other_pids or []]

    def figures(self) -> dict[str, float]:
        figures = {name: statistics.fmean(values) for name, values in self._samples.items()}
        if "temperature_c" in figures:
            figures["temperature_c"] = max(self._samples["temperature_c"])
        if "sm_clock_mhz" in figures:
            figures["sm_clock_low_mhz"] = min(self._samples["sm_clock_mhz"])
        if self._spent_j is not None:
            figures["energy_j"] = self._spent_j
        return figures


class CpuProbe:
    """The CPU cores that this process may use; `cpu_others_cores`: the mean number that other programs kept busy."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(psutil.cpu_count() or 1)
        self._samples: list[tuple[float, float]] = []  # seconds, core-seconds of others
        self._before = self._now()

    def _now(self) -> tuple[float, float, float]:
        """(clock, busy core-seconds of all programs, core-seconds of this process)."""
        chosen = [times for i, times in enumerate(psutil.cpu_times(percpu=True)) if i in self._cores]
        busy_s = sum(sum(t) - t.idle - getattr(t, "iowait", 0.0) - getattr(t, "guest", 0.0) for t in chosen)
        process = self._process.cpu_times()
        return time.perf_counter(), busy_s, process.user + process.system

    def begin(self) -> None:
        self._before, self._samples = self._now(), []

    def check(self) -> list[Cause]:
        before, self._before = self._before, self._now()
        seconds, busy_s, own_s = (now - then for now, then in zip(self._before, before, strict=True))
        if seconds < CHECK_EVERY_S / 5:  # the kernel counts in hundredths of a second
            self._before = before
            return []
        self._samples.append((seconds, max(0.0, busy_s - own_s)))
        room_s = seconds * len(self._cores)
        if busy_s >= FULL_SHARE * room_s and busy_s - own_s >= OTHERS_SHARE * room_s:
            return [("foreign", f"other programs kept some of the {len(self._cores)} CPU cores busy")]
        return []

    def figures(self) -> dict[str, float]:
        total_s = sum(seconds for seconds, _ in self._samples)
        return {"cpu_others_cores": sum(others_s for _, others_s in self._samples) / total_s} if total_s else {}


class Watch:
    """Asks the probes what interfered since they were asked last. Annotations have token 0: it is unknown here."""

    def __init__(self, probes: Sequence[GpuProbe | CpuProbe]) -> None:
        self._probes = probes
        self._open: dict[Cause, float] = {}
        self._marks: deque[Annotation] = deque()
        self._begin_s = self._checked_s = 0.0

    def begin(self) -> None:
        self._begin_s = self._checked_s = time.perf_counter()
        for probe in self._probes:
            probe.begin()

    def end(self) -> None:
        """Checks once more: every annotation is complete now."""
        self.check()
        self._close(set())

    def take(self) -> list[Annotation]:
        return [self._marks.popleft() for _ in range(len(self._marks))]

    def figures(self) -> Machine:
        figures = {name: value for probe in self._probes for name, value in probe.figures().items()}
        return msgspec.convert(figures, Machine)

    def check(self) -> None:
        since_s, self._checked_s = self._checked_s - self._begin_s, time.perf_counter()
        causes = {cause for probe in self._probes for cause in probe.check()}
        self._close(causes)
        for cause in causes:
            self._open.setdefault(cause, since_s)

    def _close(self, still: set[Cause]) -> None:
        now_s = time.perf_counter() - self._begin_s
        for cause in [cause for cause in self._open if cause not in still]:
            begin_s = self._open.pop(cause)
            self._marks.append(Annotation(cause[0], 0, begin_s, max(0.0, now_s - begin_s), cause[1]))
