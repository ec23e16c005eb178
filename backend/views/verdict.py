"""The verdict on a run in one sentence: whether B is faster, what it takes, and whether it writes the same. Arms with
the same plan have no winner."""

from collections.abc import Mapping, Sequence

import msgspec

from tokendyno.backend.optimizations import axis_title, choice_title
from tokendyno.backend.runs.batch_summary import BatchSummary
from tokendyno.backend.runs.quality import Gate
from tokendyno.backend.runs.records import ArmPlanned, Unit
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.summary import Comparison, Summary
from tokendyno.backend.runs.texts import TextComparison
from tokendyno.backend.units import bytes_text, plural, three, times
from tokendyno.backend.views.comparison import (
    ABOUT_SAME,
    LETTERS,
    USEFUL,
    Bytes,
    Pair,
    capitalized,
    headline,
    less_or_more,
    pair_of,
    range_text,
)
from tokendyno.backend.views.quality import GateText, gate_text, quality_sentence, tolerances
from tokendyno.backend.views.start import pays_sentence
from tokendyno.backend.views.tiles import compiling_sentence, joined, step_word

NO_GATE = GateText()
GATHERS = ("eager", "sdpa", "sdpa-gqa", "sdpa-math", "auto")
"""Attention that reads pages without a block table."""


class VerdictText(msgspec.Struct, frozen=True):
    """The sentence, "" where there is nothing to say, and what it is based on.

    gate_run  id of the run that says so, "" without one
    unasked   in what the arms differ although nobody asked for it, "" for nothing
    pays      from when on waiting for the arm that starts later pays, "" where neither has to catch up
    """

    sentence: str = ""
    basis: str = ""
    gate: str = ""
    gate_run: str = ""
    unasked: str = ""
    pays: str = ""


def verdict_of(run: Snapshot, gate: Gate | None = None) -> VerdictText:
    """The verdict on what a run has come to: of a reading what B costs in quality, else which arm is faster."""
    if run.request.quality is not None:
        return VerdictText(quality_sentence(run), tolerances(run), unasked=unasked_sentence(run))
    if not all(arm.completed(0) for arm in run.arms.values()):
        return VerdictText()
    pair = pair_of(run)
    if run.request.traffic is not None:
        return _of_requests(run, pair)
    if run.status == "interrupted":
        return VerdictText()
    summaries = list(run.summaries.values())
    if pair is None:
        alone = _alone(next(iter(run.arms)), summaries[0], run.unit)
        return VerdictText(" ".join(filter(None, [alone, compiling_sentence(run)])))
    comparison, quality = pair.comparison, gate_text(gate)
    if run.equal_arms:
        verdict = _of_equal_arms(comparison, run.texts, run.unit)
    else:
        verdict = worded(comparison, pair.memory, pair.kv, run.texts, run.unit, pair.names, quality)
    lengths = {summary.tokens for summary in summaries}
    if comparison is not None and len(lengths) > 1:
        first = f"{min(lengths):,} {step_word(run.unit)}s"
        basis_text = f"{verdict.basis.rstrip('.')}; compared over the first {first} of both."
        verdict = msgspec.structs.replace(verdict, basis=basis_text)
    return msgspec.structs.replace(
        verdict,
        sentence=" ".join(filter(None, [verdict.sentence, compiling_sentence(run)])),
        gate=quality.line,
        gate_run=gate.run if gate and gate.run != run.created.id else "",
        unasked=unasked_sentence(run),
        pays="" if comparison is not None and comparison.outcome == "undecided" else pays_sentence(run),
    )


def unasked_sentence(run: Snapshot) -> str:
    """In what two arms differ although nobody named it, such as what "auto" came to; "" for nothing."""
    unasked = [
        f"{axis_title(axis)} ({'; '.join(_came_to(arm, axis) for arm in run.created.arms)})" for axis in run.unasked
    ]
    return f"The arms also differ in what an arm leaves open: {listed(unasked)}." if unasked else ""


def _came_to(arm: ArmPlanned, axis: str) -> str:
    planned, requested = arm.planned[axis], arm.requested.get(axis, arm.planned[axis])
    titles = [choice_title(axis, choice) for choice in dict.fromkeys((requested, planned))]
    return f"{arm.name} {', which came to '.join(titles)}"


def worded(
    comparison: Comparison | None,
    memory: Bytes | None,
    kv: Bytes | None,
    texts: TextComparison | None,
    unit: Unit = "token",
    names: Mapping[str, str] = LETTERS,
    quality: GateText = NO_GATE,
) -> VerdictText:
    """The verdict in words. Where the cost in quality is known, it is said in place of where the texts differ."""
    text = _text(texts, differing=not (quality.part or quality.missed))
    cost = f"had {quality.missed}, over the tolerance" if quality.missed else quality.part
    rest = [*filter(None, [_bytes(memory, "took", "memory"), _bytes(kv, "kept", "KV cache"), cost, text])]
    if comparison is None:
        return VerdictText(capitalized(f"{names['B']} {listed(rest)}.") if rest else "")
    head, basis = headline(comparison, names).text, _basis(comparison, unit)
    if comparison.low is None:
        return VerdictText(f"One pair of runs: {listed([_one_pair(comparison.ratio, unit, names), *rest])}.", basis)
    if comparison.outcome in ("a_faster", "b_faster"):
        return VerdictText(f"{listed([head, *rest])}.", basis)
    return VerdictText(f"{head}; it {listed(rest)}." if rest else f"{head}.", basis)


def _basis(comparison: Comparison, unit: Unit | None) -> str:
    """How sure the verdict is. `unit`: of the steps that are compared; None: of many requests their rates are."""
    measure = f"mean time per {step_word(unit)}" if unit else USEFUL
    if comparison.low is None:
        return "One pair has no interval: more pairs give one."
    pairs = plural(comparison.pairs, "pair")
    decided = f"Decided after {pairs}" if comparison.decided else f"Not decided after {pairs}"
    return f"{decided}: {100 * comparison.confidence:.0f}% interval, by {measure}."


# --- clauses --------------------------------------------------------------------------------------


def _of_equal_arms(comparison: Comparison | None, texts: TextComparison | None, unit: Unit) -> VerdictText:
    sentence = "The arms are equal, so any difference is noise"
    if comparison is not None and comparison.telling and comparison.low and comparison.high:
        sentence += f": B runs at {range_text(comparison.low, comparison.high)} times A's speed"
    elif comparison is not None and comparison.low is None:
        sentence += f": in one pair of runs {_one_pair(comparison.ratio, unit, LETTERS)}"
    if texts is not None and texts.tokens_equal_until is not None:
        sentence += f"; it {_text(texts, differing=True)}"
    return VerdictText(f"{sentence}.", _basis(comparison, unit) if comparison is not None else "")


def _alone(name: str, summary: Summary, unit: Unit) -> str:
    clauses = []
    if summary.tokens_per_s is not None:
        rate, whole = summary.tokens_per_s, summary.batch_tokens_per_s
        speed = f"generates {three(rate)} tokens/s" if unit == "token" else f"runs {three(rate)} passes/s"
        if unit == "token" and whole is not None and whole != rate:
            speed += f" per sequence ({three(whole)} for the whole batch)"
        clauses.append(speed)
    if summary.peak_memory_bytes is not None:
        clauses.append(f"takes {' '.join(bytes_text(summary.peak_memory_bytes))} of memory at its peak")
    return f"{name} {listed(clauses)}." if clauses else ""


def _one_pair(ratio: float, unit: Unit, names: Mapping[str, str], serves: bool = False) -> str:
    """What one pair of runs says. `ratio`: time of A / time of B, of many requests what B served / what A served."""
    a, b, what = names["A"], names["B"], USEFUL if serves else f"time per {step_word(unit)}"
    change, verb = (ratio - 1, "served") if serves else (1 / ratio - 1, "took")
    if abs(change) < ABOUT_SAME:
        same = f"as many {what} as {a}," if serves else f"the same {what} as {a}"
        return f"{b} {verb} {same} {f'within {ABOUT_SAME:.0%}' if serves else f'(within {ABOUT_SAME:.0%})'}"
    amount = less_or_more(change)
    if change >= 1:
        return f"{b} {verb} {amount} the {what} of {a}"
    return f"{b} {verb} {amount.replace('less', 'fewer') if serves else amount} {what} than {a}"


def _bytes(sizes: Bytes | None, verb: str, what: str) -> str:
    change = sizes.change("B") if sizes else 0.0
    return f"{verb} {less_or_more(change)} {'the ' if change >= 1 else ''}{what}" if change else ""


def _text(texts: TextComparison | None, differing: bool) -> str:
    """`differing`: say from which token on they differ."""
    if texts is None:
        return ""
    if texts.tokens_equal_until is None:
        return "wrote the same text"
    return f"wrote another text from token {texts.tokens_equal_until:,} on" if differing else ""


def listed(parts: Sequence[str]) -> str:
    """ "a", "a and b", "a, b, and c"."""
    if len(parts) < 3:
        return " and ".join(parts)
    return f"{', '.join(parts[:-1])}, and {parts[-1]}"


# --- many requests ----------------------------------------------------------------------------------


def _of_requests(run: Snapshot, pair: Pair | None) -> VerdictText:
    if pair is None:
        name, summary = next(iter(run.batch_summaries.items()))
        return VerdictText(f"{name} serves {_rate(summary)} {USEFUL}.")
    comparison, (a, b) = pair.comparison, run.batch_summaries.values()
    if comparison is None:
        return VerdictText()
    low, high = comparison.low, comparison.high
    if run.equal_arms:
        ratio = f"{comparison.ratio:.2f}" if low is None or high is None else range_text(low, high)
        clause = f"The arms are equal, so any difference is noise: B serves {ratio} times A's {USEFUL}"
    elif comparison.outcome != "unknown":
        clause = headline(comparison, pair.names, serves=True).text
    else:
        clause = f"One pair of runs: {_one_pair(comparison.ratio, run.unit, pair.names, serves=True)}"
    sentence = f"{clause}, {_rate(b)} against {_rate(a)}; {same_sentence(run)}."
    return VerdictText(sentence, _basis(comparison, None), unasked=unasked_sentence(run))


def same_sentence(run: Snapshot) -> str:
    """How many requests got the same tokens from both arms; "" without two arms that served any."""
    same, total = run.same_tokens(), compared(run)
    if same is None:
        return ""
    return f"{f'all {same:,}' if same == total else f'{same:,} of {total:,}'} requests got the same tokens"


def compared(run: Snapshot) -> int:
    """Requests that both arms served."""
    return len(run.differing_requests or {})


def why_sentence(run: Snapshot) -> str:
    """What made the difference, as measured: steps, the time of each, and the slots at work. "" before both ended."""
    if run.request.traffic is None or len(run.arms) != 2 or not all(arm.completed(0) for arm in run.arms.values()):
        return ""
    a, b = run.batch_summaries.values()
    if not a.step_mean_s or not b.step_mean_s or not a.busy_share or not b.busy_share:
        return ""
    return f"In the first run A took {_steps(a)}, B {_steps(b)}.{_lesson(run, a, b)}"


def _lesson(run: Snapshot, a: BatchSummary, b: BatchSummary) -> str:
    """What the steps of static and continuous batching teach where one arm is of each kind."""
    planned: list[Mapping[str, str]] = [run.planned(name).planned for name in run.arms]
    kinds = [choices.get("batching", "off") for choices in planned]
    if sorted(kinds) != ["continuous", "static"]:
        return ""
    paged, static = (a, b) if kinds[0] == "continuous" else (b, a)
    attention = planned[kinds.index("continuous")].get("attention", "")
    assert paged.step_mean_s and static.step_mean_s and paged.useful_tokens_s and static.useful_tokens_s
    slower, fewer = paged.step_mean_s / static.step_mean_s, static.steps / paged.steps
    gathers = "its attention copies the pages of all requests together in every layer of every step"
    if fewer <= 1:  # its requests came so that no batch ran with empty slots
        return ""
    if slower > fewer:
        cause = f": {gathers}" if attention in GATHERS else ""
        return (
            f" Continuous batching keeps slots filled, so it needs fewer steps ({times(1 / fewer)}), but each takes "
            f"{times(slower)} as long, which costs more than it saves{cause}."
        )
    return f" Continuous batching keeps slots filled: {times(1 / fewer)} the steps, each at {times(slower)} the time."


def _steps(s: BatchSummary) -> str:
    busy = three(100 * (s.busy_share or 0))
    return f"{s.steps:,} steps of {joined(s.step_mean_s or 0.0)} with {busy}% of its slots at useful work"


def _rate(s: BatchSummary) -> str:
    return three(s.useful_tokens_s or 0.0)
