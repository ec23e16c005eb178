"""The machine as found: devices, memory, driver, packages. Read from NVML and the system, never from torch."""

import contextlib
import functools
import importlib.metadata
import os
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from packaging.version import Version

from backend import kernel_folders

PACKAGES = (
    "torch", "transformers", "gradio", "plotly", "bitsandbytes", "kernels", "nvidia-ml-py",
    "numpy", "tokenizers", "safetensors", "huggingface-hub", "gguf", "triton", "accelerate",
    "torchao", "optimum-quanto", "hqq", "mslk", "flash-attn", "flash-attn-3", "flash-attn-4",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Gpu:
    """One NVIDIA GPU as NVML names it. `capability`: (major, minor), e.g. (9, 0)."""

    index: int
    name: str
    memory_bytes: int
    free_bytes: int
    capability: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Machine:
    """What the bench stands on.

    gpu_problem  why no GPU is used, in words; "" with a GPU
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
        return facts


@contextlib.contextmanager
def nvml() -> Iterator[object]:
    """The initialised `pynvml` module; raises whatever NVML raises when it is missing or refuses."""
    import pynvml

    pynvml.nvmlInit()
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def machine() -> Machine:
    """Look at the machine now. Cheap enough (a few ms) to be called before every run."""
    gpus, driver, problem = _gpus()
    total, free = _memory()
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
    )  # fmt: skip


def hub_offline() -> bool:
    """Whether HF_HUB_OFFLINE says that nothing may be fetched, read as huggingface_hub reads it."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")


def _gpus() -> tuple[tuple[Gpu, ...], str, str]:
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return (), "", "hidden by CUDA_VISIBLE_DEVICES"
    if os.environ.get("TOKENDYNO_DEVICE") == "cpu":
        return (), "", "switched off by TOKENDYNO_DEVICE=cpu"
    try:
        with nvml() as lib:
            found = []
            for i in range(lib.nvmlDeviceGetCount()):  # type: ignore[attr-defined]
                handle = lib.nvmlDeviceGetHandleByIndex(i)  # type: ignore[attr-defined]
                memory = lib.nvmlDeviceGetMemoryInfo(handle)  # type: ignore[attr-defined]
                name = lib.nvmlDeviceGetName(handle)  # type: ignore[attr-defined]
                capability = lib.nvmlDeviceGetCudaComputeCapability(handle)  # type: ignore[attr-defined]
                found.append(Gpu(i, _text(name), int(memory.total), int(memory.free), (capability[0], capability[1])))
            driver = _text(lib.nvmlSystemGetDriverVersion())  # type: ignore[attr-defined]
            if not found:
                return (), driver, "NVML sees no GPU"
            if Version(_version("torch") or "0").local == "cpu":
                return (), driver, f"{found[0].name} is not used: the installed torch is a build for CPUs"
            old = _too_old(_driver_cuda(lib), driver, torch_cuda())
            if old:
                return (), driver, f"{found[0].name} is not used: {old}"
            return _visible(tuple(found), os.environ.get("CUDA_VISIBLE_DEVICES")), driver, ""
    except Exception as error:  # NVML raises its own hierarchy, and ImportError when absent
        return (), "", f"no NVIDIA GPU is used: NVML says {type(error).__name__}: {error}"


def torch_cuda() -> tuple[int, int] | None:
    """The CUDA version that the installed torch was built for, read from its files; None for a build without."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError, OSError):
        file = importlib.metadata.distribution("torch").locate_file("torch/version.py")
        match = re.search(r"^cuda\b.*=\s*'(\d+)\.(\d+)", Path(str(file)).read_text(encoding="utf-8"), re.MULTILINE)
        if match:
            return int(match[1]), int(match[2])
    return None


def _driver_cuda(lib: object) -> int | None:
    """1000 x major + 10 x minor of the newest CUDA that the driver runs; None where NVML does not say."""
    with contextlib.suppress(Exception):
        return int(lib.nvmlSystemGetCudaDriverVersion_v2())  # type: ignore[attr-defined]
    return None


def _too_old(driver_cuda: int | None, driver: str, built_for: tuple[int, int] | None) -> str:
    """Why torch will refuse this driver, "" if it will not.

    Within one major version an older driver runs newer libraries
    (docs.nvidia.com/deploy/cuda-compatibility, minor version compatibility).
    """
    if built_for is None or driver_cuda is None or driver_cuda // 1000 >= built_for[0]:
        return ""
    knows = f"{driver_cuda // 1000}.{driver_cuda % 1000 // 10}"
    return (
        f"its driver {driver} knows CUDA {knows}, but the installed torch was built for CUDA "
        f"{built_for[0]}.{built_for[1]}. Update the driver, or install a torch for CUDA {knows}; until "
        "then the CPU is used."
    )


def _visible(gpus: tuple[Gpu, ...], wanted: str | None) -> tuple[Gpu, ...]:
    """The GPUs that torch will see, in its order, when CUDA_VISIBLE_DEVICES names them by number."""
    numbers = [part.strip() for part in (wanted or "").split(",")]
    if not all(number.isdecimal() and int(number) < len(gpus) for number in numbers):
        return gpus  # not set, or named by UUID
    return tuple(gpus[int(number)] for number in numbers)


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _memory() -> tuple[int, int]:
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
