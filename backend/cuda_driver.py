"""GPUs as the CUDA driver itself names them, for machines where NVML is missing or refuses but CUDA works.

A container may be given the one library and not the other (NVIDIA_DRIVER_CAPABILITIES=compute), and a GPU that shares
the host's memory tells NVML no size. Nothing is made on a GPU here: asking for free memory would take a context of
hundreds of MB, so it is not asked for. https://docs.nvidia.com/cuda/cuda-driver-api/
"""

import ctypes
import functools
from typing import Any, NamedTuple

LIBRARY = "libcuda.so.1"
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR


class CudaDevice(NamedTuple):
    """One GPU, numbered as torch numbers it: CUDA_VISIBLE_DEVICES is heeded by the driver."""

    name: str
    memory_bytes: int
    capability: tuple[int, int]


class Seen(NamedTuple):
    """`cuda`: 1000 x major + 10 x minor of the newest CUDA that the driver runs; `problem`: why there is nothing."""

    devices: tuple[CudaDevice, ...] = ()
    cuda: int | None = None
    problem: str = ""


@functools.cache
def seen() -> Seen:
    """What the driver of this machine shows; asked once a process."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return Seen(problem="there is no CUDA driver")
    try:
        return ask(library)
    except (AttributeError, OSError) as error:
        return Seen(problem=f"the CUDA driver says {error}")


def ask(library: Any) -> Seen:
    """Ask a loaded driver library. OSError with its error number, AttributeError for a library without a function."""

    def call(name: str, *arguments: Any) -> None:
        code = getattr(library, name)(*arguments)
        if code:
            raise OSError(f"error {code} to {name}")

    def number(name: str, *more: Any) -> int:
        found = ctypes.c_int()
        call(name, ctypes.byref(found), *more)
        return found.value

    call("cuInit", 0)
    devices = []
    for i in range(number("cuDeviceGetCount")):
        device = number("cuDeviceGet", i)
        name, size = ctypes.create_string_buffer(256), ctypes.c_size_t()
        call("cuDeviceGetName", name, len(name), device)
        call("cuDeviceTotalMem_v2", ctypes.byref(size), device)
        major, minor = (number("cuDeviceGetAttribute", which, device) for which in (_MAJOR, _MINOR))
        devices.append(CudaDevice(name.value.decode(errors="replace"), size.value, (major, minor)))
    return Seen(tuple(devices), number("cuDriverGetVersion"))
