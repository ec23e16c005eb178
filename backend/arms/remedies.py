"""What makes an arm fit that is too large, by what it costs the user (`Choice.loss`)."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping

from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.predict.parallel import SIZES

Changes = Mapping[str, str]
Lacks = Callable[[Changes], int | None]
"""Bytes that an arm lacks with these changes, none or less where it fits; None where it cannot run."""


def ways(gpus: int) -> Iterator[Changes]:
    """How up to so many GPUs may share a model, after one that has it whole."""
    yield {}
    for kind in ("tensor", "expert", "device-map"):
        yield from ({"parallel": f"{kind}-{size}"} for size in SIZES if size <= gpus)


def least_harm(facts: ModelFacts, shared: Iterable[Changes], lacks: Lacks) -> Changes | None:
    """The changes that cost least of those with which an arm fits: nothing is lost where devices share the model in one
    of the ways `shared`, then the worst of several changes counts, then their number. Where nothing fits, the change
    with which least is lacking; None where no arm runs."""
    tried = list[tuple[int, Changes]]()
    for way in shared:
        if (lacking := lacks(way)) is not None:
            tried.append((lacking, way))
            if lacking <= 0:
                return way
    ranked = list[tuple[tuple[int, int, list[int]], Changes]]()
    for whole, way in tried[:]:
        offered = list[list[tuple[int, Changes]]]()
        for axis in all_axes():
            changes, least = list[tuple[int, Changes]](), whole
            for choice in sorted(axis.choices, key=lambda choice: choice.loss or 0):
                if choice.loss is None or not axis.matters(facts):
                    continue
                change = {axis.name: choice.name}
                if (lacking := lacks({**change, **way})) is not None and lacking < least:  # else another costs less
                    tried.append((lacking, {**change, **way}))
                    changes.append((choice.loss, change))
                    least = lacking
            offered.append([(0, {}), *changes])
        for combination in itertools.product(*offered):
            losses = sorted((loss for loss, change in combination if change), reverse=True)
            combined = {axis: choice for _, change in combination for axis, choice in change.items()}
            ranked.append(((max(losses, default=-1) // 10, len(losses), losses), {**combined, **way}))
    for _, changed in sorted(ranked, key=lambda pair: pair[0]):
        if (lacking := lacks(changed)) is not None and lacking <= 0:
            return changed
    return min(tried, key=lambda pair: pair[0], default=(0, None))[1]
