"""Weights that hold NaN or infinity are refused once they are loaded: whatever such a model writes is noise."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch

from tokendyno.backend.errors import InputError
from tokendyno.backend.worker.prove.tensor_bytes import named_weight_tensors

CHUNK = 1 << 24
"""Elements that are converted at a time where torch cannot compare numbers of their format (float8)."""
MOST_NAMED = 3
_E8M0_NAN = 255
_SCALES = "_scales"
"""How the names of MXFP4's scales end, which are exponents (e8m0) kept as plain bytes."""
_MAY_EXCLUDE = ("bias", "sinks")
"""How the names of tensors end in which minus infinity can be meant: a token is ruled out, a head has no sink."""


def refuse_broken(model: Any) -> None:
    """InputError if a parameter, a scale or a buffer holds NaN, or infinity where none can be meant."""
    buffers = {name for name, _ in model.named_buffers()}
    with torch.inference_mode():
        names, extremes = [], []
        for name, tensor in named_weight_tensors(model):
            found = _extremes(tensor, name)
            if found is not None:
                names.append(name)
                extremes.append(found)
        pairs = _fetched(extremes)
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
    return "" if name.endswith(_MAY_EXCLUDE) and high < math.inf else "infinity"


def _sentence(kinds: dict[str, str], of: int, dtype: torch.dtype) -> str:
    first = ", ".join(f"{name} ({kind})" for name, kind in list(kinds.items())[:MOST_NAMED])
    sentence = (
        f"{len(kinds):,} of the model's {of:,} weight tensors hold numbers that are not finite, first {first}. Copy or "
        "download the weights again"
    )
    if dtype == torch.float16 and "NaN" not in kinds.values():
        return f"{sentence}, or use dtype=bfloat16 or dtype=float32: float16 ends at 65,504."
    return f"{sentence}, or choose another model."
