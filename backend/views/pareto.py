"""The Pareto front of arms or points by what they cost: time, memory, quality."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from tokendyno.backend.units import bytes_text, seconds_text, three


class Cost(NamedTuple):
    """What one arm takes; None where it is not known.

    quality    less is better: KL divergence in nats, or perplexity
    alike      only those with the same text here compete: other lengths are another task, not another choice
    mark       what stands beside its point, such as the number of a pin; "": points of the front are numbered
    """

    label: str
    latency_s: float | None
    memory_bytes: float | None
    quality: float | None = None
    alike: str = ""
    mark: str = ""


class ParetoPoint(msgspec.Struct, frozen=True):
    """A `Cost` as a point. `front`: no other takes at most as much of everything, and less of something."""

    label: str
    latency_s: float
    memory_bytes: float
    quality: float | None
    alike: str
    front: bool
    text: str
    mark: str = ""


class Pareto(msgspec.Struct, frozen=True):
    """A chart of time against memory; `quality` names the third figure, "" where it does not count."""

    quality: str
    points: list[ParetoPoint]


def pareto(costs: Sequence[Cost], quality: str) -> Pareto | None:
    """Those whose time and memory are known; None below two. Quality counts where it is known of all of them."""
    known = [cost for cost in costs if cost.latency_s is not None and cost.memory_bytes is not None]
    if len(known) < 2:
        return None
    with_quality = all(cost.quality is not None for cost in known)
    return Pareto(quality if with_quality else "", [_point(cost, known, quality, with_quality) for cost in known])


def as_shown(value: float | None, step: int = 1000) -> float:
    """A figure to the three digits that a reader sees: nobody sees what beats another one by less. `step`: from one of
    its units to the next."""
    if not value:
        return 0.0
    unit = float(step) ** math.floor(math.log(value, step))
    return float(f"{value / unit:.3g}") * unit


def _point(cost: Cost, known: Sequence[Cost], title: str, with_quality: bool) -> ParetoPoint:
    assert cost.latency_s is not None and cost.memory_bytes is not None
    front = not any(_dominates(other, cost, with_quality) for other in known if other.alike == cost.alike)
    figures = [" ".join(seconds_text(cost.latency_s)), " ".join(bytes_text(cost.memory_bytes))]
    figures += [f"{title} {three(cost.quality)}"] if cost.quality is not None else []
    return ParetoPoint(
        cost.label, cost.latency_s, cost.memory_bytes, cost.quality, cost.alike, front, ", ".join(figures), cost.mark
    )


def _dominates(other: Cost, cost: Cost, with_quality: bool) -> bool:
    theirs, own = (
        [as_shown(c.latency_s), as_shown(c.memory_bytes, 1024), as_shown(c.quality) if with_quality else 0.0]
        for c in (other, cost)
    )
    return all(there <= here for there, here in zip(theirs, own, strict=True)) and theirs != own
