"""Errors that a model's files cause: the part that cannot be read or used is named, and no choice of the arm is blamed.

The engine is told which part is being read, or used on a text: it ends a worker that takes too long over a text (native
code cannot be interrupted in any other way), and names the part if the worker dies.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from tokendyno.backend.errors import COPY_AGAIN, InputError
from tokendyno.backend.messages import PartUse, Reading

announce: ContextVar[Callable[[Reading], object]] = ContextVar("announce", default=lambda reading: None)
"""Tells the engine which part this thread works on."""

TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")


class Unreadable(InputError):
    """A part of the model could not be read or used. `__cause__` is the library's own error."""

    def __init__(self, part: str, use: PartUse, why: str) -> None:
        fails = {"read": "cannot be read", "render": "cannot be rendered", "tokenize": "fails on this text"}[use]
        fix = "Use a plain prompt, or another model." if use == "render" else COPY_AGAIN
        super().__init__(f"The model's {part} {fails} ({why[:250].rstrip('.: ')}). {fix}")


@contextlib.contextmanager
def reading(part: str, use: PartUse = "read") -> Iterator[None]:
    """Within it, errors become Unreadable, but for those about files, packages or memory; a template may raise those.

    part  completes "The model's ...": "tokenizer (tokenizer.json)"
    """
    announce.get()(Reading(part, use))
    try:
        yield
    except BaseException as error:
        kept = (InputError,) if use == "render" else (InputError, OSError, ImportError, MemoryError)
        panic = type(error).__name__ == "PanicException"  # of Rust, by pyo3
        if isinstance(error, kept) or not (panic or isinstance(error, Exception)):
            raise
        raise Unreadable(part, use, f"{type(error).__name__}: {error}") from error
    finally:
        announce.get()(Reading())


def named(part: str, folder: Path, names: tuple[str, ...]) -> str:
    """`part` with those of its files that exist. `folder` may also be the one file that holds everything."""
    present = [folder.name] if folder.is_file() else [name for name in names if (folder / name).is_file()]
    return f"{part} ({', '.join(present)})" if present else part


def using(tokenizer: Any) -> contextlib.AbstractContextManager[None]:
    """Around whatever encodes or decodes text."""
    return reading(named("tokenizer", Path(tokenizer.name_or_path), TOKENIZER[:1]), "tokenize")


def token_ids(tokenizer: Any, text: str, **kwargs: Any) -> list[int]:
    """The ids of a text. Raises Unreadable where the tokenizer fails on it."""
    with using(tokenizer):
        return list(tokenizer(text, **kwargs)["input_ids"])


@contextlib.contextmanager
def blaming_config(build: Callable[[], object]) -> Iterator[None]:
    """Within it, an error becomes Unreadable if `build` fails too, on the meta device and without the arm's choices."""
    try:
        yield
    except (InputError, OSError, ImportError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception:
        with (
            contextlib.suppress(OSError, ImportError, MemoryError),
            reading("config (config.json)"),
            torch.device("meta"),
        ):
            build()
        raise


@contextlib.contextmanager
def blaming_weights(folder: Path) -> Iterator[None]:
    """Within it, errors of safetensors, and weights whose shapes differ from the config's, become Unreadable."""
    try:
        yield
    except Exception as error:
        files = sorted(folder.glob("*.safetensors"))
        if "ignore_mismatched_sizes" in str(error):  # transformers 5.22, utils/loading_report.py; no tensor is named
            why = "config.json asks for tensors of other shapes: the two are of two models"
        elif isinstance(error, SafetensorError):
            why, files = f"SafetensorError: {error}", [file for file in files if not _opens(file)] or files
        else:
            raise
        names = ", ".join(file.name for file in files[:2])
        raise Unreadable(f"weights ({names})", "read", why) from error


def _opens(file: Path) -> bool:
    with contextlib.suppress(SafetensorError, OSError), safe_open(file, "pt"):
        return True
    return False
