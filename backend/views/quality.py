"""What a change costs in quality, in words: a reading of texts, and the gate that a gain must pass."""

import math
from itertools import zip_longest
from typing import Literal, NamedTuple

import msgspec

from tokendyno.backend.models import is_random
from tokendyno.backend.quality.texts import text_presets
from tokendyno.backend.runs.quality import Gate, ReadingDifference, TextReading, finer_arm, readings, whole_reading
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.units import plural, three

Cost = Literal["none", "rounding", "small", "large"]

ROUNDING_NATS, ROUNDING_AGREEMENT = 0.001, 0.99
"""Two orders of summation in bf16 stay below this (lab/measurements.md): nobody will notice it in a text."""
SMALL_NATS, SMALL_PERPLEXITY = 0.05, 1.05
"""A cost that many accept for a speed-up; more is called large. A choice of this project."""
_ROUNDING = f"{ROUNDING_NATS:g} nats and from {ROUNDING_AGREEMENT:.0%} agreement"
_SMALL = f"{SMALL_NATS:g} nats and {SMALL_PERPLEXITY:g}\u00d7 perplexity"
TOLERANCES = f"rounding: up to {_ROUNDING}; small: up to {_SMALL}; large: more, so that no gain counts"
"""Where each cost ends."""
RANDOM = (
    "The weights are random, so these figures show only whether both arms compute the same, not what either is worth."
)


def cost_of(difference: ReadingDifference) -> Cost:
    """How far B is from A. `none`: the same distributions, bit for bit."""
    if not difference.kl_max_nats and difference.top1_agreement == 1:
        return "none"
    if difference.kl_nats <= ROUNDING_NATS and difference.top1_agreement >= ROUNDING_AGREEMENT:
        return "rounding"
    if difference.kl_nats <= SMALL_NATS and difference.perplexity_low <= SMALL_PERPLEXITY:
        return "small"
    return "large"


def counts(cost: str) -> bool:
    """Whether a gain at this cost counts as one: a large cost is over the tolerance."""
    return cost != "large"


def tolerances(run: Snapshot) -> str:
    return "" if is_random(run.request.model) or len(run.arms) < 2 else TOLERANCES


def quality_sentence(run: Snapshot) -> str:
    """The verdict on all texts that both arms have read; "" before there is one."""
    whole = whole_reading(run)
    if whole is None:
        return ""
    difference = whole.difference
    if difference is None:
        name, reading = next(iter(whole.arms.items()))
        return f"{name} predicts {whole.positions:,} tokens with a perplexity of {three(reading.perplexity)}."
    random = is_random(run.request.model)
    where, nats = f"over {whole.positions:,} positions", three(difference.kl_nats)
    agreement = f"the same token is the most likely one in {100 * difference.top1_agreement:.1f}%"
    match cost_of(difference):
        case "none":
            sentence = f"B predicts exactly what A predicts, bit for bit, {where}."
        case _ if random:  # no judgement: random weights find nearly every token equally likely
            sentence = f"The KL divergence of B from A is {nats} nats {where}."
        case "rounding":
            sentence = (
                f"B predicts the same as A but for rounding {where}: KL divergence {nats} nats, and {agreement}. "
                "Differences of this size come from the order of summation."
            )
        case cost:
            finer = finer_arm(run) == "B"  # than A, its reference: different predictions are no cost then
            costs = "B has higher precision than A, so no cost" if finer else f"B has a {cost} quality cost"
            sentence = (
                f"{costs}: {where} the KL divergence from A is {nats} nats, {agreement}, and "
                f"perplexity is {three(difference.perplexity_ratio)}\u00d7 "
                f"({three(difference.perplexity_low)} to {three(difference.perplexity_high)})."
            )
    return f"{sentence} {RANDOM}" if random else sentence


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
    """A reading on the page. `progress`: how many texts each arm has read; "" at the end. `compared`: id of a run that
    compared these arms with a prompt, "" without one."""

    rows: list[QualityRow]
    progress: str
    compared: str


def quality_view(run: Snapshot, compared: str) -> QualityView | None:
    """The table of a reading; None of any other run."""
    quality = run.request.quality
    if quality is None:
        return None
    titles = {preset.name: preset.title for preset in text_presets()}
    rows = [
        reading_row(titles.get(text.name, text.name), reading)
        for text, reading in zip_longest(quality.texts, readings(run))
    ]
    rows.append(reading_row("All texts", whole_reading(run)))
    texts = plural(len(quality.texts), "text")
    read = ", ".join(f"{name} {len(arm.scores)} of {texts}" for name, arm in run.arms.items())
    return QualityView(rows, "" if run.ended else f"Read so far: {read}", compared)


UNKNOWN = "\u2013"


def reading_row(title: str, reading: TextReading | None) -> QualityRow:
    """The cells of a text; `UNKNOWN` where it was not read by both arms."""
    if reading is None or reading.difference is None:
        return QualityRow(title, *[UNKNOWN] * 8)
    difference, (a, b) = reading.difference, reading.arms.values()
    return QualityRow(
        title,
        f"{reading.positions:,}",
        three(a.perplexity),
        three(b.perplexity),
        three(difference.perplexity_ratio),
        three(difference.kl_nats),
        three(difference.kl_max_nats),
        f"{100 * difference.top1_agreement:.1f}%",
        "none" if difference.first_divergence is None else f"{difference.first_divergence:,}",
    )


# --- the gate: what a gain costs, in a clause of the verdict, and a line with figures and tolerances --

NOT_READ = "Quality not read: the command tokendyno quality reads it"
RANDOM_WEIGHTS = "Random weights: quality means nothing here"


class GateText(NamedTuple):
    """`part`: a clause of the verdict, "" without a reading; `missed`: in its place a cost over the tolerance, so that
    no gain counts. `line`: figures, or that there are none."""

    part: str = ""
    line: str = ""
    missed: str = ""


def gate_text(gate: Gate | None) -> GateText:
    if gate is None or gate.state == "settled":
        return GateText()
    if gate.state == "unread":
        return GateText(line=NOT_READ)
    if gate.state == "random":
        return GateText(line=RANDOM_WEIGHTS)
    same, line = agreement(gate), _line(gate)
    match _cost_of_b(gate):
        case "none":
            return GateText("predicted the same, bit for bit", line)
        case "rounding":
            return GateText("predicted the same but for rounding", line)
        case _ if gate.random:
            return GateText(f"had {same}", line)
        case _ if gate.finer == "B":
            return GateText(f"had {same}, with higher precision", line)
        case cost:
            clause = f"{same}, a {cost} cost in quality"
            return GateText(f"had {clause}", line) if counts(cost) else GateText("", line, clause)


def cost_text(gate: Gate) -> str:
    """What B costs in quality against A, in a few words; "" without a reading, or where random weights cost nothing."""
    if gate.difference is None:
        return ""
    match _cost_of_b(gate):
        case "none":
            return "bit for bit"
        case "rounding":
            return "rounding alone"
        case _ if gate.random:
            return ""
        case _ if gate.finer == "B":
            return "higher precision"
        case cost:
            return f"{cost} cost"


def _cost_of_b(gate: Gate) -> Cost:
    """The cost of B against A, whichever of them was the reference; the divergence is taken as a distance."""
    difference = gate.difference
    assert difference is not None
    if gate.swapped:
        difference = msgspec.structs.replace(difference, perplexity_low=1 / difference.perplexity_high)
    return cost_of(difference)


def agreement(gate: Gate) -> str:
    """In how many places both arms find the same token most likely; "" without a reading."""
    if gate.difference is None:
        return ""
    where = ", on your text" if gate.own else ""
    share = share_text(gate.difference.top1_agreement)
    return f"the same most likely token in {share} of {gate.positions:,} places{where}"


def share_text(share: float) -> str:
    """In percent, and 100% only for all of it."""
    shown = f"{share:.0%}"
    return shown if share == 1 or shown != "100%" else f"{100 * share:.2f}%"


def _line(gate: Gate) -> str:
    difference = gate.difference
    assert difference is not None
    figures = f"{nats_text(difference.kl_nats)}, {100 * difference.top1_agreement:.1f}% agreement"
    if gate.random:
        return f"{RANDOM_WEIGHTS}; over {gate.positions:,} positions {figures}"
    reference, other = "BA" if gate.swapped else "AB"
    figures += f", perplexity {other} / {reference} {three(difference.perplexity_ratio)}"
    return f"Quality over {gate.positions:,} positions: {figures} ({tolerance(cost_of(difference))})"


def nats_text(nats: float) -> str:
    """Two significant digits."""
    places = 1 - math.floor(math.log10(nats)) if nats > 0 else 0
    return f"{nats:.{max(0, places)}f} nats"


def tolerance(cost: Cost) -> str:
    """Where this cost ends."""
    match cost:
        case "none":
            return "bit for bit"
        case "rounding":
            return f"rounding: up to {_ROUNDING}"
        case "small":
            return f"small: up to {_SMALL}"
        case "large":
            return f"large: over {_SMALL.replace(' and ', ' or ')}"


def cost_remark(cost: str, finer: bool) -> str:
    """What stands beside a gain of an arm; "" where its cost is not worth a word. `finer`: than its reference."""
    match cost:
        case "small" | "large" if finer:
            return "predicts differently, with higher precision"
        case "small":
            return f"quality cost {tolerance('small')}"
        case "large":
            return f"quality cost {tolerance('large')}, so that its gains do not count"
        case _:
            return ""


class QualityGate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The gate of a run's document. Everything but `state` is null without a reading.

    state      settled, read, random or unread
    counts     whether a gain of the other arm counts: its cost is within the tolerance; null with random weights
    """

    state: str
    run: str | None = None
    reference: str | None = None
    positions: int | None = None
    cost: Cost | None = None
    kl_nats: float | None = None
    top1_agreement: float | None = None
    perplexity_ratio: float | None = None
    counts: bool | None = None


def gate_document(gate: Gate | None) -> QualityGate | None:
    if gate is None or gate.difference is None:
        return QualityGate(gate.state) if gate else None
    difference, (reference, other) = gate.difference, "BA" if gate.swapped else "AB"
    gain_counts = None if gate.random else gate.finer == other or counts(cost_of(difference))
    return QualityGate(
        gate.state,
        gate.run,
        reference,
        gate.positions,
        cost_of(difference),
        difference.kl_nats,
        difference.top1_agreement,
        difference.perplexity_ratio,
        gain_counts,
    )
