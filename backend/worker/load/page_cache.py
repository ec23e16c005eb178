"""How much of the files that are to be read lies in the system's page cache already: reading them is as fast as memory
then, and as slow as the disk otherwise."""

import ctypes
import mmap
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np


def cached_share(files: Iterable[Path]) -> float | None:
    """Share of the files' pages in the page cache, 0 to 1; None where there are none, or the system does not tell it of
    one of them: of a file that this user neither owns nor may write, it says that all pages are there
    (`can_do_mincore` of Linux)."""
    if sys.platform != "linux":
        return None
    pages = resident = 0
    try:
        for path in files:
            found = path.stat()
            if not found.st_size:
                continue
            if found.st_uid != os.geteuid() and not os.access(path, os.W_OK, effective_ids=True):
                return None
            # mapped to read, which claims no memory for it however large it is
            with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
                there = np.empty(-(-len(mapped) // mmap.PAGESIZE), np.uint8)
                view = np.frombuffer(mapped, np.uint8)
                begin, size = ctypes.c_void_p(view.ctypes.data), ctypes.c_size_t(view.size)
                del view  # a mapping that is looked at cannot be closed
                if ctypes.CDLL(None).mincore(begin, size, ctypes.c_void_p(there.ctypes.data)):
                    return None
                pages, resident = pages + there.size, resident + int(np.count_nonzero(there & 1))
    except OSError:
        return None
    return resident / pages if pages else None
