"""How many rows reached the experts of a mixture: each token once for each expert that it is routed to."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from backend.optimizations.proof import (
    PRODUCTS,
    Observation,
    Shape,
    ShapedCall,
    hides,
    prompt_passes,
    rows_of,
    traced_passes,
    weight_of,
)

GROUPED_MM, FALLBACK, LOOP = "aten::_grouped_mm", "transformers::grouped_mm_fallback", "aten::one_hot"
_PRODUCTS = 2
"""Of a mixture in a pass: gate and up together, down."""


class Rows(NamedTuple):
    """Rows of the products with experts' weights that the trace shows, and that there should be of the same passes."""

    seen: int
    due: int


def expert_rows(observation: Observation, mixtures: Sequence[Any]) -> Rows | None:
    """Of all passes, or of the prompt's where steps are hidden. None where rows or tokens cannot be counted: on several
    ranks, in kernels that take rows as they are routed, and where the model's facts do not say how many experts a token
    has."""
    routed, trace = observation.plan.routed, observation.trace()
    if not routed or not mixtures or observation.plan.load.parallel.ranks > 1:
        return None
    seen = _rows(trace.shapes, observation.model, mixtures)
    passes = tokens_of_passes(observation)
    if not seen or not passes:
        return None
    tokens = sum(sorted(passes)[-prompt_passes(observation) :] if hides(observation) else passes)
    return Rows(seen, tokens * routed * len(mixtures) * _PRODUCTS)


def _rows(shapes: Counter[ShapedCall], model: Any, mixtures: Sequence[Any]) -> int:
    """Of grouped products and of those with a weight copied for each row. Without either those of plain products, which
    a grouped one may be made of; where other layers have matrices of the same shape, those that a loop was given."""
    weights = {tuple(one.shape)[1:] for mixture in mixtures for one in mixture.parameters() if one.ndim == 3}
    others = {tuple(one.shape) for one in model.parameters() if one.ndim == 2}
    weights |= {shape[::-1] for shape in weights}
    plain = routed = looped = 0
    for (name, given), n in shapes.items():
        first, second = (*given, (), ())[:2]
        if name in (GROUPED_MM, FALLBACK) or (name == "aten::bmm" and _copied(first, second, weights)):
            routed += n * first[0]
        elif name in PRODUCTS and weight_of(name, given) in weights:
            plain += n * rows_of(name, given)
        elif name == LOOP:
            looped += n * _PRODUCTS * math.prod(first)
    return routed or (looped if others & weights else plain)


def _copied(first: Shape, second: Shape, weights: set[Shape]) -> bool:
    """Whether one is a weight of each row, and the other its vector."""
    return any(a[1:] in weights and 1 in b[1:] for a, b in ((first, second), (second, first)))


def tokens_of_passes(observation: Observation) -> list[int]:
    """Tokens of each pass, of all rows, as they were looked up in the model's input embedding. [] where a pass may look
    up more than once."""
    embedding = tuple(observation.model.get_input_embeddings().weight.shape)
    calls: Iterable[tuple[Shape, int]] = (
        (given[1], n)
        for (name, given), n in observation.trace().shapes.items()
        if name == "aten::embedding" and given[0] == embedding
    )
    found = [math.prod(ids) for ids, n in calls for _ in range(n)]
    return found if len(found) < 2 * traced_passes(observation) else []
