"""Classifies model references: which are local paths, and which cannot name a model at all."""

from pathlib import Path

from tokendyno.backend.errors import InputError

MAX_REFERENCE = 1_024


def clean(ref: str) -> str:
    """The reference, stripped. InputError if it cannot name a model: empty, too long, or not printable."""
    if not ref.strip():
        raise InputError("No model is given. Give a catalogue name (pocket), a Hub id, a folder or a GGUF file.")
    reason = "it is too long" if len(ref) > MAX_REFERENCE else "it contains control characters"
    if len(ref) > MAX_REFERENCE or not ref.isprintable():
        raise InputError(
            f"This cannot be the name of a model: {reason}. Give a catalogue name (pocket), a Hub id, a folder or a "
            "GGUF file."
        )
    return ref.strip()


def local_path(name: str, models_dir: Path | None, local_paths: bool) -> Path | None:
    """The folder or GGUF file that `name` means; None if it is not a local path.

    InputError if it is a path that does not exist, or if paths are not allowed (`local_paths`).
    """
    given = Path(name)
    inside = not given.is_absolute() and ".." not in given.parts and not name.startswith("~")
    is_gguf = name.lower().endswith(".gguf")
    if models_dir is not None and inside and (found := _existing(models_dir / given, is_gguf)):
        return found
    path_like = name.startswith(("/", "./", "../", "~", ".\\")) or name in (".", "..") or given.is_absolute()
    wanted = path_like or is_gguf or ".." in given.parts
    if not local_paths:
        if wanted:
            raise InputError(f"Local paths are not allowed here: {name!r}. Choose a listed model, or give a Hub id.")
        return None
    path = _existing(given, wanted)
    if path is None and wanted:
        raise InputError(f"There is no folder or GGUF file {name!r}. Check the path.")
    return path


def _existing(path: Path, file_too: bool) -> Path | None:
    """The path if it is a folder or, with `file_too`, a regular file (not a pipe or a device)."""
    try:
        path = path.expanduser()
        return path if path.is_dir() or (file_too and path.is_file()) else None
    except (OSError, RuntimeError, ValueError):  # too long for the file system, or no such home folder
        return None
