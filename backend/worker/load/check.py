"""What a model's files are to blame for: a part that cannot be read or used is named, and no choice of the arm is
blamed.

While a part of the model is read, or is used on a text, the engine is told: it ends a worker that takes too long over
a text, and names the part where the worker dies of it. Native code can be interrupted in no other way.
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
"""Tells the engine what this thread works on."""

TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")


class Unreadable(InputError):
    """A part of the model could not be read or used; its cause is what a library raised."""

    def __init__(self, part: str, use: PartUse, why: str) -> None:
        fails = "fails on this text" if use == "tokenize" else "cannot be read"
        super().__init__(f"The model's {part} {fails} ({why[:250].rstrip('.')}). {COPY_AGAIN}")


@contextlib.contextmanager
def reading(part: str, use: PartUse = "read") -> Iterator[None]:
    """Within it, errors that say nothing of files or packages become Unreadable. `part`: as in "model's tokenizer"."""
    announce.get()(Reading(part, use))
    try:
        yield
    except (InputError, OSError, ImportError, MemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # of Rust, by pyo3
            raise
        raise Unreadable(part, use, f"{type(error).__name__}: {error}") from error
    finally:
        announce.get()(Reading())


def named(part: str, folder: Path, names: tuple[str, ...]) -> str:
    """A part of the model with those of its files that are there. `folder`: or the one file that holds everything."""
    found = [folder.name] if folder.is_file() else [name for name in names if (folder / name).is_file()]
    return f"{part} ({', '.join(found)})" if found else part


def using(tokenizer: Any) -> contextlib.AbstractContextManager[None]:
    """Around what turns text into tokens, or tokens into text."""
    return reading(named("tokenizer", Path(tokenizer.name_or_path), TOKENIZER[:1]), "tokenize")


def token_ids(tokenizer: Any, text: str, **more: Any) -> list[int]:
    """The ids of a text. Unreadable where the tokenizer fails on it."""
    with using(tokenizer):
        return list(tokenizer(text, **more)["input_ids"])


@contextlib.contextmanager
def blaming_config(build: Callable[[], object]) -> Iterator[None]:
    """Within it, errors become Unreadable where `build` fails too, without memory and without the arm's choices."""
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
    """Within it, what safetensors refuses, and weights of other shapes than the config asks for, become Unreadable."""
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
