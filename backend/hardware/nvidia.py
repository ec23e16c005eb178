"""Detects the NVIDIA GPUs, from NVML or else the CUDA driver, and says why one that is present is not used."""

import contextlib
import importlib.metadata
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from backend.errors import InputError, shown
from backend.hardware import cuda_driver


@dataclass(frozen=True, slots=True)
class Gpu:
    """One NVIDIA GPU. `capability`: CUDA compute capability as (major, minor), e.g. (9, 0); `uuid`: as NVML names this
    very card, "" without it."""

    index: int
    name: str
    memory_bytes: int
    free_bytes: int
    capability: tuple[int, int]
    uuid: str = ""


@contextlib.contextmanager
def nvml() -> Iterator[object]:
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

    driver        version of the NVIDIA driver, "" if unknown
    problem       why no GPU is used; "" if one is
    nvml_problem  why NVML reports nothing about the GPUs in use; "" if it does
    """

    gpus: tuple[Gpu, ...] = ()
    driver: str = ""
    problem: str = ""
    nvml_problem: str = ""


def left_unused() -> bool:
    """Whether TOKENDYNO_DEVICE=cpu leaves a GPU unused. InputError for any other value, which would do nothing."""
    asked = os.environ.get("TOKENDYNO_DEVICE", "")
    if asked not in ("", "cpu"):
        raise InputError(
            f"TOKENDYNO_DEVICE is {shown(asked)!r}. Set it to cpu, which leaves a GPU unused, or unset it; "
            "CUDA_VISIBLE_DEVICES chooses between GPUs."
        )
    return asked == "cpu"


def detect_gpus() -> DetectedGpus:
    """The GPUs that torch will see, from NVML, else from the CUDA driver. InputError as `left_unused`."""
    unused = left_unused()
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return DetectedGpus(problem="hidden by CUDA_VISIBLE_DEVICES")
    if unused:
        return DetectedGpus(problem="switched off by TOKENDYNO_DEVICE=cpu")
    try:
        with nvml() as lib:
            found = []
            for i in range(lib.nvmlDeviceGetCount()):  # type: ignore[attr-defined]
                handle = lib.nvmlDeviceGetHandleByIndex(i)  # type: ignore[attr-defined]
                memory = lib.nvmlDeviceGetMemoryInfo(handle)  # type: ignore[attr-defined]
                name = lib.nvmlDeviceGetName(handle)  # type: ignore[attr-defined]
                capability = lib.nvmlDeviceGetCudaComputeCapability(handle)  # type: ignore[attr-defined]
                uuid = _text(lib.nvmlDeviceGetUUID(handle))  # type: ignore[attr-defined]
                found.append(
                    Gpu(i, _text(name), int(memory.total), int(memory.free), (capability[0], capability[1]), uuid)
                )
            driver = _text(lib.nvmlSystemGetDriverVersion())  # type: ignore[attr-defined]
            cuda = _driver_cuda(lib)
    except Exception as error:  # NVML raises its own hierarchy, and ImportError when absent
        return _without_nvml(f"NVML says {type(error).__name__}: {error}")
    if not found:
        return DetectedGpus(driver=driver, problem="NVML finds no GPU")
    if problem := _unusable(found[0].name, driver, cuda):
        return DetectedGpus(driver=driver, problem=problem)
    return DetectedGpus(_visible(tuple(found), os.environ.get("CUDA_VISIBLE_DEVICES")), driver)


def _without_nvml(why: str) -> DetectedGpus:
    """The same from the CUDA driver alone. It reports no free memory, so all memory counts as free."""
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
    """Why the installed torch cannot use a GPU that is present, "" if it can."""
    if _torch_local() == "cpu":
        return f"{name} is not used: the installed torch is a CPU build; install a CUDA build"
    old = _too_old(driver_cuda, driver, torch_cuda())
    return f"{name} is not used: {old}" if old else ""


def _torch_local() -> str | None:
    """The local part of the installed torch's version (behind the +), such as "cpu"; None without torch."""
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


def _driver_cuda(lib: object) -> int | None:
    """Newest CUDA version that the driver supports, as 1000 x major + 10 x minor; None if NVML does not report it."""
    with contextlib.suppress(Exception):
        return int(lib.nvmlSystemGetCudaDriverVersion_v2())  # type: ignore[attr-defined]
    return None


def _too_old(driver_cuda: int | None, driver: str, built_for: tuple[int, int] | None) -> str:
    """Why this driver is too old for the installed torch, "" if it is not.

    Within one major version of CUDA an older driver runs newer libraries
    (docs.nvidia.com/deploy/cuda-compatibility, minor version compatibility).
    """
    if built_for is None or driver_cuda is None or driver_cuda // 1000 >= built_for[0]:
        return ""
    newest = f"{driver_cuda // 1000}.{driver_cuda % 1000 // 10}"
    return (
        f"its driver {f'{driver} ' if driver else ''}supports CUDA {newest} and the installed torch was built for CUDA "
        f"{built_for[0]}.{built_for[1]}, so the CPU is used until you update the driver or install a torch for CUDA "
        f"{newest}"
    )


def _visible(gpus: tuple[Gpu, ...], wanted: str | None) -> tuple[Gpu, ...]:
    """The GPUs that torch will see, in its order, where CUDA_VISIBLE_DEVICES lists them by number or UUID."""
    known = {str(gpu.index): gpu for gpu in gpus} | {gpu.uuid: gpu for gpu in gpus}
    names = [part.strip() for part in (wanted or "").split(",")]
    if not all(name and name in known for name in names):
        return gpus  # not set, or by the beginning of a UUID
    return tuple(known[name] for name in names)


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
