"""The texts of two arms: from which token they differ, how close the choice was there, and what may have decided it.

Greedy decoding takes the likeliest token. Where the two likeliest are closer than rounding, any change of the number
format or of the order in which sums are formed may swap them, and everything after that token differs.
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest

import msgspec

from tokendyno.backend.messages import Probed
from tokendyno.backend.plan import CACHES

OTHER_MODEL = "the model itself, changed on purpose"
NUMBER_FORMAT = "number format"
CAUSES = {
    OTHER_MODEL: ("attention",),
    NUMBER_FORMAT: ("dtype", "quantization", "cache"),
    "order of summation": (
        "allocator",
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
"""The axes of each cause by which an arm may choose another token. A cache changes the number format only if it is
quantized, and attention the model only if its sinks are left out."""

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
    return next((index for index, (here, there) in enumerate(zip_longest(a, b)) if here != there), None)


def format_axes(a: Mapping[str, str], b: Mapping[str, str]) -> set[str]:
    """The axes by which two planned arms compute or keep numbers in different formats."""
    return _causes(NUMBER_FORMAT, a, b)


def _causes(cause: str, a: Mapping[str, str], b: Mapping[str, str]) -> set[str]:
    """The axes of a cause in which two planned arms differ. In another model nothing else is a cause."""
    changed = {axis for axis, choice in a.items() if b.get(axis) != choice}
    other_model = ("sinks=off" in a.get("attention", "")) != ("sinks=off" in b.get("attention", ""))
    if other_model or cause == OTHER_MODEL:
        return {"attention"} if other_model and cause == OTHER_MODEL else set()
    quantized = any(choices.get("cache") in _QUANTIZED for choices in (a, b))
    ignored = {"cache"} if cause == NUMBER_FORMAT and not quantized else set()
    return changed & (set(CAUSES[cause]) - ignored)


def compare_texts(
    ids: Sequence[Sequence[int]], planned: Sequence[Mapping[str, str]], probed: Probed | None
) -> TextComparison:
    """Compare two arms by their token ids and planned choices. `probed` counts only if it is of the token at which they
    differ."""
    differ_at = equal_until(*ids)
    if differ_at is None:
        return TextComparison(None)
    causes = [cause for cause in CAUSES if _causes(cause, planned[0], planned[1])]
    if probed is None or probed.token != differ_at:
        return TextComparison(differ_at, causes=causes)
    return TextComparison(differ_at, probed.gap, probed.texts, causes)
