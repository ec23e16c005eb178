"""The machine as found: devices, memory, driver, packages. Read from NVML and the system, never from torch."""

import functools
import importlib.metadata
import os
import platform
from dataclasses import dataclass
from pathlib import Path

import psutil
from packaging.version import Version

from backend import kernel_folders
from backend.gpus_found import Gpu as Gpu
from backend.gpus_found import gpus_found

PACKAGES = (
    "torch", "transformers", "gradio", "plotly", "bitsandbytes", "kernels", "nvidia-ml-py",
    "numpy", "tokenizers", "safetensors", "huggingface-hub", "gguf", "triton", "accelerate",
    "torchao", "optimum-quanto", "hqq", "mslk", "flash-attn", "flash-attn-3", "flash-attn-4",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Machine:
    """What the bench stands on.

    gpu_problem  why no GPU is used, in words; "" with a GPU
    nvml_problem  why NVML tells nothing of the GPU that is used; "" where it does
    packages     (distribution, version) of what is installed, of those in `PACKAGES`
    hub_offline  nothing may be fetched from the Hub (HF_HUB_OFFLINE)
    avx512_bf16  the CPU has these instructions, for which bitsandbytes lays 4-bit weights out anew
    hub_kernels  kernel repositories of the Hub that need no download
    kernels      folder that `kernels=local` takes layers from, "" if there is none for this device
    kernel_layers  what it has
    """

    cpu: str
    cores: int
    memory_bytes: int
    free_bytes: int
    gpus: tuple[Gpu, ...]
    driver: str
    gpu_problem: str
    python: str
    system: str
    packages: tuple[tuple[str, str], ...] = ()
    hub_offline: bool = False
    avx512_bf16: bool = False
    hub_kernels: tuple[str, ...] = ()
    kernels: str = ""
    kernel_layers: tuple[str, ...] = ()
    nvml_problem: str = ""

    @property
    def capability(self) -> tuple[int, int]:
        """CUDA compute capability of the GPU in use; (0, 0) without one."""
        return self.gpus[0].capability if self.gpus else (0, 0)

    def version(self, package: str) -> Version | None:
        """The installed version of a distribution, None if it is not installed."""
        found = dict(self.packages).get(package)
        return Version(found) if found else None

    def has(self, package: str) -> bool:
        """Whether a distribution is installed."""
        return self.version(package) is not None

    @property
    def device(self) -> str:
        """Where workers put the model: "cuda" with a GPU, else "cpu"."""
        return "cuda" if self.gpus else "cpu"

    @property
    def room_bytes(self) -> int:
        """Free memory of that device now."""
        return self.gpus[0].free_bytes if self.gpus else self.free_bytes

    def describe(self) -> dict[str, str]:
        """Facts by name, as text, for the result's `machine`."""
        gib = 1 << 30
        facts = {
            "device": self.device,
            "cpu": self.cpu,
            "cores": str(self.cores),
            "memory": f"{self.memory_bytes / gib:.1f} GiB",
            "python": self.python,
            "system": self.system,
        }
        for gpu in self.gpus:
            major, minor = gpu.capability
            facts[f"gpu{gpu.index}"] = f"{gpu.name}, {gpu.memory_bytes / gib:.1f} GiB, capability {major}.{minor}"
        if self.driver:
            facts["driver"] = self.driver
        if self.gpu_problem:
            facts["gpu"] = self.gpu_problem
        if self.nvml_problem:
            facts["nvml"] = self.nvml_problem
        return facts

    @property
    def remarks(self) -> list[str]:
        """What a user should know at the start: a GPU that is there and not used, or of which little can be told."""
        unused = self.gpu_problem if " is not used: " in self.gpu_problem else ""
        return [f"{text[0].upper()}{text[1:]}." for text in (unused.rstrip("."), self.nvml_problem) if text]


def machine() -> Machine:
    """Look at the machine now. Cheap enough (a few ms) to be called before every run."""
    gpus, driver, problem, nvml_problem = gpus_found()
    total, free = host_memory()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    device = "cuda" if gpus else "cpu"
    folder = kernel_folders.local_folder(device)
    offered = kernel_folders.layers(Path(folder), device) if folder else {}
    return Machine(
        cpu=_cpu_name(), cores=cores,
        memory_bytes=total, free_bytes=free, gpus=gpus, driver=driver, gpu_problem=problem,
        python=platform.python_version(), system=f"{platform.system()} {platform.release()} {platform.machine()}",
        packages=tuple(sorted(versions().items())), hub_offline=hub_offline(),
        avx512_bf16=_has_instructions("avx512_bf16"),
        hub_kernels=kernel_folders.at_hand(), kernels=folder, kernel_layers=tuple(sorted(offered)),
        nvml_problem=nvml_problem,
    )  # fmt: skip


def hub_offline() -> bool:
    """Whether HF_HUB_OFFLINE says that nothing may be fetched, read as huggingface_hub reads it."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")


def host_memory() -> tuple[int, int]:
    """(total, available) bytes of host memory, the control group's limit included (containers, Spaces)."""
    info = psutil.virtual_memory()
    total, free = int(info.total), int(info.available)
    try:
        with open("/sys/fs/cgroup/memory.max") as limit, open("/sys/fs/cgroup/memory.current") as used:
            cap = limit.read().strip()
            if cap != "max":
                total = min(total, int(cap))
                free = min(free, max(0, int(cap) - int(used.read()) + _reclaimable_bytes()))
    except (OSError, ValueError):
        pass
    return total, free


def _reclaimable_bytes() -> int:
    """File cache that the control group counts as used and the kernel gives back when it is needed."""
    with open("/sys/fs/cgroup/memory.stat") as stat:
        return next((int(line.split()[1]) for line in stat if line.startswith("inactive_file ")), 0)


@functools.cache
def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo") as info:
            for line in info:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


@functools.cache
def _has_instructions(flag: str) -> bool:
    """Whether the CPU names that instruction set."""
    try:
        with open("/proc/cpuinfo") as info:
            return any(flag in line.split() for line in info if line.startswith("flags"))
    except OSError:
        return False


@functools.cache
def versions() -> dict[str, str]:
    """Installed versions by distribution name; a missing one is left out."""
    found = {"tokendyno": _version("tokendyno"), "python": platform.python_version()}
    found |= {name: _version(name) for name in PACKAGES}
    return {name: version for name, version in found.items() if version}


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
