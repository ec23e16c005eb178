"""Detects NVIDIA GPUs by NVML, else by the CUDA driver, and says why one that is present is not used."""

import contextlib
import importlib.metadata
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from packaging.version import Version

from tokendyno.backend.errors import InputError, shown
from tokendyno.backend.hardware import cuda_driver
from tokendyno.backend.hardware.host import host_memory


@dataclass(frozen=True, slots=True)
class Gpu:
    """An NVIDIA GPU, or a slice of one (MIG) that a process computes on. `capability`: CUDA compute capability, such as
    (9, 0); `uuid`: NVML's identifier of this card or slice, "" without NVML."""

    index: int
    name: str
    memory_bytes: int
    free_bytes: int
    capability: tuple[int, int]
    uuid: str = ""


@contextlib.contextmanager
def nvml() -> Iterator[Any]:
    """The initialized `pynvml` module. Raises ImportError without it, and NVML's own errors."""
    import pynvml

    pynvml.nvmlInit()
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


@dataclass(frozen=True, slots=True)
class DetectedGpus:
    """The usable GPUs of this machine.

    nvml_problem  why NVML reports nothing about the GPUs in use; "" if it does
    """

    gpus: tuple[Gpu, ...] = ()
    driver: str = ""
    problem: str = ""
    nvml_problem: str = ""


def left_unused() -> bool:
    """Whether TOKENDYNO_DEVICE=cpu leaves a GPU unused. InputError for any other value, which would do nothing."""
    device = os.environ.get("TOKENDYNO_DEVICE", "")
    if device not in ("", "cpu"):
        raise InputError(
            f"TOKENDYNO_DEVICE is {shown(device)!r}. Set it to cpu, which leaves a GPU unused, or unset it; "
            "CUDA_VISIBLE_DEVICES chooses between GPUs."
        )
    return device == "cpu"


def detect_gpus() -> DetectedGpus:
    """The GPUs that torch will see, from NVML, else from the CUDA driver. InputError as `left_unused`."""
    unused = left_unused()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible in ("", "-1"):
        return DetectedGpus(problem="hidden by CUDA_VISIBLE_DEVICES")
    if unused:
        return DetectedGpus(problem="switched off by TOKENDYNO_DEVICE=cpu")
    try:
        with nvml() as lib:
            cards = list[Gpu]()
            slices = dict[str, list[Slice]]()
            for i in range(lib.nvmlDeviceGetCount()):
                handle = lib.nvmlDeviceGetHandleByIndex(i)
                capability = lib.nvmlDeviceGetCudaComputeCapability(handle)
                card = _gpu_of(lib, handle, i, (capability[0], capability[1]))
                cards.append(card)
                slices[card.uuid] = _slices(lib, handle, card)
            driver = str(lib.nvmlSystemGetDriverVersion())
            cuda = _driver_cuda(lib)
    except Exception as error:  # NVML raises its own hierarchy, and ImportError when absent
        return _without_nvml(f"NVML says {type(error).__name__}: {error}")
    if not cards:
        return DetectedGpus(driver=driver, problem="NVML finds no GPU")
    if problem := _unusable(cards[0].name, driver, cuda):
        return DetectedGpus(driver=driver, problem=problem)
    gpus = _visible(cards, slices, visible)
    if not gpus:
        return DetectedGpus(driver=driver, problem=f"CUDA_VISIBLE_DEVICES={shown(visible or '')} names no GPU here")
    return DetectedGpus(gpus, driver)


def _without_nvml(why: str) -> DetectedGpus:
    """The GPUs by the CUDA driver alone, which reports no free memory: all memory counts as free."""
    info = cuda_driver.driver_info()
    if not info.devices:
        return DetectedGpus(
            problem=f"no NVIDIA GPU is used: {why}, and {info.problem or 'the CUDA driver finds no GPU'}"
        )
    if problem := _unusable(info.devices[0].name, "", info.cuda):
        return DetectedGpus(problem=problem)
    gpus = tuple(Gpu(i, d.name, d.memory_bytes, d.memory_bytes, d.capability) for i, d in enumerate(info.devices))
    missing = "clocks, temperature, energy and other processes are n/a, and all GPU memory counts as free"
    return DetectedGpus(gpus, nvml_problem=f"{why}: {missing}")


def _unusable(name: str, driver: str, driver_cuda: int | None) -> str:
    """Why the installed torch cannot use a GPU that is present; "" if it can."""
    if _torch_local() == "cpu":
        return f"{name} is not used: the installed torch is a CPU build; install a CUDA build"
    too_old = _too_old(driver_cuda, driver, torch_cuda())
    return f"{name} is not used: {too_old}" if too_old else ""


def _torch_local() -> str | None:
    """The local part of the installed torch's version (after the +), such as "cpu"; None without torch."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return Version(importlib.metadata.version("torch")).local
    return None


def torch_cuda() -> tuple[int, int] | None:
    """The CUDA version that the installed torch was built for, read from its files; None for a CPU build."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError, OSError):
        file = importlib.metadata.distribution("torch").locate_file("torch/version.py")
        match = re.search(r"^cuda\b.*=\s*'(\d+)\.(\d+)", Path(str(file)).read_text(encoding="utf-8"), re.MULTILINE)
        if match:
            return int(match[1]), int(match[2])
    return None


def _driver_cuda(lib: Any) -> int | None:
    """Newest CUDA version that the driver supports, as 1000 x major + 10 x minor; None if NVML does not report it."""
    with contextlib.suppress(Exception):
        return int(lib.nvmlSystemGetCudaDriverVersion_v2())
    return None


def _too_old(driver_cuda: int | None, driver: str, built_for: tuple[int, int] | None) -> str:
    """Why this driver is too old for the installed torch; "" if it is not. Within a major version of CUDA none is
    (docs.nvidia.com/deploy/cuda-compatibility, minor version compatibility)."""
    if built_for is None or driver_cuda is None or driver_cuda // 1000 >= built_for[0]:
        return ""
    newest = f"{driver_cuda // 1000}.{driver_cuda % 1000 // 10}"
    return (
        f"its driver {f'{driver} ' if driver else ''}supports CUDA {newest} and the installed torch was built for CUDA "
        f"{built_for[0]}.{built_for[1]}, so the CPU is used until you update the driver or install a torch for CUDA "
        f"{newest}"
    )


class Slice(NamedTuple):
    """A slice of a GPU in MIG mode. instances: "GPU instance/compute instance", by number."""

    gpu: Gpu
    instances: str


def _gpu_of(lib: Any, handle: Any, index: int, capability: tuple[int, int]) -> Gpu:
    try:
        memory = lib.nvmlDeviceGetMemoryInfo(handle)
        total, free = int(memory.total), int(memory.free)
    except lib.NVMLError_NotSupported:  # DGX Spark: a GPU without memory of its own
        total, free = host_memory()
    return Gpu(index, str(lib.nvmlDeviceGetName(handle)), total, free, capability, str(lib.nvmlDeviceGetUUID(handle)))


def _slices(lib: Any, handle: Any, card: Gpu) -> list[Slice]:
    """The slices of a GPU in MIG mode, each with memory of its own; empty for other GPUs."""
    slices = []
    with contextlib.suppress(Exception):  # not supported: GPUs and drivers before MIG
        for index in range(lib.nvmlDeviceGetMaxMigDeviceCount(handle) if lib.nvmlDeviceGetMigMode(handle)[0] else 0):
            with contextlib.suppress(Exception):  # not found: fewer slices than there could be
                part = lib.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
                gpu = _gpu_of(lib, part, card.index, card.capability)
                name = gpu.name if "MIG" in gpu.name else f"{card.name} MIG"  # never the whole card's rates
                instances = lib.nvmlDeviceGetGpuInstanceId(part), lib.nvmlDeviceGetComputeInstanceId(part)
                slices.append(Slice(replace(gpu, name=name), "/".join(map(str, instances))))
    return slices


def _visible(cards: list[Gpu], slices: dict[str, list[Slice]], visible: str | None) -> tuple[Gpu, ...]:
    """The GPUs that torch will see, in its order; of GPUs in MIG mode one slice. `visible`: CUDA_VISIBLE_DEVICES.

    https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html
    """
    names = [card.uuid for card in cards] if visible is None else [part.strip() for part in visible.split(",")]
    gpus: list[Gpu] = []
    for name in names:
        gpu = _named(cards, slices, name)
        if gpu is None or gpu in gpus:
            break
        if gpu.uuid.startswith("MIG-"):
            return tuple(gpus) or (gpu,)
        gpus.append(gpu)
    return tuple(gpus)


def _named(cards: list[Gpu], slices: dict[str, list[Slice]], name: str) -> Gpu | None:
    """The GPU or slice that a part of CUDA_VISIBLE_DEVICES names; None where that is none, or several."""
    names = {card.uuid: card for card in cards}
    for card in cards:
        for part in slices[card.uuid]:
            names |= {part.gpu.uuid: part.gpu, f"MIG-{card.uuid}/{part.instances}": part.gpu}
    if name.isdecimal():
        matches = [card for card in cards if card.index == int(name)]
    elif name in names:
        matches = [names[name]]
    else:
        matches = [gpu for key, gpu in names.items() if name and key.startswith(name)]
    if len(matches) != 1:
        return None
    parts = slices.get(matches[0].uuid)
    return parts[0].gpu if parts else matches[0]
