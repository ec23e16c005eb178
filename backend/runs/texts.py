"""The texts of two arms: from which token they differ, how close the choice was there, and what may have decided it.

Greedy decoding takes the likeliest token. Where the two likeliest are closer than rounding, any change of the number
format or of the order in which sums are formed may swap them, and everything after that token differs.
"""

from collections.abc import Mapping, Sequence

import msgspec

from tokendyno.backend.messages import Probed
from tokendyno.backend.plan import CACHES

CAUSES = {
    "the model itself, changed on purpose": ("attention",),
    "number format": ("dtype", "quantization", "cache"),
    "order of summation": (
        "attention",
        "cache",
        "compile",
        "cuda_graphs",
        "loop",
        "experts",
        "kernels",
        "parallel",
        "prefill",
        "projections",
        "shapes",
    ),
    "verification of several tokens at once": ("speculation",),
}
"""Why models may choose another token -> axes that do this. A cache changes the number format if it is quantized, and
attention the model if its sinks are left out."""


_QUANTIZED = {name for name, kind in CACHES.items() if kind.quantized}


class TextComparison(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Greedy texts of two arms.

    tokens_equal_until  index of the first generated token at which they differ; None where none does
    gap                 the lead of the likeliest of all tokens over the next one there, in logits; None if not probed
    """

    tokens_equal_until: int | None
    gap: float | None = None
    likeliest: list[str] = []
    causes: list[str] = []


def equal_until(a: Sequence[int], b: Sequence[int]) -> int | None:
    """Index of the first token that differs, the end of a shorter text included; None if there is none."""
    for index, (one, other) in enumerate(zip(a, b, strict=False)):
        if one != other:
            return index
    return None if len(a) == len(b) else min(len(a), len(b))


def changes_format(a: Mapping[str, str], b: Mapping[str, str]) -> bool:
    """Whether two planned arms compute or keep numbers in different formats."""
    return bool(format_axes(a, b))


def format_axes(a: Mapping[str, str], b: Mapping[str, str]) -> set[str]:
    """The axes by which two planned arms compute or keep numbers in different formats."""
    return _causes("number format", a, b)


def _causes(cause: str, a: Mapping[str, str], b: Mapping[str, str]) -> set[str]:
    """The axes of a cause in which two planned arms differ."""
    changed = {axis for axis, choice in a.items() if b.get(axis) != choice}
    if ("sinks=off" in a.get("attention", "")) != ("sinks=off" in b.get("attention", "")):
        return {"attention"} if cause == next(iter(CAUSES)) else set()
    if cause == next(iter(CAUSES)):
        return set()
    quantized = any(choices.get("cache") in _QUANTIZED for choices in (a, b))
    without = {"cache"} if cause == "number format" and not quantized else set()
    return changed & (set(CAUSES[cause]) - without)


def compare_texts(
    ids: Sequence[Sequence[int]], planned: Sequence[Mapping[str, str]], probed: Probed | None
) -> TextComparison:
    """Two arms by their token ids and planned choices. `probed` counts only where it is of that token."""
    at = equal_until(*ids)
    if at is None:
        return TextComparison(None)
    causes = [cause for cause in CAUSES if _causes(cause, planned[0], planned[1])]
    if probed is None or probed.token != at:
        return TextComparison(at, causes=causes)
    return TextComparison(at, probed.gap, probed.texts, causes)
