"""What a model's files are to blame for: a part that cannot be read or used is named, and no choice of the arm is
blamed; weights that hold NaN or infinity are refused.

While a part of the model is read, or is used on a text, the engine is told: it ends a worker that takes too long over
a text, and names the part where the worker dies of it. Native code can be interrupted in no other way.
"""

import contextlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import torch

from tokendyno.backend.errors import COPY_AGAIN, InputError
from tokendyno.backend.messages import PartUse, Reading
from tokendyno.backend.optimizations.tensor_bytes import named_weight_tensors

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
def blaming_weights(folder: Path) -> Iterator[None]:
    """Within it, an error about weights of other shapes than the config asks for becomes Unreadable."""
    try:
        yield
    except Exception as error:
        if "ignore_mismatched_sizes" not in str(
            error
        ):  # transformers 5.22, utils/loading_report.py; no tensor is named
            raise
        files = ", ".join(sorted(file.name for file in folder.glob("*.safetensors"))[:2])
        why = "config.json asks for tensors of other shapes: the two are of two models"
        raise Unreadable(f"weights ({files})", "read", why) from error


# --- finite weights ------------------------------------------------------------------------------

CHUNK = 1 << 24
"""Elements that are converted at a time where torch cannot compare numbers of their format (float8)."""
MOST_NAMED = 3
_E8M0_NAN = 255
_SCALES = "_scales"
"""How the names of MXFP4's scales end, which are exponents (e8m0) kept as plain bytes."""
_MASKING = ("bias", "sinks")
"""How the names of tensors end in which minus infinity can be meant: a token is ruled out, a head has no sink."""


def refuse_broken(model: Any) -> None:
    """InputError if a parameter, a scale or a buffer holds NaN, or infinity where none can be meant."""
    buffers = {name for name, _ in model.named_buffers()}
    with torch.inference_mode():
        found = [(name, _extremes(tensor, name)) for name, tensor in named_weight_tensors(model)]
        names = [name for name, pair in found if pair is not None]
        pairs = _fetched([pair for _, pair in found if pair is not None])
    kinds = {
        name: kind for name, pair in zip(names, pairs, strict=True) if (kind := _kind(*pair, name, name in buffers))
    }
    if kinds:
        raise InputError(_sentence(kinds, len(set(names)), model.dtype))


def _extremes(tensor: Any, name: str) -> Any:
    """The least and the greatest number as a tensor (2,), both NaN where one is; None for formats without NaN."""
    if tensor.is_meta:
        return None
    if tensor.dtype == torch.uint8 and name.endswith(_SCALES):
        low, high = tensor.aminmax()
        return torch.stack([low, high]).double().masked_fill(high == _E8M0_NAN, math.nan)
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    if not tensor.is_floating_point():
        return None
    if tensor.element_size() > 1:
        return torch.stack(tensor.aminmax()).double()
    parts = [torch.stack(part.float().aminmax()) for part in tensor.flatten().split(CHUNK)]
    return torch.stack(torch.stack(parts).aminmax()).double()


def _fetched(extremes: Sequence[Any]) -> list[tuple[float, float]]:
    """All pairs, in their order: one copy from each device."""
    places: defaultdict[Any, list[int]] = defaultdict(list)
    for place, pair in enumerate(extremes):
        places[pair.device].append(place)
    found: dict[int, tuple[float, float]] = {}
    for here in places.values():
        found.update(zip(here, torch.stack([extremes[place] for place in here]).tolist(), strict=True))
    return [found[place] for place in range(len(extremes))]


def _kind(low: float, high: float, name: str, buffer: bool) -> str:
    """What is wrong with a tensor; "" if nothing is. Buffers may hold masks."""
    if math.isnan(low) or math.isnan(high):
        return "NaN"
    if buffer or (math.isfinite(low) and math.isfinite(high)):
        return ""
    return "" if name.endswith(_MASKING) and high < math.inf else "infinity"


def _sentence(kinds: dict[str, str], of: int, dtype: torch.dtype) -> str:
    first = ", ".join(f"{name} ({kind})" for name, kind in list(kinds.items())[:MOST_NAMED])
    sentence = (
        f"{len(kinds):,} of the model's {of:,} weight tensors hold numbers that are not finite, first {first}. Copy or "
        "download the weights again"
    )
    if dtype == torch.float16 and "NaN" not in kinds.values():
        return f"{sentence}, or use dtype=bfloat16 or dtype=float32: float16 ends at 65,504."
    return f"{sentence}, or choose another model."
