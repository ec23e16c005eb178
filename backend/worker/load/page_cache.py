"""How much of the files that are to be read lies in the system's page cache already: reading them is as fast as memory
then, and as slow as the disk otherwise."""

import contextlib
import ctypes
import mmap
import sys
from collections.abc import Iterable
from pathlib import Path


def cached_share(files: Iterable[Path]) -> float | None:
    """Share of the files' bytes in the page cache, 0 to 1; None where the system does not tell (`man 2 mincore`) or
    there are no bytes."""
    if sys.platform != "linux":
        return None
    pages = resident = 0
    for path in files:
        with contextlib.suppress(OSError), open(path, "rb") as file:
            size = path.stat().st_size
            if not size:
                continue
            with mmap.mmap(file.fileno(), size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE) as mapped:
                count = -(-size // mmap.PAGESIZE)
                found = (ctypes.c_ubyte * count)()
                begin = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
                if ctypes.CDLL(None, use_errno=True).mincore(ctypes.c_void_p(begin), ctypes.c_size_t(size), found):
                    return None
                pages, resident = pages + count, resident + bytes(found).count(1)
    return resident / pages if pages else None
