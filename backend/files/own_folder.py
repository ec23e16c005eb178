"""A temporary folder of this process alone. Where the process is killed, the next one removes it."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def own_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """A new folder in `parent` (None: the system's temporary one) for this user alone, removed at the end.

    Folders of this prefix that killed processes left are removed first. OSError if it cannot be made.
    """
    within = Path(tempfile.gettempdir()) if parent is None else parent
    for left in within.glob(f"{prefix}*"):
        _remove_if_left(left)
    draft = Path(tempfile.mkdtemp(prefix=f"new-{prefix}", dir=within))  # it has its name only once it is locked
    folder = draft.with_name(draft.name.removeprefix("new-"))
    lock = os.open(draft, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        draft.rename(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_if_left(folder: Path) -> None:
    with suppress(OSError):  # of what is no folder, of another user, or locked
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if os.fstat(lock).st_uid == os.geteuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
