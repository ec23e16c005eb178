"""Writes a file whole or not at all, whatever ends the process in between."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

READABLE, PRIVATE = 0o666, 0o600
"""Modes of a new file, before the umask."""


def write_whole(path: Path, data: bytes, mode: int = READABLE) -> None:
    """Replace the file in one step; a link is followed, the last writer wins. OSError: nothing has changed."""
    target = Path(os.path.realpath(path))
    draft = _draft(target)
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def require_writable(path: Path) -> None:
    """OSError if `write_whole` could not write there now. Leaves nothing behind."""
    draft = _draft(Path(os.path.realpath(path)))
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE))
    draft.unlink()


def _draft(target: Path) -> Path:
    """A name beside it that nobody else has."""
    return target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
