"""What transformers cannot read of a model's files, as an error that names the part: no choice is at fault."""

import contextlib
from collections.abc import Iterator

from backend.errors import InputError


class Unread(Exception):
    """A part of the model could not be read; its cause is what transformers raised."""


@contextlib.contextmanager
def reading(part: str) -> Iterator[None]:
    """Within it, errors that say nothing of files or packages become Unread. `part`: as in "the model's tokenizer"."""
    try:
        yield
    except (InputError, OSError, ImportError, MemoryError):
        raise
    except Exception as error:
        raise Unread(f"The model's {part} cannot be read: {type(error).__name__}: {error}") from error
