"""What one arm predicts otherwise than another, over given texts."""

import math
from collections.abc import Sequence

import msgspec

from tokendyno.backend.config import Request
from tokendyno.backend.messages import Scored
from tokendyno.backend.quality.presets import shipped_texts
from tokendyno.backend.quality.texts import Quality
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.statistics import interval, mean


class ArmReading(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How well one arm predicts a text. `perplexity`: exp of the mean negative log probability."""

    nll_nats: float
    perplexity: float


class ReadingDifference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arm B against arm A, position by position.

    perplexity_low, _high     95% interval of that ratio over positions, as if they were independent
    kl_nats, kl_max_nats      mean and largest KL(A's distribution || B's)
    top1_agreement            share of positions at which both find the same token most likely
    first_divergence          index of the first position at which they do not; None where there is none
    """

    perplexity_ratio: float
    perplexity_low: float
    perplexity_high: float
    kl_nats: float
    kl_max_nats: float
    top1_agreement: float
    first_divergence: int | None


class TextReading(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One text, or all of them together: positions, each arm that has read it, and the difference of two."""

    name: str
    positions: int
    arms: dict[str, ArmReading]
    difference: ReadingDifference | None


def given_texts(request: Request) -> Quality | None:
    """The texts that a run has read or may read; None for none."""
    if request.quality is not None or request.reading is None:
        return request.quality
    return Quality(request.reading or shipped_texts())


def readings(run: Snapshot) -> list[TextReading]:
    """Each text that every arm has read, in order."""
    quality = given_texts(run.request)
    if quality is None:
        return []
    read = min((len(arm.scores) for arm in run.arms.values()), default=0)
    return [
        _reading(text.name, {name: [arm.scores[index]] for name, arm in run.arms.items()})
        for index, text in enumerate(quality.texts[:read])
    ]


def whole_reading(run: Snapshot) -> TextReading | None:
    """All texts together, each position counting once; None until every arm has read one."""
    read = min((len(arm.scores) for arm in run.arms.values()), default=0)
    if not read:
        return None
    return _reading("all", {name: arm.scores[:read] for name, arm in run.arms.items()})


def _reading(name: str, scores: dict[str, list[Scored]]) -> TextReading:
    nll = {arm: [value for one in found for value in one.nll_nats] for arm, found in scores.items()}
    arms = {}
    for arm, values in nll.items():
        middle = mean(values)
        assert middle is not None
        arms[arm] = ArmReading(middle, math.exp(middle))
    positions = len(next(iter(nll.values())))
    if len(scores) < 2:
        return TextReading(name, positions, arms, None)
    (a, b), (nll_a, nll_b) = scores.values(), nll.values()
    tops = [[token for one in found for token in one.top] for found in (a, b)]
    kl = [value for one in b for value in one.kl_nats]
    return TextReading(name, positions, arms, _difference(nll_a, nll_b, tops, kl))


def _difference(
    nll_a: Sequence[float], nll_b: Sequence[float], tops: Sequence[Sequence[int]], kl: Sequence[float]
) -> ReadingDifference:
    more = [b - a for a, b in zip(nll_a, nll_b, strict=True)]
    middle, bounds = mean(more), interval(more)
    assert middle is not None
    assert bounds is not None
    apart = [index for index, (one, other) in enumerate(zip(*tops, strict=True)) if one != other]
    return ReadingDifference(
        perplexity_ratio=math.exp(middle),
        perplexity_low=math.exp(bounds[0]),
        perplexity_high=math.exp(bounds[1]),
        kl_nats=math.fsum(kl) / len(kl),
        kl_max_nats=max(kl),
        top1_agreement=1 - len(apart) / len(more),
        first_divergence=apart[0] if apart else None,
    )
