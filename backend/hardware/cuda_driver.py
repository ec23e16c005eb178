"""Reads the GPUs from the CUDA driver, for machines where CUDA works but NVML is missing or fails.

A container may have only one of the two libraries (NVIDIA_DRIVER_CAPABILITIES=compute), and NVML reports no memory size
for a GPU that shares the host's memory. Free memory is not read: that takes a CUDA context of hundreds of MB.
https://docs.nvidia.com/cuda/cuda-driver-api/
"""

import ctypes
import functools
from typing import Any, NamedTuple

LIBRARY = "libcuda.so.1"
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR


class CudaDevice(NamedTuple):
    """One GPU, in the order in which torch numbers them: the driver honors CUDA_VISIBLE_DEVICES."""

    name: str
    memory_bytes: int
    capability: tuple[int, int]


class DriverInfo(NamedTuple):
    """What the driver reports. cuda: newest version that it supports, as 1000 x major + 10 x minor."""

    devices: tuple[CudaDevice, ...] = ()
    cuda: int | None = None
    problem: str = ""


@functools.cache
def driver_info() -> DriverInfo:
    """What this machine's driver reports; queried once per process."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return DriverInfo(problem="there is no CUDA driver")
    try:
        return query(library)
    except (AttributeError, OSError) as error:
        return DriverInfo(problem=f"the CUDA driver failed with {error}")


def query(library: Any) -> DriverInfo:
    """Query a loaded driver library. OSError if a call fails; AttributeError if the library lacks a function."""

    def call(name: str, *arguments: Any) -> None:
        code = getattr(library, name)(*arguments)
        if code:
            raise OSError(f"error {code} in {name}")

    def number(name: str, *arguments: Any) -> int:
        result = ctypes.c_int()
        call(name, ctypes.byref(result), *arguments)
        return result.value

    call("cuInit", 0)
    devices = []
    for i in range(number("cuDeviceGetCount")):
        device = number("cuDeviceGet", i)
        name, size = ctypes.create_string_buffer(256), ctypes.c_size_t()
        call("cuDeviceGetName", name, len(name), device)
        call("cuDeviceTotalMem_v2", ctypes.byref(size), device)
        major, minor = (number("cuDeviceGetAttribute", attribute, device) for attribute in (_MAJOR, _MINOR))
        devices.append(CudaDevice(name.value.decode(errors="replace"), size.value, (major, minor)))
    return DriverInfo(tuple(devices), number("cuDriverGetVersion"))
