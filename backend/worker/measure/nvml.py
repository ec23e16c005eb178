"""Readings of the worker's GPU from NVML. What the driver refuses is None, never 0."""

import contextlib
import os
from collections.abc import Callable
from typing import Any, TypeVar

import psutil

T = TypeVar("T")

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


def own_device(pynvml: Any, index: int | None = None) -> Any:
    """NVML's handle of torch's device with that index, or of its current one; a MIG slice is the only device."""
    import torch

    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0].strip()
    if visible.startswith("MIG-") and "/" not in visible:
        return pynvml.nvmlDeviceGetHandleByUUID(visible)
    uuid = str(torch.cuda.get_device_properties(torch.cuda.current_device() if index is None else index).uuid)
    return pynvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith("GPU-") else f"GPU-{uuid}")


class Nvml:
    """One GPU. Any single reading may be refused (containers, WSL, MIG, old boards)."""

    def __init__(self, pynvml: Any, handle: Any) -> None:
        self._nvml, self._handle = pynvml, handle
        self._seen_us = 0

    def _read(self, name: str, *args: Any) -> Any:
        try:
            return getattr(self._nvml, name)(self._handle, *args)
        except (self._nvml.NVMLError, AttributeError):  # refused, or a library without it
            return None

    def memory_bytes(self) -> int | None:
        """GPU memory of this process."""
        processes = self._read("nvmlDeviceGetComputeRunningProcesses") or []
        return next((int(p.usedGpuMemory) for p in processes if p.pid == os.getpid() and p.usedGpuMemory), None)

    def used_bytes(self) -> int | None:
        """Memory in use on the whole device."""
        info = self._read("nvmlDeviceGetMemoryInfo")
        return None if info is None else int(info.used)

    def energy_j(self) -> float | None:
        """Energy used by the whole GPU since the driver was loaded."""
        millijoules = self._read("nvmlDeviceGetTotalEnergyConsumption")
        return None if millijoules is None else millijoules / 1e3

    def figures(self) -> dict[str, float]:
        """Clock, temperature and power now, by the names of `counts.Machine`; refused readings are left out."""
        reads = {
            "sm_clock_mhz": ("nvmlDeviceGetClockInfo", 1, 1.0),  # NVML_CLOCK_SM
            "temperature_c": ("nvmlDeviceGetTemperature", 0, 1.0),  # NVML_TEMPERATURE_GPU
            "power_w": ("nvmlDeviceGetPowerUsage", None, 1e-3),
        }
        values = {}
        for name, (read, argument, scale) in reads.items():
            value = self._read(read) if argument is None else self._read(read, argument)
            if value is not None:
                values[name] = value * scale
        return values

    def slowed(self) -> list[str] | None:
        """Why the clocks are lower than the load would allow; None where the driver does not say."""
        bits = self._read("nvmlDeviceGetCurrentClocksEventReasons")
        if bits is None:  # drivers before 535 only know the old name
            bits = self._read("nvmlDeviceGetCurrentClocksThrottleReasons")
        return None if bits is None else [word for bit, word in SLOWED.items() if bits & bit]

    def other_processes(self, of_bench: Callable[[int], bool]) -> list[int] | None:
        """Other programs' processes that kept the SMs busy since the last call; None where the driver does not say.

        In a container NVML may use another namespace of process ids: unless it lists this process, its ids mean
        nothing here.
        """
        processes = self._read("nvmlDeviceGetComputeRunningProcesses") or []
        if os.getpid() not in {process.pid for process in processes}:
            return None
        samples = self._read("nvmlDeviceGetProcessUtilization", self._seen_us)
        if samples is None:
            return None
        self._seen_us = max([self._seen_us, *(int(s.timeStamp) for s in samples)])
        return sorted({int(s.pid) for s in samples if s.smUtil >= BUSY_PERCENT and not of_bench(int(s.pid))})


def open_nvml(index: int | None = None) -> Nvml | None:
    """NVML for this worker's GPU, or for that of its GPUs; None where it is missing or refuses altogether."""
    with contextlib.suppress(Exception):  # NVML raises its own hierarchy, and ImportError when absent
        import pynvml

        pynvml.nvmlInit()
        return Nvml(pynvml, own_device(pynvml, index))
    return None


def of_this_bench(pid: int) -> bool:
    """Whether a process is this worker, or another worker of the same engine (an arm that waits for its turn)."""
    with contextlib.suppress(psutil.Error):
        return pid == os.getpid() or psutil.Process(pid).ppid() == os.getppid()
    return False


def process_name(pid: int) -> str:
    """Name and id of a process."""
    with contextlib.suppress(psutil.Error):
        return f"{psutil.Process(pid).name()}, process {pid}"
    return f"process {pid}"
