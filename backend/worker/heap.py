"""The C library's heap, in the state that it reaches by itself sooner or later."""

import ctypes
import sys

LARGEST_BYTES = 32 << 20
"""glibc takes blocks of up to this size from its heap at most (malloc/malloc.c, `DEFAULT_MMAP_THRESHOLD_MAX`)."""

HEADER_BYTES = 8 << 10
"""More than what glibc adds to a block, with the rest of a page."""


def settle_heap() -> None:
    """Have glibc keep freed blocks of up to 32 MiB for reuse from now on, as after the first such block that a program
    frees.

    Until then each block that is a little larger than all before, such as the keys and values of a growing cache, is
    new memory, and is given back after the step: 27,000 page faults a second, which a program that happened to free a
    large block before does not have, nor a second run in the same process (lab/measurements.md). Nothing happens with
    another C library, or where MALLOC_MMAP_THRESHOLD_ is set.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
    libc.free(libc.malloc(LARGEST_BYTES - HEADER_BYTES))
