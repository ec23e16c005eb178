"""How the predictions of two arms differ over given texts, and the gate that a gain in speed or memory must pass: what
is known of the quality of arm B against arm A.

Nothing is to be read where both arms wrote the same text in the same number format. Otherwise the quality is that of a
reading of given texts by the same two plans of the same visitor, on this machine and with these versions; without one
it is unknown.
"""

import math
import statistics
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import msgspec

from tokendyno.backend.config import Request
from tokendyno.backend.messages import Scored
from tokendyno.backend.models import is_random
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.quality.texts import Quality, shipped_texts
from tokendyno.backend.runs.records import Created, OfRun
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.statistics import interval
from tokendyno.backend.runs.texts import format_axes


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
    nll = {arm: [nats for text in texts for nats in text.nll_nats] for arm, texts in scores.items()}
    means = {arm: statistics.fmean(nats) for arm, nats in nll.items()}
    arms = {arm: ArmReading(nats, math.exp(nats)) for arm, nats in means.items()}
    positions = len(next(iter(nll.values())))
    if len(scores) < 2:
        return TextReading(name, positions, arms, None)
    (a, b), (nll_a, nll_b) = scores.values(), nll.values()
    top_a, top_b = ([token for text in texts for token in text.top] for texts in (a, b))
    kl = [nats for text in b for nats in text.kl_nats]
    excess_nats = [b - a for a, b in zip(nll_a, nll_b, strict=True)]
    bounds = interval(excess_nats)
    assert bounds is not None
    divergent = [index for index, (a, b) in enumerate(zip(top_a, top_b, strict=True)) if a != b]
    difference = ReadingDifference(
        perplexity_ratio=math.exp(statistics.fmean(excess_nats)),
        perplexity_low=math.exp(bounds[0]),
        perplexity_high=math.exp(bounds[1]),
        kl_nats=statistics.fmean(kl),
        kl_max_nats=max(kl),
        top1_agreement=1 - len(divergent) / len(excess_nats),
        first_divergence=divergent[0] if divergent else None,
    )
    return TextReading(name, positions, arms, difference)


# --- the gate: what is known of the quality of arm B -----------------------------------------------

CLEARLY_MORE = 1.1
"""From this ratio on weights take clearly more bytes: scales and padding alone come to less."""

ROUNDING_LOSS = 30
"""From this `Choice.loss` on numbers are rounded."""

UNREAD = "not read"
"""How the note of a phase begins that ended before a text was read; the reason follows."""

GateState = Literal["settled", "read", "random", "unread"]


class Gate(msgspec.Struct, frozen=True):
    """What is known of the quality of arm B against arm A.

    state       settled: nothing is to be measured; read: `difference` was measured; random: it was not, and the weights
                are random, so that nothing could be; unread: nobody has measured it
    swapped     the reading had B as its reference: `difference` is of A against B
    random      whether the weights are random
    finer       the arm with the finer weights, whose different predictions are no cost; "" for neither
    own         the texts are the user's own
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
    texts = run.texts
    same_text = texts is not None and texts.tokens_equal_until is None
    if a == b or (same_text and not format_axes(a, b)):
        return Gate("settled")
    random = is_random(run.request.model)
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
    """Of two arms whose weights take clearly different bytes, the one that rounds less; where both round alike, the one
    that takes more. "" where the bytes are alike. float32 with some layers in 4 bits is coarser than bfloat16.
    """
    weight_bytes = {name: arm.loaded.weight_bytes for name, arm in run.arms.items() if arm.loaded is not None}
    if len(weight_bytes) != 2:
        return ""
    smaller, larger = sorted(weight_bytes, key=lambda name: weight_bytes[name])
    if weight_bytes[larger] <= CLEARLY_MORE * weight_bytes[smaller]:
        return ""
    return min((larger, smaller), key=lambda name: _rounding(run.planned(name).planned))


def _rounding(planned: Mapping[str, str]) -> int:
    """How coarsely the choices of an arm round numbers, as the tens of `Choice.loss`; 0 where none is known to."""
    chosen = (choice for axis in all_axes() for choice in axis.choices if planned.get(axis.name) == choice.name)
    return max((choice.loss // 10 for choice in chosen if choice.loss and choice.loss >= ROUNDING_LOSS), default=0)


def comparable(run: OfRun) -> bool:
    """Whether quality can be read for a run: it has two arms that generate from one prompt."""
    request = run.request
    return run.unit == "token" and len(request.arms) == 2 and request.traffic is None and request.quality is None


def same_pair(reading: Created, run: Created, swapped: bool = False) -> bool:
    """Whether `reading` is of the texts and by the arms of `run`: by the same plans, here, with the same versions."""
    quality = given_texts(reading.request)
    if quality is None or reading.owner != run.owner or len(reading.arms) != 2 or len(run.arms) != 2:
        return False
    if not all(text in quality.texts for text in run.request.reading or []):
        return False
    reading_plans = [arm.waits.plan for arm in reading.arms]
    plans = [arm.waits.plan for arm in run.arms]
    return all(reading_plans) and reading_plans == (plans[::-1] if swapped else plans)
