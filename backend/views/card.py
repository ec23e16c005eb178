"""The verdict as a card: one number, four figures, a recommendation, how sure it is, and what to do next."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from tokendyno.backend.models import is_random
from tokendyno.backend.runs.quality import UNREAD, Gate
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.statistics import variation
from tokendyno.backend.runs.summary import NOISY_CV, Comparison, Summary
from tokendyno.backend.runs.texts import format_axes
from tokendyno.backend.units import bytes_text, plural, seconds_text, three, times
from tokendyno.backend.views.comparison import (
    TIMES_FROM,
    USEFUL,
    Bytes,
    Difference,
    Pair,
    capitalized,
    differences,
    headline,
    less_or_more,
    pair_of,
    range_text,
)
from tokendyno.backend.views.quality import agreement, cost_of, cost_text, gate_text, share_text
from tokendyno.backend.views.tiles import compiling_sentence, joined, step_word
from tokendyno.backend.views.verdict import compared

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
    """A comparison of two arms so far.

    lead, figure, tail  a sentence around its one number
    ratio, low, high    time of A / time of B, of many requests useful tokens/s of B / of A, and its interval; None
                        where there is none
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
    cost: str = ""


def card_of(run: Snapshot, gate: Gate | None = None) -> Card | None:
    """The card of two arms; None until both have ended a run. `gate`: what is known of quality, in a run of one
    prompt."""
    pair = pair_of(run)
    if pair is None or pair.comparison is None or run.status == "interrupted":
        return None
    if not all(arm.completed(0) for arm in run.arms.values()):
        return None
    if run.request.traffic is not None:
        return _of_requests(run, pair, pair.comparison)
    return _of_prompt(run, pair, pair.comparison, gate)


def _of_prompt(run: Snapshot, pair: Pair, comparison: Comparison, gate: Gate | None) -> Card:
    a, b = run.summaries.values()
    gained, difference, step = "", differences(run), step_word(run.unit)
    if comparison.outcome in ("a_faster", "b_faster") and a.latency_mean_s and b.latency_mean_s:
        saved_s = a.latency_mean_s - b.latency_mean_s
        gained = f"{'saves' if saved_s > 0 else 'costs'} {joined(abs(saved_s))} a {step}"
    tiles = [
        _tile(f"Time a {step}", seconds_text, a.latency_mean_s, b.latency_mean_s, difference.get("latency")),
        _quality_tile(run, gate) if run.unit == "token" else None,
        _tile("First token", seconds_text, a.ttft_s, b.ttft_s, difference.get("ttft")),
        _tile("Peak memory", bytes_text, a.peak_memory_bytes, b.peak_memory_bytes, difference.get("memory")),
    ]
    rates = [a.batch_tokens_per_s, b.batch_tokens_per_s] if run.unit == "token" else []
    longer = _longer(a, b) if comparison.outcome == "b_faster" else ""
    return _card(run, pair, comparison, gate, gained, tiles, rates, longer)


_CLEARLY = 1.05
"""How many times as long a text takes from where on that is said of an arm that is faster a token."""


def _longer(a: Summary, b: Summary) -> str:
    """What a first token costs an arm B that takes less time for each later one, in a sentence: where a text of this
    length took longer for it; "" where it did not, or noise may be why."""
    (first_a, step_a), (first_b, step_b) = ((one.ttft_s, one.latency_mean_s) for one in (a, b))
    apart = a.ttft_interval_s and b.ttft_interval_s and b.ttft_interval_s[0] > a.ttft_interval_s[1]
    if not (first_a and first_b and step_a and step_b and apart) or step_b >= step_a:  # texts of unequal lengths
        return ""
    tokens, later_s = min(a.tokens, b.tokens), first_b - first_a
    text_a, text_b = first_a + (tokens - 1) * step_a, first_b + (tokens - 1) * step_b
    if text_b < _CLEARLY * text_a:
        return ""
    from_tokens = math.ceil(later_s / (step_a - step_b)) + 1
    return (
        f"Its first token comes {joined(later_s)} later: a text of {tokens:,} tokens took {times(text_b / text_a)} as "
        f"long; one of {from_tokens:,} or more takes less."
    )


def _of_requests(run: Snapshot, pair: Pair, comparison: Comparison) -> Card:
    """Where the arms keep numbers in different formats, nobody has read what that costs in quality."""
    a, b = run.batch_summaries.values()
    gate = None
    if format_axes(*(run.planned(name).planned for name in run.arms)):
        gate = Gate("random" if is_random(run.request.model) else "unread")
    gained, difference, same = "", differences(run), run.same_tokens()
    if comparison.outcome in ("a_faster", "b_faster") and a.useful_tokens_s and b.useful_tokens_s:
        more = b.useful_tokens_s - a.useful_tokens_s
        gained = f"serves {three(abs(more))} {USEFUL} {'more' if more > 0 else 'fewer'}"
    peak_a, peak_b = (arm.peak_memory_bytes for arm in run.arms.values())
    first = "of the first pair" if comparison.pairs > 1 else ""  # whose requests are kept
    tiles = [
        _tile("Useful tokens", _in("tok/s"), a.useful_tokens_s, b.useful_tokens_s, difference.get("useful")),
        _noted(_tile("Goodput", _in("req/s"), a.goodput_s, b.goodput_s, difference.get("goodput")), first),
        _noted(
            _tile("First token, median", seconds_text, a.ttft.median_s, b.ttft.median_s, difference.get("ttft")), first
        ),
        _tile("Peak memory", bytes_text, peak_a, peak_b, None),
        CardTile("Same tokens", "n/a" if same is None else f"{same} of {compared(run)}", "", "requests", ""),
    ]
    card = _card(run, pair, comparison, gate, gained, tiles, [a.useful_tokens_s, b.useful_tokens_s])
    unread = gate is not None and gate.state == "unread" and comparison.decided and card.tone == "open"
    return msgspec.structs.replace(card, next=None) if unread else card


def _noted(tile: CardTile | None, note: str) -> CardTile | None:
    return tile and msgspec.structs.replace(tile, note=", ".join(filter(None, [tile.note, note])))


def _card(
    run: Snapshot,
    pair: Pair,
    comparison: Comparison,
    gate: Gate | None,
    gained: str,
    tiles: Sequence[CardTile | None],
    tokens_per_s: Sequence[float | None],
    longer: str = "",
) -> Card:
    """The card of a run of either kind. `gained`: what B gains in speed, in words; `longer`: see `_longer`."""
    head = headline(comparison, pair.names, serves=run.request.traffic is not None)
    tone, recommendation = _recommendation(run, comparison, pair, gate)
    if longer and tone == "good":
        tone, recommendation = "open", "Worth it for longer texts only"
    compiling = compiling_sentence(run) if run.request.traffic is None else ""
    ends = f"{head.ends} ({comparison.confidence:.0%})" if head.ends else ""
    if comparison.low is not None and not comparison.telling:
        ends = "the pairs differ too much to bound it"
        if comparison.pairs == len(run.pair_ratios) == 2:
            ends = f"2 pairs: {range_text(min(run.pair_ratios), max(run.pair_ratios), 'and')}"
    return Card(
        head.lead,
        head.figure,
        head.tail,
        comparison.ratio,
        comparison.low,
        comparison.high,
        run.pair_ratios,
        ends,
        dict(pair.names),
        comparison.decided,
        recommendation,
        tone,
        " ".join(filter(None, [_reason(run, gained, pair.memory), longer, _quality_sentence(run, gate), compiling])),
        confidence(run, comparison),
        [tile for tile in tiles if tile is not None],
        _next(run, tone, pair.names),
        _cost(run, pair.names, tokens_per_s),
    )


def _recommendation(run: Snapshot, comparison: Comparison, pair: Pair, gate: Gate | None) -> tuple[Tone, str]:
    if run.equal_arms:
        return "open", "The arms are equal"
    if not comparison.decided:
        disturbed = any(arm.interference for arm in run.arms.values()) or _run_cv(run) > NOISY_CV
        over = run.ended and comparison.outcome == "undecided"
        return ("caution", "Do not rely on its speed") if over and disturbed else ("open", "Not decided yet")
    if gate_text(gate).missed:
        return "bad", "Not worth it here: it writes worse"
    faster = comparison.outcome == "b_faster"
    memory, kv = (0.0 if size is None else size.change("B") for size in (pair.memory, pair.kv))
    smaller = memory < 0 or (kv < 0 and not memory)
    if (faster or smaller) and gate is not None and gate.state == "unread":
        return "open", "Worth it if it writes as well"
    if faster:
        return "good", "\u2713 Worth it on this machine"
    if smaller:
        return "good", "\u2713 Worth it for memory"
    if comparison.outcome == "a_faster":
        return "bad", "Not worth it here: it is slower"
    return "open", "Not worth it here: it changes nothing"


def _reason(run: Snapshot, gained: str, memory: Bytes | None) -> str:
    """What B saves and takes, in a sentence. `gained`: in speed, "" for nothing."""
    change = memory.change("B") if memory is not None and not run.equal_arms else 0.0
    takes = f"takes {less_or_more(change)} {'the ' if change >= 1 else ''}memory" if change else ""
    clauses = " and ".join(filter(None, [gained, takes]))
    return f"It {clauses}." if clauses else ""


def _cost(run: Snapshot, names: Mapping[str, str], tokens_per_s: Sequence[float | None]) -> str:
    price, rates = run.request.price_per_hour, [rate for rate in tokens_per_s if rate]
    if not price or len(rates) != len(run.arms):
        return ""
    costs = [
        f"{three(1e6 * price / 3600 / rate)} with {name}" for rate, name in zip(rates, names.values(), strict=True)
    ]
    what, left_out = ("tokens", ", the prompt not counted") if run.request.traffic is None else ("useful tokens", "")
    return f"A million {what} cost {' and '.join(costs)}, at {price:g} an hour{left_out}."


def _quality_sentence(run: Snapshot, gate: Gate | None) -> str:
    texts = run.texts
    if gate is None or run.equal_arms:
        return ""
    if gate.state == "settled":
        same = texts is not None and texts.tokens_equal_until is None
        return "It changes no word." if same else ""
    if gate.state == "random":
        return "Its quality is unknown: the weights are random."
    if gate.state == "unread":
        where = "" if run.request.traffic is None else " Compare reads it."
        notes = [phase.note for arm in run.arms.values() for phase in arm.phases.values() if phase.name == "quality"]
        unread = next((note for note in notes if note.startswith(UNREAD)), UNREAD)
        return "" if not run.ended else f"What it costs in quality was {unread}.{where}"
    assert gate.difference is not None
    match cost_of(gate.difference):
        case "none":
            return "What it predicts is bit for bit the same."
        case "rounding":
            return "What it predicts is the same but for rounding."
        case _:
            return f"It has {agreement(gate)}."


def confidence(run: Snapshot, comparison: Comparison) -> str:
    """How many pairs it took, and the weakest fact about them."""
    ratio, low, high = comparison.ratio, comparison.low, comparison.high
    if low is None or high is None:
        return "One pair has no interval yet." if not run.ended else "One pair of runs has no interval."
    if run.equal_arms:
        return "Both arms have one plan: what differs is noise."
    pairs = plural(comparison.pairs, "pair")
    disturbance = next((mark.text for arm in run.arms.values() for _, mark in arm.interference), "")
    if disturbance:
        weakest = f"Meanwhile: {disturbance}."
    elif (run_cv := _run_cv(run)) > NOISY_CV:
        weakest = f"Runs of one arm vary by {run_cv:.0%}."
    elif comparison.outcome in ("a_faster", "b_faster"):
        worst = min(run.pair_ratios) if comparison.outcome == "b_faster" else 1 / max(run.pair_ratios)
        shown = times(worst) if worst >= TIMES_FROM else f"{worst:.2f}\u00d7"
        weakest = f"No pair below {shown}."
    elif not comparison.telling:
        weakest = "Two pairs tell little." if pairs == "2 pairs" else "The pairs differ too much from each other."
    else:
        half = max(high / ratio, ratio / low, 1.01) - 1
        weakest = f"Differences above {half:.0%} would have been seen."
    return f"{'Decided' if comparison.decided else 'Not decided'} after {pairs}. {weakest}"


def _run_cv(run: Snapshot) -> float:
    """Coefficient of variation between the runs of one arm, of the arm that varies more."""
    if run.request.traffic is not None:
        return max(variation(list(run.useful_rates(name).values())) or 0.0 for name in run.arms)
    return max(summary.run_cv or 0.0 for summary in run.summaries.values())


def _next(run: Snapshot, tone: Tone, names: Mapping[str, str]) -> Next | None:
    if not run.ended:
        return None
    if tone == "good":
        return Next(f"Get the script of {names['B']}", "code", "B")
    if tone == "bad":
        return Next("Keep A: get its script", "code", "A")
    return Next("Run again", "run")


# --- tiles ----------------------------------------------------------------------------------------


_SCALES = (1e-3, 1, 1 << 10, 1 << 20, 1 << 30, 1 << 40)
"""Of the units in which figures are shown: ms, s or bytes, KiB to TiB."""


def _in(unit: str) -> Callable[[float], tuple[str, str]]:
    return lambda value: (three(value), unit)


def _tile(
    title: str,
    words: Callable[[float], tuple[str, str]],
    a: float | None,
    b: float | None,
    difference: Difference | None,
) -> CardTile | None:
    """Both values in the unit of the larger one; None where one is not known. `words`: a number as (value, unit)."""
    if a is None or b is None or not max(a, b):
        return None
    shown, unit = words(max(a, b))
    rounded = max(a, b) / float(shown.replace(",", ""))
    scale = min(_SCALES, key=lambda scale: abs(math.log(rounded / scale)))
    of_a, of_b = (shown if value == max(a, b) else three(value / scale) for value in (a, b))
    return CardTile(title, of_a, of_b, unit, difference.text if difference else "")


def _quality_tile(run: Snapshot, gate: Gate | None) -> CardTile:
    title, texts = "Same next token", run.texts
    if gate is None or gate.state == "settled":
        same = texts is not None and texts.tokens_equal_until is None
        return CardTile(title, "100" if same else "\u2013", "", "%" if same else "", "the same text" if same else "")
    if gate.state == "random":
        return CardTile(title, "unknown", "", "", "the weights are random")
    if gate.difference is None:
        return CardTile(title, "not read" if run.ended else "\u2013", "", "", "")
    where, cost = f"of {gate.positions:,} places{', your text' if gate.own else ''}", cost_text(gate)
    percent = share_text(gate.difference.top1_agreement).removesuffix("%")
    return CardTile(title, percent, "", "%", f"{where}: {cost}" if cost else where)


# --- the figure beside each chart of a slide --------------------------------------------------------


class SlideFigure(msgspec.Struct, frozen=True):
    """A figure within its sentence: `lead` before it, `tail` after it."""

    lead: str
    figure: str
    tail: str


def slide_figures(run: Snapshot, card: Card | None) -> dict[str, SlideFigure]:
    """By the key of a chart; of memory and KV cache only where they differ."""
    pair = pair_of(run)
    if card is None or pair is None:
        name = next(iter(run.arms))
        summary, figures = run.summaries[name], dict[str, SlideFigure]()
        if summary.latency_mean_s is not None:
            figures["latency"] = SlideFigure(
                "", joined(summary.latency_mean_s), f"a {step_word(run.unit)} in arm {name}"
            )
        if summary.kv_bytes:
            size, unit = bytes_text(summary.kv_bytes)
            figures["kv"] = SlideFigure("", size, f"{unit} of KV cache in arm {name}")
        return figures
    figures = {"latency": SlideFigure(card.lead, card.figure, card.tail)}
    for key, what, sizes in (("memory", "memory", pair.memory), ("kv", "KV cache", pair.kv)):
        change = 0.0 if sizes is None or run.equal_arms else sizes.change("B")
        if sizes is None or not change:
            continue
        smaller, larger = ("B", "A") if change < 0 else ("A", "B")
        share, _, less = less_or_more(sizes.change(smaller)).partition(" ")
        lead = capitalized(f"{card.names[smaller]} took")
        figures[key] = SlideFigure(lead, share, f"{less} {what} than {card.names[larger]}")
    return figures
