"""The verdict as a card: one number, four figures, a recommendation, how sure it is, and what to do next.

All figures come from the same summaries and the same comparison as the sentence (`views/verdict.py`).
"""

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from tokendyno.backend.config import MOST_PAIRS, UNTIL_S
from tokendyno.backend.runs.gate import Gate
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.summary import NOISY_CV, Comparison, Summary
from tokendyno.backend.units import bytes_text, seconds_text, three, times
from tokendyno.backend.views.arm_names import arm_names
from tokendyno.backend.views.differences import Difference, differences
from tokendyno.backend.views.gate import agreement, gate_text, share_text
from tokendyno.backend.views.quality import cost_of
from tokendyno.backend.views.verdict import (
    SAME_BYTES,
    TIMES_FROM,
    Bytes,
    bytes_of,
    headline,
    less_or_more,
    memory_noise,
    step_word,
)

Tone = Literal["good", "caution", "bad", "open"]


class CardTile(msgspec.Struct, frozen=True):
    """One figure of both arms in one unit; `b` is "" where there is one value for both."""

    title: str
    a: str
    b: str
    unit: str
    note: str


class Next(msgspec.Struct, frozen=True):
    """What to do next: get the script of `arm` (`action` "code"), or run again ("run")."""

    label: str
    action: Literal["code", "run"]
    arm: str = ""


class Card(msgspec.Struct, frozen=True):
    """A comparison of two arms, as far as it is.

    lead, figure, tail  a sentence around its one number
    ratio, low, high    time of A / time of B, and its interval; None where there is none
    pairs               that ratio in each pair of runs
    ends                the interval in words
    names               of the arms, by letter
    decided             whether more pairs would change nothing that is said
    """

    lead: str
    figure: str
    tail: str
    ratio: float
    low: float | None
    high: float | None
    pairs: list[float]
    ends: str
    names: dict[str, str]
    decided: bool
    recommendation: str
    tone: Tone
    reason: str
    confidence: str
    tiles: list[CardTile]
    next: Next | None


def card_of(run: Snapshot, gate: Gate | None = None) -> Card | None:
    """None until both arms have ended a run."""
    found = run.comparison()
    if found is None or run.status == "interrupted" or not all(arm.completed(0) for arm in run.arms.values()):
        return None
    names, summaries = arm_names(run), {name: run.summary(name) for name in run.arms}
    head = headline(found, run.unit, names)
    a, b = summaries.values()
    memory = bytes_of([a.peak_memory_bytes, b.peak_memory_bytes], memory_noise(run))
    tone, recommendation = _recommendation(run, found, memory, bytes_of([a.kv_bytes, b.kv_bytes], SAME_BYTES), gate)
    apart = differences(run)
    tiles = [
        _tile(f"Time a {step_word(run.unit)}", seconds_text, a.latency_mean_s, b.latency_mean_s, apart.get("latency")),
        _quality_tile(run, gate) if run.unit == "token" else None,
        _tile("First token", seconds_text, a.ttft_s, b.ttft_s, apart.get("ttft")),
        _tile("Peak memory", bytes_text, a.peak_memory_bytes, b.peak_memory_bytes, apart.get("memory")),
    ]
    return Card(
        head.lead,
        head.figure,
        head.tail,
        found.ratio,
        found.low,
        found.high,
        run.pair_ratios(),
        f"{head.ends} ({found.confidence:.0%})" if head.ends else "",
        names,
        found.decided,
        recommendation,
        tone,
        _reason(run, found, memory, gate),
        _confidence(run, found, summaries),
        [tile for tile in tiles if tile is not None],
        _next(run, tone, recommendation, names),
    )


def _recommendation(
    run: Snapshot, found: Comparison, memory: Bytes | None, kv: Bytes | None, gate: Gate | None
) -> tuple[Tone, str]:
    """Exactly one of a few."""
    if run.equal_arms:
        return "open", "The arms are equal"
    if not found.decided:
        disturbed = any(arm.interference for arm in run.arms.values()) or _varies(run) > NOISY_CV
        over = run.ended and found.outcome == "undecided"
        return ("caution", "Do not rely on it") if over and disturbed else ("open", "Not decided yet")
    if gate_text(gate).missed:
        return "bad", "Not worth it here: it writes worse"
    faster = found.outcome == "b_faster"
    smaller = any(pair is not None and pair.change("B") < 0 for pair in (memory, kv))
    if (faster or smaller) and gate is not None and gate.state == "unread":
        return "open", "Not decided yet: quality was not read"
    if faster:
        return "good", "\u2713 Worth it on this machine"
    if smaller:
        return "good", "\u2713 Worth it for memory"
    if found.outcome == "a_faster":
        return "bad", "Not worth it here: it is slower"
    return "open", "Not worth it here: it changes nothing"


def _reason(run: Snapshot, found: Comparison, memory: Bytes | None, gate: Gate | None) -> str:
    """What it saves and what it costs, in at most two sentences."""
    a, b = (run.summary(name).latency_mean_s for name in run.arms)
    parts, step = [], step_word(run.unit)
    if found.outcome in ("a_faster", "b_faster") and a and b:
        verb = "saves" if b < a else "costs"
        parts.append(f"{verb} {' '.join(seconds_text(abs(a - b)))} a {step}")
    change = memory.change("B") if memory is not None and not run.equal_arms else 0.0
    if change:
        parts.append(f"takes {less_or_more(change)} {'the ' if change >= 1 else ''}memory")
    first = f"It {' and '.join(parts)}." if parts else ""
    return " ".join(filter(None, [first, _quality_sentence(run, gate)]))


def _quality_sentence(run: Snapshot, gate: Gate | None) -> str:
    texts = run.texts()
    if gate is None or run.equal_arms:
        return ""
    if gate.state == "settled":
        same = texts is not None and texts.tokens_equal_until is None
        return "It changes no word." if same else ""
    if gate.state == "random":
        return "Its quality is unknown: the weights are random."
    if gate.state == "unread":
        return "" if not run.ended else "What it costs in quality was not read."
    cost = {"none": "bit for bit the same", "rounding": "numerically the same"}.get(cost_of(gate.difference))  # type: ignore[arg-type]
    return f"What it predicts is {cost}." if cost else f"It has {agreement(gate)}."


def _confidence(run: Snapshot, found: Comparison, summaries: Mapping[str, Summary]) -> str:
    """How many pairs it took, and the weakest fact about them."""
    pairs, ratios = f"{found.pairs} pair{'s' * (found.pairs != 1)}", run.pair_ratios()
    if found.low is None or found.high is None:
        return "One pair has no interval yet." if not run.ended else "One pair of runs has no interval."
    said = f"{'Decided' if found.decided else 'Not decided'} after {pairs}."
    disturbed = next((mark.text for arm in run.arms.values() for _, mark in arm.interference), "")
    if disturbed:
        weakest = f"Meanwhile: {disturbed}."
    elif (varies := _varies(run)) > NOISY_CV:
        weakest = f"Runs of one arm vary by {varies:.0%}."
    elif found.outcome in ("a_faster", "b_faster"):
        worst = min(ratios) if found.outcome == "b_faster" else 1 / max(ratios)
        shown = times(worst) if worst >= TIMES_FROM else f"{worst:.2f}\u00d7"
        weakest = f"No pair below {shown}."
    else:
        half = max(found.high / found.ratio, found.ratio / found.low, 1.01) - 1
        weakest = f"Differences above {half:.0%} would have been seen."
    return f"{said} {weakest}"


def _varies(run: Snapshot) -> float:
    return max((run.summary(name).run_cv or 0.0 for name in run.arms), default=0.0)


def _next(run: Snapshot, tone: Tone, recommendation: str, names: Mapping[str, str]) -> Next | None:
    if not run.ended:
        return None
    if tone == "good":
        return Next(f"Get the script of {names['B']}", "code", "B")
    if tone == "bad":
        return Next("Keep A: get its script", "code", "A")
    most = run.request.until_s or UNTIL_S
    return Next(f"Run again, at most {MOST_PAIRS} pairs or {most:.0f} s", "run")


# --- tiles ----------------------------------------------------------------------------------------


def _tile(
    title: str, words: Callable[[float], tuple[str, str]], a: float | None, b: float | None, apart: Difference | None
) -> CardTile | None:
    """Both values in the unit of the larger one."""
    if not a or not b:
        return None
    shown, unit = words(max(a, b))
    scale = max(a, b) / float(shown.replace(",", ""))
    of_a, of_b = (shown if value == max(a, b) else three(value / scale) for value in (a, b))
    return CardTile(title, of_a, of_b, unit, apart.text if apart else "")


def _quality_tile(run: Snapshot, gate: Gate | None) -> CardTile:
    title, texts = "Same next token", run.texts()
    if gate is None or gate.state == "settled":
        same = texts is not None and texts.tokens_equal_until is None
        return CardTile(title, "100" if same else "\u2013", "", "%" if same else "", "the same text" if same else "")
    if gate.state == "random":
        return CardTile(title, "unknown", "", "", "the weights are random")
    found = gate.difference
    if found is None:
        return CardTile(title, "not read" if run.ended else "\u2013", "", "", "")
    shown = share_text(found.top1_agreement)
    cost = {"none": "bit for bit", "rounding": "numerically the same"}.get(cost_of(found), f"{cost_of(found)} cost")
    where = f"of {gate.positions:,} places{', your text' if gate.own else ''}"
    return CardTile(title, shown[:-1], "", "%", f"{where}: {cost}")
