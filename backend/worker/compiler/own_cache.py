"""A compile cache of this process alone, filled from the one that workers share and published to it when complete.

Compilers write their output in place: a worker that is killed while g++ links leaves a torn library under its final
name. So each worker compiles into a folder of its own, which starts with hard links to the files of the shared folder.
What is new gets there as hard links too, after a warm-up or a run, unless something failed to compile. torch names
files by their content, so one that is there already is the same.

torch's default folder and the user's own TORCHINDUCTOR_CACHE_DIR are neither read nor written. Precompiled headers,
which torch keeps across empty caches on purpose, are shared by every kind of cache.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from tokendyno.backend import paths
from tokendyno.backend.plan import CompileCacheKind

VARIABLES = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"}
HEADERS = "headers"
MOST_BYTES = 8 << 30
"""The shared folder is emptied once it is larger than this."""

_NOT_SHARED = {"locks", "autoheuristic", "unhashed_kernel_inputs"}  # locks, and files that torch writes to again


def name_folder() -> None:
    """To be called before torch is imported: what compiles before any run goes into this process's own folder. Triton's
    usual cache is safe: finished files are renamed into place."""
    paths.remove_scratch(os.getpid())  # of an earlier process with the same id
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(paths.scratch_folder(os.getpid()) / "inductor")


def use(kind: CompileCacheKind) -> int:
    """Start a new folder: filled from the shared one ("torch"), or empty. Returns how many compiled files, without
    headers, it holds."""
    folder, shared = paths.make_scratch(), paths.private_folder("compiled")
    os.environ.update({name: str(folder / part) for name, part in VARIABLES.items()})
    with contextlib.suppress(OSError):  # another worker empties it
        if sum(path.stat().st_size for path in _files(shared)) > MOST_BYTES:
            shared.rename(folder / "too large")
    shutil.rmtree(folder / "too large", ignore_errors=True)
    filled = _fill(folder, shared, kind)
    from torch._inductor import codecache
    from torch._inductor.utils import clear_caches

    clear_caches()
    codecache._HEADER_DIR = str(folder / HEADERS)  # not in its cache folder, and named once, at import
    codecache._HEADER_LOCK_DIR = str(folder / HEADERS / "locks")
    codecache._precompile_header.cache_clear()
    return filled


def _fill(folder: Path, shared: Path, kind: CompileCacheKind) -> int:
    for path in _files(shared, kind):
        _link(path, folder / path.relative_to(shared))
    return sum(1 for path in _files(folder) if not path.is_relative_to(folder / HEADERS))


def publish(kind: CompileCacheKind) -> int:
    """Add what was compiled to the shared folder, while nothing compiles; of a fresh cache the headers alone. Returns
    how many compiled files of this process the shared folder has now."""
    folder, shared = paths.scratch_folder(os.getpid()), paths.private_folder("compiled")
    published = 0
    for path in _files(folder, kind):
        target = shared / path.relative_to(folder)
        if not target.exists():
            with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
                os.fsync(file.fileno())  # so that a power cut leaves it whole or absent
            _link(path, target)
        published += target.exists() and not path.is_relative_to(folder / HEADERS)
    return published


def _files(base: Path, kind: CompileCacheKind = "torch") -> Iterator[Path]:
    """Files that are written once and named by their content: headers, and unless workers share only those, both
    caches."""
    for part in (*(VARIABLES.values() if kind == "torch" else ()), HEADERS):
        for folder, folders, names in os.walk(base / part):
            folders[:] = [name for name in folders if name not in _NOT_SHARED and not name.startswith("tmp.")]
            if Path(folder) == base / part and part != HEADERS:
                continue  # files of other kinds
            for name in names:
                if not name.startswith(".") and not name.endswith((".lock", ".tmp")):
                    yield Path(folder, name)


def _link(path: Path, target: Path) -> None:
    """Hard-link `path` as `target`; without hard links, copy it and rename the complete copy."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(path, target)
    except (FileExistsError, FileNotFoundError):
        return  # another worker was quicker
    except OSError:
        draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        shutil.copy2(path, draft)
        os.replace(draft, target)
