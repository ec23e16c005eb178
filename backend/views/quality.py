"""What a change costs in quality, in words."""

from typing import Literal

from backend.runs.quality import ReadingDifference, TextReading, whole_reading
from backend.runs.snapshot import Snapshot
from backend.units import three

Cost = Literal["none", "rounding", "small", "large"]

ROUNDING_NATS, ROUNDING_AGREEMENT = 0.001, 0.99
"""Two orders of summation in bf16 stay below this (MEASUREMENTS.md): nobody will notice it in a text."""
SMALL_NATS, SMALL_PERPLEXITY = 0.05, 1.05
"""A cost that many accept for a speed-up; more is called large. A choice of this project."""
RANDOM = (
    "The weights are random, so these figures show only whether both arms compute the same, not what either is worth."
)


def cost_of(found: ReadingDifference) -> Cost:
    """How far B is from A. `none`: the same distributions, bit for bit."""
    if not found.kl_max_nats and found.top1_agreement == 1:
        return "none"
    if found.kl_nats <= ROUNDING_NATS and found.top1_agreement >= ROUNDING_AGREEMENT:
        return "rounding"
    if found.kl_nats <= SMALL_NATS and found.perplexity_low <= SMALL_PERPLEXITY:
        return "small"
    return "large"


def quality_sentence(run: Snapshot) -> str:
    """The verdict on all texts that both arms have read; "" before there is one."""
    whole = whole_reading(run)
    if whole is None:
        return ""
    found = whole.difference
    if found is None:
        name, reading = next(iter(whole.arms.items()))
        return f"{name} predicts {whole.positions:,} tokens with a perplexity of {three(reading.perplexity)}."
    return f"{_distance(found, whole)} {RANDOM}" if _random(run) else _verdict(found, whole)


def _distance(found: ReadingDifference, whole: TextReading) -> str:
    """Without a judgement: random weights find nearly every token equally likely."""
    if cost_of(found) == "none":
        return f"B predicts exactly what A predicts, bit for bit, over {whole.positions:,} positions."
    return f"The KL divergence of B from A is {three(found.kl_nats)} nats over {whole.positions:,} positions."


def _verdict(found: ReadingDifference, whole: TextReading) -> str:
    where = f"over {whole.positions:,} positions"
    agreement = f"the same token is the most likely one in {100 * found.top1_agreement:.1f}%"
    match cost_of(found):
        case "none":
            return f"B predicts exactly what A predicts, bit for bit, {where}."
        case "rounding":
            return (
                f"B is numerically the same as A {where}: KL divergence {three(found.kl_nats)} nats, and {agreement}. "
                "Differences of this size come from the order of summation."
            )
        case cost:
            return (
                f"B costs quality, {'a little' if cost == 'small' else 'and not a little'}: {where} the KL "
                f"divergence from A is {three(found.kl_nats)} nats, {agreement}, and perplexity is "
                f"{three(found.perplexity_ratio)}x ({three(found.perplexity_low)} to {three(found.perplexity_high)})."
            )


def _random(run: Snapshot) -> bool:
    return run.request.model.startswith("random:")
