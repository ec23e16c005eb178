"""What a change costs in quality, in words."""

from typing import Literal

import msgspec

from tokendyno.backend.quality.presets import text_presets
from tokendyno.backend.runs.gate import finer_arm
from tokendyno.backend.runs.quality import ReadingDifference, TextReading, readings, whole_reading
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.units import three

Cost = Literal["none", "rounding", "small", "large"]

ROUNDING_NATS, ROUNDING_AGREEMENT = 0.001, 0.99
"""Two orders of summation in bf16 stay below this (lab/measurements.md): nobody will notice it in a text."""
SMALL_NATS, SMALL_PERPLEXITY = 0.05, 1.05
"""A cost that many accept for a speed-up; more is called large. A choice of this project."""
TOLERANCES = (
    f"rounding: up to {ROUNDING_NATS:g} nats and from {ROUNDING_AGREEMENT:.0%} agreement; small: up to "
    f"{SMALL_NATS:g} nats and {SMALL_PERPLEXITY:g}\u00d7 perplexity; large: more, so that no gain counts"
)
"""Where each cost ends."""
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


def counts(cost: str) -> bool:
    """Whether a gain at this cost counts as one: a large cost is over the tolerance."""
    return cost != "large"


def tolerances(run: Snapshot) -> str:
    """Where each cost ends; "" where none is said."""
    return "" if is_random(run) or len(run.arms) < 2 else TOLERANCES


def quality_sentence(run: Snapshot) -> str:
    """The verdict on all texts that both arms have read; "" before there is one."""
    whole = whole_reading(run)
    if whole is None:
        return ""
    found = whole.difference
    if found is None:
        name, reading = next(iter(whole.arms.items()))
        return f"{name} predicts {whole.positions:,} tokens with a perplexity of {three(reading.perplexity)}."
    return f"{_distance(found, whole)} {RANDOM}" if is_random(run) else _verdict(found, whole, finer_arm(run) == "B")


def _distance(found: ReadingDifference, whole: TextReading) -> str:
    """Without a judgement: random weights find nearly every token equally likely."""
    if cost_of(found) == "none":
        return f"B predicts exactly what A predicts, bit for bit, over {whole.positions:,} positions."
    return f"The KL divergence of B from A is {three(found.kl_nats)} nats over {whole.positions:,} positions."


def _verdict(found: ReadingDifference, whole: TextReading, finer: bool) -> str:
    """`finer`: B keeps its weights in more bytes than A, its reference, so what it predicts otherwise is no cost."""
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
            costs = f"B has a {cost} quality cost"
            return (
                f"{'B has finer weights than A, so no cost' if finer else costs}: {where} the KL "
                f"divergence from A is {three(found.kl_nats)} nats, {agreement}, and "
                f"perplexity is {three(found.perplexity_ratio)}\u00d7 "
                f"({three(found.perplexity_low)} to {three(found.perplexity_high)})."
            )


def is_random(run: Snapshot) -> bool:
    """Whether its weights are random, so that they have no quality."""
    return run.request.model.startswith("random:")


# --- for the page ---------------------------------------------------------------------------------


class QualityRow(msgspec.Struct, frozen=True):
    """One text, or all of them: figures as text. `divergence`: the first position at which the arms differ."""

    title: str
    positions: str
    a: str
    b: str
    ratio: str
    kl: str
    largest: str
    agreement: str
    divergence: str


class QualityView(msgspec.Struct, frozen=True):
    """A reading on the page.

    progress  how many texts each arm has read; "" at the end
    compared  id of a run that compared these arms with a prompt, "" without one
    """

    rows: list[QualityRow]
    progress: str
    compared: str


def quality_view(run: Snapshot, compared: str) -> QualityView | None:
    """The table of a reading; None of any other run."""
    given = run.request.quality
    if given is None:
        return None
    titles = {preset.name: preset.title for preset in text_presets()}
    found, whole = readings(run), whole_reading(run)
    rows = [
        reading_row(titles.get(text.name, text.name), found[index] if index < len(found) else None)
        for index, text in enumerate(given.texts)
    ]
    rows.append(reading_row("All texts", whole))
    read = ", ".join(f"{name} {len(arm.scores)} of {len(given.texts)} texts" for name, arm in run.arms.items())
    return QualityView(rows, "" if run.ended else f"Read so far: {read}", compared)


UNKNOWN = "\u2013"


def reading_row(title: str, one: TextReading | None) -> QualityRow:
    """The cells of a text; `UNKNOWN` where it was not read by both arms."""
    if one is None or one.difference is None:
        return QualityRow(title, *[UNKNOWN] * 8)
    found, (a, b) = one.difference, one.arms.values()
    apart = "none" if found.first_divergence is None else f"{found.first_divergence:,}"
    return QualityRow(
        title,
        f"{one.positions:,}",
        three(a.perplexity),
        three(b.perplexity),
        three(found.perplexity_ratio),
        three(found.kl_nats),
        three(found.kl_max_nats),
        f"{100 * found.top1_agreement:.1f}%",
        apart,
    )
