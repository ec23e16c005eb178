"""What one arm predicts otherwise than another over given texts, and the gate behind which a gain in speed or memory
counts: what is known of the quality that arm B has against arm A.

It is settled without a reading where both arms wrote the same text in the same number format. Else a reading of given
texts tells, by the same two plans of the same visitor, on this machine and with these versions; else nobody knows.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from tokendyno.backend.config import Request
from tokendyno.backend.messages import Scored
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.quality.texts import Quality, shipped_texts
from tokendyno.backend.runs.records import Created, OfRun
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.statistics import interval, mean
from tokendyno.backend.runs.texts import changes_format


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


# --- the gate: what is known of the quality of arm B -----------------------------------------------

CLEARLY = 1.1
"""How many times the bytes are clearly more: scales and padding are not."""

ROUNDS = 30
"""A `Choice.loss` from which on numbers are rounded."""

GateState = Literal["settled", "read", "random", "unread"]


class Gate(msgspec.Struct, frozen=True):
    """What is known of the quality of arm B against arm A.

    state       settled: nothing is to be measured; read: by `difference`; random: the weights are, so that nothing
                could be measured; unread: nobody has measured it
    swapped     the reading had B as its reference: `difference` is of A against B
    finer       the arm with the finer weights, so that what it predicts otherwise is no cost; "" for neither
    """

    state: GateState
    run: str = ""
    positions: int = 0
    difference: ReadingDifference | None = None
    swapped: bool = False
    random: bool = False
    finer: str = ""
    own: bool = False


class PairReading(NamedTuple):
    """A reading by the arms of a run, all its texts together. `swapped`: it had B as its reference."""

    created: Created
    whole: TextReading | None
    swapped: bool


FindReading = Callable[[Created], PairReading | None]
"""The newest complete reading by the arms of a run; by its arms swapped where there is no other."""


def gate_of(run: Snapshot, find: FindReading | None) -> Gate | None:
    """The gate of a run that compares two decoding arms with one prompt; None for any other run."""
    if not comparable(run):
        return None
    a, b = (run.planned(name).planned for name in run.arms)
    texts = run.texts()
    same_text = texts is not None and texts.tokens_equal_until is None
    if a == b or (same_text and not changes_format(a, b)):
        return Gate("settled")
    random = run.request.model.startswith("random:")
    reading = PairReading(run.created, whole_reading(run), False)
    if reading.whole is None and find is not None:
        reading = find(run.created) or reading
    whole = reading.whole
    if whole is None or whole.difference is None:
        return Gate("random" if random else "unread", random=random)
    own = bool(reading.created.request.reading)
    return Gate(
        "read", reading.created.id, whole.positions, whole.difference, reading.swapped, random, finer_arm(run), own
    )


def finer_arm(run: Snapshot) -> str:
    """Of two arms whose weights take clearly different bytes the one that rounds less far, or, where both round as far,
    the one that takes more; "" where the bytes are alike. float32 with some layers in 4 bits is coarser than bfloat16.
    """
    sizes = {name: arm.loaded.weight_bytes for name, arm in run.arms.items() if arm.loaded is not None}
    if len(sizes) != 2:
        return ""
    (less, less_bytes), (more, more_bytes) = sorted(sizes.items(), key=lambda one: one[1])
    if more_bytes <= CLEARLY * less_bytes:
        return ""
    return min((more, less), key=lambda name: _rounded(run.planned(name).planned))


def _rounded(planned: Mapping[str, str]) -> int:
    """How far the choices of an arm round numbers, as the tens of `Choice.loss` from 3 on; 0: not that is known."""
    chosen = (one for axis in all_axes() for one in axis.choices if planned.get(axis.name) == one.name)
    return max((one.loss // 10 for one in chosen if one.loss and one.loss >= ROUNDS), default=0)


def comparable(run: OfRun) -> bool:
    """Whether a reading can say anything of a run: two arms that generate from one prompt."""
    request = run.request
    return run.unit == "token" and len(request.arms) == 2 and request.traffic is None and request.quality is None


def same_pair(reading: Created, run: Created, swapped: bool = False) -> bool:
    """Whether a run reads texts with the arms of another: by the same plans, here, with the same versions."""
    given, wanted_texts = given_texts(reading.request), run.request.reading or []
    if given is None or reading.owner != run.owner or len(reading.arms) != 2 or len(run.arms) != 2:
        return False
    if not all(text in given.texts for text in wanted_texts):
        return False
    keys = [arm.waits.plan for arm in reading.arms]
    wanted = [arm.waits.plan for arm in run.arms]
    return all(keys) and keys == (wanted[::-1] if swapped else wanted)
