"""The NVIDIA GPUs as found, and why one that is there is not used. From NVML, else from the CUDA driver alone."""

import contextlib
import importlib.metadata
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from backend import cuda_driver


@dataclass(frozen=True, slots=True)
class Gpu:
    """One NVIDIA GPU as NVML names it. `capability`: (major, minor), e.g. (9, 0)."""

    index: int
    name: str
    memory_bytes: int
    free_bytes: int
    capability: tuple[int, int]


@contextlib.contextmanager
def nvml() -> Iterator[object]:
    """The initialised `pynvml` module; raises whatever NVML raises when it is missing or refuses."""
    import pynvml

    pynvml.nvmlInit()
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def gpus_found() -> tuple[tuple[Gpu, ...], str, str, str]:
    """(GPUs, the driver's version, why there are none, why NVML tells nothing of them)."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return (), "", "hidden by CUDA_VISIBLE_DEVICES", ""
    if os.environ.get("TOKENDYNO_DEVICE") == "cpu":
        return (), "", "switched off by TOKENDYNO_DEVICE=cpu", ""
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
            cuda = _driver_cuda(lib)
    except Exception as error:  # NVML raises its own hierarchy, and ImportError when absent
        return _without_nvml(f"NVML says {type(error).__name__}: {error}")
    if not found:
        return (), driver, "NVML sees no GPU", ""
    problem = _unusable(found[0].name, driver, cuda)
    gpus = () if problem else _visible(tuple(found), os.environ.get("CUDA_VISIBLE_DEVICES"))
    return gpus, driver, problem, ""


def _without_nvml(why: str) -> tuple[tuple[Gpu, ...], str, str, str]:
    """The same by the CUDA driver alone: it tells no free memory, so all of it counts as free."""
    seen = cuda_driver.seen()
    if not seen.devices:
        return (), "", f"no NVIDIA GPU is used: {why}, and {seen.problem or 'the CUDA driver sees no GPU'}", ""
    problem = _unusable(seen.devices[0].name, "", seen.cuda)
    if problem:
        return (), "", problem, ""
    gpus = (Gpu(i, d.name, d.memory_bytes, d.memory_bytes, d.capability) for i, d in enumerate(seen.devices))
    told = "clocks, temperature, energy and other programs are n/a, and all of the GPU's memory counts as free"
    return tuple(gpus), "", "", f"{why}: {told}"


def _unusable(name: str, driver: str, driver_cuda: int | None) -> str:
    """Why the installed torch cannot use a GPU that is there, "" if it can."""
    if _torch_local() == "cpu":
        return f"{name} is not used: the installed torch is a build for CPUs; install one for CUDA"
    old = _too_old(driver_cuda, driver, torch_cuda())
    return f"{name} is not used: {old}" if old else ""


def _torch_local() -> str | None:
    """What stands behind the + of the installed torch's version, such as cpu; None without torch."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return Version(importlib.metadata.version("torch")).local
    return None


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
        f"its driver {f'{driver} ' if driver else ''}knows CUDA {knows} and the installed torch was built for CUDA "
        f"{built_for[0]}.{built_for[1]}, so the CPU is used until you update the driver or install a torch for CUDA "
        f"{knows}"
    )


def _visible(gpus: tuple[Gpu, ...], wanted: str | None) -> tuple[Gpu, ...]:
    """The GPUs that torch will see, in its order, when CUDA_VISIBLE_DEVICES names them by number."""
    numbers = [part.strip() for part in (wanted or "").split(",")]
    if not all(number.isdecimal() and int(number) < len(gpus) for number in numbers):
        return gpus  # not set, or named by UUID
    return tuple(gpus[int(number)] for number in numbers)


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
