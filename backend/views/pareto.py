"""Arms or points by what they cost: time, memory, quality. Which of them no other one beats in everything."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from tokendyno.backend.units import bytes_text, seconds_text, three


class Cost(NamedTuple):
    """What one arm takes; None where it is not known.

    latency_s  time per token
    quality    less is better: KL divergence in nats, or perplexity
    alike      only those of one kind compete: other lengths are another task, and not a choice
    mark       what stands beside its point, such as the number of a pin; "" where those of the front are numbered
    """

    label: str
    latency_s: float | None
    memory_bytes: float | None
    quality: float | None = None
    alike: str = ""
    mark: str = ""


class ParetoPoint(msgspec.Struct, frozen=True):
    """One of them. `front`: no other takes at most as much of everything, and less of something; `mark`: see `Cost`."""

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
    known = [one for one in costs if one.latency_s is not None and one.memory_bytes is not None]
    if len(known) < 2:
        return None
    judged = all(one.quality is not None for one in known)
    return Pareto(quality if judged else "", [_point(one, known, quality, judged) for one in known])


def _point(one: Cost, known: Sequence[Cost], title: str, judged: bool) -> ParetoPoint:
    assert one.latency_s is not None and one.memory_bytes is not None
    front = not any(_beats(other, one, judged) for other in known if other.alike == one.alike)
    said = [" ".join(seconds_text(one.latency_s)), " ".join(bytes_text(one.memory_bytes))]
    said += [f"{title} {three(one.quality)}"] if one.quality is not None else []
    return ParetoPoint(
        one.label, one.latency_s, one.memory_bytes, one.quality, one.alike, front, ", ".join(said), one.mark
    )


def _beats(other: Cost, one: Cost, judged: bool) -> bool:
    theirs, own = (
        (cost.latency_s or 0.0, cost.memory_bytes or 0.0, (cost.quality or 0.0) if judged else 0.0)
        for cost in (other, one)
    )
    return all(there <= here for there, here in zip(theirs, own, strict=True)) and theirs != own
