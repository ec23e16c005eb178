"""What a gain costs in quality, in words: a clause of the verdict, and a line with the figures and their tolerances."""

import math
from typing import NamedTuple

import msgspec

from tokendyno.backend.runs.gate import Gate
from tokendyno.backend.runs.quality import ReadingDifference
from tokendyno.backend.units import three
from tokendyno.backend.views.quality import (
    ROUNDING_AGREEMENT,
    ROUNDING_NATS,
    SMALL_NATS,
    SMALL_PERPLEXITY,
    Cost,
    cost_of,
    counts,
)

UNREAD = "Quality not read: `tokendyno quality` with the same arms reads it"
RANDOM = "Random weights: quality means nothing here"


class GateText(NamedTuple):
    """`part`: a clause of the verdict, "" where there is no reading; `missed`: in its place a cost over the tolerance,
    with which nothing is won. `line`: figures, or that there are none."""

    part: str = ""
    line: str = ""
    missed: str = ""


def gate_text(gate: Gate | None) -> GateText:
    """The gate in words, of arm B."""
    if gate is None or gate.state == "settled":
        return GateText()
    if gate.state == "unread":
        return GateText(line=UNREAD)
    if gate.state == "random":
        return GateText(line=RANDOM)
    found = gate.difference
    assert found is not None
    said = _said(gate, found, against=not gate.swapped, finer=gate.finer == "B")
    return said._replace(line=_line(gate, found))


def _said(gate: Gate, found: ReadingDifference, against: bool, finer: bool) -> GateText:
    """`against`: A was the reference; `finer`: B has the finer weights, so that A costs what there is to cost."""
    same = agreement(gate)
    match cost_of(found if against else _inverse(found)):
        case "none":
            return GateText(part="predicts the same, bit for bit")
        case "rounding":
            return GateText(part="is numerically the same")
        case _ if gate.random:
            return GateText(part=f"has {same}")
        case _ if finer:
            return GateText(part=f"has {same}, with more precise weights")
        case cost:
            said = f"{same}, a {cost} cost in quality"
            return GateText(part=f"has {said}") if counts(cost) else GateText(missed=said)


def agreement(gate: Gate) -> str:
    """In how many places both arms find the same token most likely; "" without a reading."""
    if gate.difference is None:
        return ""
    where = ", on your text" if gate.own else ""
    share = share_text(gate.difference.top1_agreement)
    return f"the same most likely token in {share} of {gate.positions:,} places{where}"


def share_text(share: float) -> str:
    """In percent, and never 100% where that is not all."""
    shown = f"{share:.0%}"
    return shown if share == 1 or shown != "100%" else f"{100 * share:.2f}%"


def _inverse(found: ReadingDifference) -> ReadingDifference:
    """The reference against the arm that was compared with it; the divergence is taken as a distance."""
    return msgspec.structs.replace(
        found,
        perplexity_ratio=1 / found.perplexity_ratio,
        perplexity_low=1 / found.perplexity_high,
        perplexity_high=1 / found.perplexity_low,
    )


def _line(gate: Gate, found: ReadingDifference) -> str:
    figures = f"{nats_text(found.kl_nats)}, {100 * found.top1_agreement:.1f}% agreement"
    if gate.random:
        return f"{RANDOM}; over {gate.positions:,} positions {figures}"
    a, b = "BA" if gate.swapped else "AB"
    figures += f", perplexity {b} / {a} {three(found.perplexity_ratio)}"
    return f"Quality over {gate.positions:,} positions: {figures} ({tolerance(cost_of(found))})"


def nats_text(nats: float) -> str:
    """Two significant digits."""
    places = 1 - math.floor(math.log10(nats)) if nats > 0 else 0
    return f"{nats:.{max(0, places)}f} nats"


def tolerance(cost: Cost) -> str:
    """Where this cost ends."""
    rounding = f"{ROUNDING_NATS:g} nats and from {ROUNDING_AGREEMENT:.0%} agreement"
    small = f"{SMALL_NATS:g} nats and {SMALL_PERPLEXITY:g}\u00d7 perplexity"
    match cost:
        case "none":
            return "bit for bit"
        case "rounding":
            return f"rounding: up to {rounding}"
        case "small":
            return f"small: up to {small}"
        case "large":
            return f"large: over {small.replace(' and ', ' or ')}"


def cost_remark(cost: str, finer: bool) -> str:
    """What stands beside a gain of an arm; "" where quality costs no word. `finer`: than its reference."""
    match cost:
        case "small" | "large" if finer:
            return "predicts differently, with more precise weights"
        case "small":
            return f"quality cost {tolerance('small')}"
        case "large":
            return f"quality cost {tolerance('large')}, so that its gains do not count"
        case _:
            return ""


class QualityGate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The gate of a run's document. Everything but `state` is null without a reading.

    state      settled, read, random or unread
    run        id of the run that read the texts
    reference  the arm that the figures are against
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
    """For the JSON document."""
    if gate is None or gate.difference is None:
        return QualityGate(gate.state) if gate else None
    found, (reference, other) = gate.difference, "BA" if gate.swapped else "AB"
    gains = None if gate.random else gate.finer == other or counts(cost_of(found))
    return QualityGate(
        gate.state,
        gate.run,
        reference,
        gate.positions,
        cost_of(found),
        found.kl_nats,
        found.top1_agreement,
        found.perplexity_ratio,
        gains,
    )
