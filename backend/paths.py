"""Every place on disk: the project's own files, the user's data (history, measurements), and the cache.

The cache holds compile artifacts, compiled code that workers share, and one scratch folder per worker process, removed
when that process ends. It can contain generated code and pickles that torch loads, so only the current user may write
to it.
"""

import os
import platform
import shutil
from pathlib import Path

import platformdirs
import psutil

from tokendyno.backend.errors import InputError

ROOT = Path(__file__).resolve().parent.parent
"""The folder that holds backend/, presets/ and ui/: a checkout, or tokendyno/ in site-packages."""

BACKEND = ROOT / "backend"
PRESETS = ROOT / "presets"
APP = "tokendyno"
IMPORTED_FROM = ROOT if (ROOT / APP).is_dir() else ROOT.parent
"""The folder in which Python finds the package `tokendyno`: a checkout, or site-packages."""


def data_folder() -> Path:
    """Folder of the history and of measurements of this machine: on Linux in $XDG_DATA_HOME or ~/.local/share."""
    return platformdirs.user_data_path(APP, appauthor=False)


def default_history() -> Path:
    """The history file, unless the user names another one."""
    return data_folder() / "history.sqlite"


def ablation_folder(history: Path) -> Path:
    """The folder of the ablations that belong to a history."""
    return history.parent / "ablations"


def default_users() -> Path:
    """The file of users who may log in, unless another is named."""
    return data_folder() / "users.json"


def bandwidth_file() -> Path:
    """The measured memory bandwidth of each device of this machine."""
    return data_folder() / "bandwidth.json"


def cache_folder() -> Path:
    """TOKENDYNO_CACHE, else a folder in the user's cache: on Linux $XDG_CACHE_HOME or ~/.cache."""
    folder = os.environ.get("TOKENDYNO_CACHE")
    return Path(folder).expanduser() if folder else platformdirs.user_cache_path(APP, appauthor=False)


def private_folder(name: str) -> Path:
    """A subfolder of the cache that only this user can access, made if necessary. InputError if it cannot be."""
    folder = cache_folder() / name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise InputError(
            f"The folder {folder} cannot be created or is not yours ({error.strerror}). Set TOKENDYNO_CACHE to another."
        ) from error
    return folder


def is_private(path: Path) -> bool:
    """Whether only this user can write to a file. True on systems without file owners."""
    if not hasattr(os, "geteuid"):
        return True
    stat = path.lstat()
    return stat.st_uid == os.geteuid() and not stat.st_mode & 0o022


def scratch_folder(pid: int) -> Path:
    """The scratch folder of a process, whether or not it exists. The host is in its name, since homes may be shared."""
    return cache_folder() / "scratch" / f"{platform.node()}-{pid}"


def make_scratch() -> Path:
    """Create an empty scratch folder for this process, and remove those of processes that no longer exist."""
    parent = private_folder("scratch")
    for scratch in parent.glob(f"{platform.node()}-*"):
        pid = scratch.name.rpartition("-")[2]
        if pid.isdecimal() and (int(pid) == os.getpid() or not psutil.pid_exists(int(pid))):
            shutil.rmtree(scratch, ignore_errors=True)
    folder = scratch_folder(os.getpid())
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def remove_scratch(pid: int) -> None:
    """Remove the scratch folder of a process, if it exists. Safe to call several times, also concurrently."""
    shutil.rmtree(scratch_folder(pid), ignore_errors=True)
