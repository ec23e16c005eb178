"""The bench's own folder on disk: compile artefacts, and for each worker process a scratch folder that ends with it.

What lies there can hold code that a compiler made and pickles that torch reads back, so it is this user's alone.
"""

import os
import platform
import shutil
from pathlib import Path

import psutil

from backend.errors import InputError


def cache_folder() -> Path:
    """TOKENDYNO_CACHE, else ~/.cache/tokendyno."""
    return Path(os.environ.get("TOKENDYNO_CACHE") or "~/.cache/tokendyno").expanduser()


def private_folder(name: str) -> Path:
    """A folder of that name in the bench's own, made if need be, that nobody else may enter or write to.

    InputError where it cannot be made, or belongs to somebody else.
    """
    folder = cache_folder() / name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise InputError(
            f"The folder {folder} cannot be made or is not yours ({error.strerror}). Name another with TOKENDYNO_CACHE."
        ) from error
    return folder


def is_private(path: Path) -> bool:
    """Whether a file is this user's, and nobody else's to write. True where the system has no owners."""
    if not hasattr(os, "geteuid"):
        return True
    found = path.lstat()
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022


def scratch_folder(pid: int) -> Path:
    """Where the scratch folder of a process is, if it has one. Homes may be shared between hosts."""
    return cache_folder() / "scratch" / f"{platform.node()}-{pid}"


def make_scratch() -> Path:
    """An empty scratch folder for this process; those of processes that are gone are removed."""
    parent = private_folder("scratch")
    for other in parent.glob(f"{platform.node()}-*"):
        pid = other.name.rpartition("-")[2]
        if pid.isdecimal() and (int(pid) == os.getpid() or not psutil.pid_exists(int(pid))):
            shutil.rmtree(other, ignore_errors=True)
    folder = scratch_folder(os.getpid())
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def remove_scratch(pid: int) -> None:
    """Remove a process's scratch folder, if it has one. Called by all who see it end, perhaps at the same time."""
    shutil.rmtree(scratch_folder(pid), ignore_errors=True)
