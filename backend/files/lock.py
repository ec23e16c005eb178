"""A lock between processes, for a file that is read, changed and replaced: the last one that writes would win."""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backend.files.whole import PRIVATE

LOOK_EVERY_S = 0.02


@contextmanager
def locked(path: Path, wait_s: float) -> Iterator[None]:
    """Have a file's changes to oneself, once whoever has them now lets go; a link is followed.

    The lock is a file of its own beside it, empty and left there, since the file itself is replaced by each change. It
    ends with its process. OSError if there can be no lock; TimeoutError, one of them, after `wait_s`.
    """
    target = Path(os.path.realpath(path))
    until_s = time.monotonic() + wait_s
    with open(os.open(f"{target}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE), "rb") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until_s:
                    raise TimeoutError(errno.ETIMEDOUT, "another process is changing it") from None
            time.sleep(LOOK_EVERY_S)
        yield
