"""GPUs from the CUDA driver, with a fake library; tests/gpu/test_measure.py uses the real one."""

import ctypes
from typing import Any

import pytest

from tokendyno.backend.hardware.cuda_driver import CudaDevice, driver_info, query


class Library:
    """A libcuda with two GPUs: each call returns 0, or an error number."""

    def __init__(self, **errors: int) -> None:
        self.errors = errors

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            if self.errors.get(name):
                return self.errors[name]
            if name == "cuDeviceGetName":
                assert arguments[1] == 256
                arguments[0].value = f"NVIDIA X{arguments[2]}".encode()
            elif name == "cuDeviceTotalMem_v2":
                arguments[0]._obj.value = (arguments[1] + 1) << 34
            elif name != "cuInit":
                number = {
                    "cuDeviceGetCount": 2,
                    "cuDeviceGet": arguments[-1],
                    "cuDriverGetVersion": 13_000,
                    "cuDeviceGetAttribute": {75: 9, 76: 0}.get(arguments[1] if len(arguments) > 1 else 0),
                }[name]
                arguments[0]._obj.value = number
            return 0

        return call


def test_every_gpu_is_told_with_its_memory_and_capability() -> None:
    found = query(Library())
    assert found.devices == (CudaDevice("NVIDIA X0", 1 << 34, (9, 0)), CudaDevice("NVIDIA X1", 2 << 34, (9, 0)))
    assert (found.cuda, found.problem) == (13_000, "")


@pytest.mark.parametrize("name", ["cuInit", "cuDeviceGetCount", "cuDeviceGetAttribute"])
def test_an_error_is_told_with_its_number(name: str) -> None:
    with pytest.raises(OSError, match=f"error 803 in {name}"):
        query(Library(**{name: 803}))


def test_without_a_driver_there_is_nothing_and_it_says_so() -> None:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        assert driver_info().devices == () and driver_info().problem
    else:
        pytest.skip("there is a driver")
