"""The shared memory carveout of kernels: how a multiprocessor's memory is divided into shared memory and L1."""

import ctypes
import functools

PREFERRED_CARVEOUT = 9  # CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
DRIVERS_CHOICE = -1
_asked: dict[int, int] = {}  # handle of a function -> percent, of those that differ from the driver's choice


def prefer(kernel: object, percent: int) -> None:
    """Have a compiled kernel, which is what a launch returns, launched with this carveout from the next time on.

    percent  of the most shared memory that there can be, a hint: a kernel that needs more gets more

    A multiprocessor is divided anew only while it is empty. So a kernel that begins before its predecessor has ended
    finds the predecessor's division, or waits for it to end. RuntimeError if the driver refuses.
    """
    if _asked.get(kernel.function, DRIVERS_CHOICE) == percent:
        return
    _set(kernel.function, percent)
    _asked[kernel.function] = percent


def _set(function: int, percent: int) -> None:
    failed = _driver().cuFuncSetAttribute(ctypes.c_void_p(function), PREFERRED_CARVEOUT, percent)
    if failed:
        raise RuntimeError(f"The CUDA driver refused a shared memory carveout of {percent}% (error {failed}).")


@functools.cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")
