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
from tokendyno.backend.units import bytes_text, three, times
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
from tokendyno.backend.views.tiles import joined, step_word

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


def verdict_of(run: Snapshot, gate: Gate | None = None, pair: Pair | None = None) -> VerdictText:
    """The verdict on what a run has come to: of a reading what B costs in quality, else which arm is faster. `pair`:
    its two arms, where they were compared already."""
    if run.request.quality is not None:
        return VerdictText(quality_sentence(run), tolerances(run), unasked=unasked_sentence(run))
    if not all(arm.completed(0) for arm in run.arms.values()):
        return VerdictText()
    pair = pair or pair_of(run)
    if run.request.traffic is not None:
        return _of_requests(run, pair)
    if run.status == "interrupted":
        return VerdictText()
    summaries = [run.summary(name) for name in run.arms]
    if len(summaries) == 1:
        return VerdictText(_alone(next(iter(run.arms)), summaries[0], run.unit))
    if pair is None:
        return VerdictText()
    as_long = len({s.tokens for s in summaries}) == 1  # else the cache of the longer text is larger, for that alone
    found, kv, quality = pair.found, pair.kv if as_long else None, gate_text(gate)
    if run.equal_arms:
        said = _of_equal_arms(found, run.texts(), run.unit)
    else:
        said = worded(found, pair.memory, kv, run.texts(), run.unit, pair.names, quality)
    if found is not None and not as_long:
        both = f"{min(s.tokens for s in summaries):,} {step_word(run.unit)}s"
        said = msgspec.structs.replace(said, basis=f"{said.basis.rstrip('.')}; compared over the first {both} of both.")
    return msgspec.structs.replace(
        said,
        gate=quality.line,
        gate_run=gate.run if gate and gate.run != run.created.id else "",
        unasked=unasked_sentence(run),
        pays="" if found is not None and found.outcome == "undecided" else pays_sentence(run),
    )


def unasked_sentence(run: Snapshot) -> str:
    """In what two arms differ although nobody named it, such as what "auto" came to; "" for nothing."""
    apart = [
        f"{axis_title(axis)} ({'; '.join(_came_to(arm, axis) for arm in run.created.arms)})" for axis in run.unasked
    ]
    return f"The arms also differ in what nobody named: {listed(apart)}." if apart else ""


def _came_to(arm: ArmPlanned, axis: str) -> str:
    planned, requested = arm.planned[axis], arm.requested.get(axis, arm.planned[axis])
    named = [choice_title(axis, choice) for choice in dict.fromkeys((requested, planned))]
    return f"{arm.name} {', which came to '.join(named)}"


def worded(
    found: Comparison | None,
    memory: Bytes | None,
    kv: Bytes | None,
    texts: TextComparison | None,
    unit: Unit = "token",
    names: Mapping[str, str] = LETTERS,
    quality: GateText = NO_GATE,
) -> VerdictText:
    """The verdict in words. A known cost in quality stands in place of where the texts differ."""
    others = [clause for clause in (_bytes(memory, "takes", "memory"), _bytes(kv, "keeps", "KV cache")) if clause]
    text = _text(texts, differing=not (quality.part or quality.missed))
    cost = f"has {quality.missed}, over the tolerance" if quality.missed else quality.part
    rest = [*others, *filter(None, [cost, text])]
    if found is None:
        return VerdictText(capitalized(f"{names['B']} {listed(rest)}.") if rest else "")
    head = headline(found, names)
    if found.low is None:
        return VerdictText(
            f"One pair of runs: {listed([_one_pair(found.ratio, unit, names), *rest])}.", basis(found, step_time(unit))
        )
    if found.outcome in ("a_faster", "b_faster"):
        return VerdictText(f"{listed([head.text, *rest])}.", basis(found, step_time(unit)))
    return VerdictText(f"{head.text}; it {listed(rest)}." if rest else f"{head.text}.", basis(found, step_time(unit)))


def basis(found: Comparison, measure: str) -> str:
    """How sure that is. `measure`: what is compared."""
    if found.low is None:
        return "One pair has no interval: more pairs give one."
    pairs = f"{found.pairs} pair{'s' * (found.pairs != 1)}"
    decided = f"Decided after {pairs}" if found.decided else f"Not decided after {pairs}"
    return f"{decided}: {100 * found.confidence:.0f}% interval, by {measure}."


def step_time(unit: Unit) -> str:
    """What is compared of runs of one prompt."""
    return f"mean time per {step_word(unit)}"


# --- clauses --------------------------------------------------------------------------------------


def _of_equal_arms(found: Comparison | None, texts: TextComparison | None, unit: Unit) -> VerdictText:
    """Of arms with the same plan, how large the noise is."""
    said = "The arms are equal, so any difference is noise"
    if found is not None and (found.low is None or found.high is None):
        said += f": in one pair of runs {_one_pair(found.ratio, unit, LETTERS)}"
    elif found is not None and found.low is not None and found.high is not None:
        said += f": B runs at {range_text(found.low, found.high)} times A's speed"
    if texts is not None and texts.tokens_equal_until is not None:
        said += f"; it {_text(texts, differing=True)}"
    return VerdictText(f"{said}.", basis(found, step_time(unit)) if found is not None else "")


def _alone(name: str, found: Summary, unit: Unit) -> str:
    """The sentence on a single arm."""
    parts = []
    if found.tokens_per_s is not None:
        rate, whole = found.tokens_per_s, found.batch_tokens_per_s
        said = f"generates {three(rate)} tokens/s" if unit == "token" else f"runs {three(rate)} passes/s"
        if unit == "token" and whole is not None and whole != rate:
            said += f" per sequence ({three(whole)} for the whole batch)"
        parts.append(said)
    if found.peak_memory_bytes is not None:
        parts.append(f"takes {' '.join(bytes_text(found.peak_memory_bytes))} of memory at its peak")
    return f"{name} {listed(parts)}." if parts else ""


def _one_pair(ratio: float, unit: Unit, names: Mapping[str, str], serves: bool = False) -> str:
    """What one pair of runs says. ratio: time of A / time of B, of many requests what B served / what A served."""
    a, b, what = names["A"], names["B"], USEFUL if serves else f"time per {step_word(unit)}"
    change, verb = (ratio - 1, "served") if serves else (1 / ratio - 1, "took")
    if abs(change) < ABOUT_SAME:
        same = f"as many {what} as {a}," if serves else f"the same {what} as {a}"
        return f"{b} {verb} {same} {f'within {ABOUT_SAME:.0%}' if serves else f'(within {ABOUT_SAME:.0%})'}"
    said = less_or_more(change)
    if change >= 1:
        return f"{b} {verb} {said} the {what} of {a}"
    return f"{b} {verb} {said.replace('less', 'fewer') if serves else said} {what} than {a}"


def _bytes(pair: Bytes | None, verb: str, what: str) -> str:
    change = pair.change("B") if pair else 0.0
    if not change:
        return ""
    said = less_or_more(change)
    return f"{verb} {said} the {what}" if change >= 1 else f"{verb} {said} {what}"


def _text(found: TextComparison | None, differing: bool) -> str:
    """`differing`: say from where they differ."""
    if found is None:
        return ""
    if found.tokens_equal_until is None:
        return "writes the same text"
    if not differing:
        return ""
    return f"writes another text from token {found.tokens_equal_until:,} on"


def listed(parts: Sequence[str]) -> str:
    """ "a", "a and b", "a, b, and c"."""
    if len(parts) < 3:
        return " and ".join(parts)
    return f"{', '.join(parts[:-1])}, and {parts[-1]}"


# --- many requests ----------------------------------------------------------------------------------


def _of_requests(run: Snapshot, pair: Pair | None) -> VerdictText:
    """The verdict on a run with all requests served."""
    found = run.batch_summaries
    if pair is None:
        name, one = next(iter(found.items()))
        return VerdictText(f"{name} serves {_rate(one)} {USEFUL}.")
    a, b = found.values()
    compared = pair.found
    if compared is None:
        return VerdictText()
    if run.equal_arms:
        known = compared.low is not None and compared.high is not None
        ratio = range_text(compared.low, compared.high) if known else f"{compared.ratio:.2f}"  # type: ignore[arg-type]
        said = f"The arms are equal, so any difference is noise: B serves {ratio} times A's {USEFUL}"
    elif compared.outcome != "unknown":
        said = headline(compared, pair.names, serves=True).text
    else:
        said = f"One pair of runs: {_one_pair(compared.ratio, run.unit, pair.names, serves=True)}"
    sentence = f"{said}, {_rate(b)} against {_rate(a)}; {same_sentence(run)}."
    return VerdictText(sentence, basis(compared, USEFUL), unasked=unasked_sentence(run))


def same_sentence(run: Snapshot) -> str:
    """How many requests got the same tokens from both arms; "" without two arms that served any."""
    found = run.differing_requests
    if found is None:
        return ""
    same = run.same_tokens() or 0
    if same == len(found):
        return f"all {same:,} requests got the same tokens"
    return f"{same:,} of {len(found):,} requests got the same tokens"


def differing_at(run: Snapshot) -> dict[int, int]:
    """Requests whose tokens differ between the arms, with the first token that does."""
    return {request: at for request, at in (run.differing_requests or {}).items() if at is not None}


def compared(run: Snapshot) -> int:
    """Requests that both arms served."""
    return len(run.differing_requests or {})


def why_sentence(run: Snapshot) -> str:
    """What made the difference: steps, the time of each, and the work of slots; all measured. "" before both ended."""
    if run.request.traffic is None or len(run.arms) != 2 or not all(arm.completed(0) for arm in run.arms.values()):
        return ""
    a, b = run.batch_summaries.values()
    if not a.step_mean_s or not b.step_mean_s or not a.busy_share or not b.busy_share:
        return ""
    return f"Why: A took {_steps(a)}, B {_steps(b)}.{_lesson(run, a, b)}"


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
    if paged.useful_tokens_s < static.useful_tokens_s:
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
