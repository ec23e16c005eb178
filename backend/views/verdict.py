"""The verdict on a run in one sentence: whether B is faster, what it takes, and whether it writes the same.

Nothing is called faster or slower unless the whole interval says so; arms with the same plan have no winner.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from tokendyno.backend.optimizations import axis_title, choice_title
from tokendyno.backend.runs.batch_summary import BatchSummary
from tokendyno.backend.runs.quality import Gate
from tokendyno.backend.runs.records import ArmPlanned, Unit
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.summary import Comparison, Summary
from tokendyno.backend.runs.texts import TextComparison
from tokendyno.backend.units import bytes_text, three, times
from tokendyno.backend.views.arm_names import arm_names, capitalized
from tokendyno.backend.views.quality import GateText, gate_text, quality_sentence, tolerances
from tokendyno.backend.views.start import pays_sentence
from tokendyno.backend.views.tiles import joined, step_word

ABOUT_SAME = 0.01
"""One pair of runs whose times differ by less than this is said to have taken the same time. Our choice."""

SAME_BYTES = 0.01
"""GPU memory and KV caches that differ by less are called equal. Our choice."""

SAME_RESIDENT = 0.05
"""Resident memory on a CPU that differs by less is called equal: the allocator keeps more or less from run to run. Our
choice."""

TIMES_FROM = 1.1
"""From this ratio on "1.5x as fast" is said, below it "9% less time"."""

CLOSE = 0.2
"""Ends of an interval that are closer to each other have two decimals."""

USEFUL = "useful tokens/s"
"""What is compared of runs of many requests."""

NO_GATE = GateText()
GATHERS = ("eager", "sdpa", "sdpa-gqa", "sdpa-math", "auto")
"""Attention that reads pages without a block table."""

LETTERS: Mapping[str, str] = {"A": "A", "B": "B"}


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


class Headline(NamedTuple):
    """The comparison of speed around its one number: `lead`, `figure` and `tail` make a sentence; `ends`: the interval,
    "" without one."""

    lead: str
    figure: str = ""
    tail: str = ""
    ends: str = ""

    @property
    def text(self) -> str:
        """In one line."""
        said = f"{self.lead}{'' if self.tail else ':'} {self.figure} {self.tail}".strip()
        return f"{said} ({self.ends})" if self.ends else said


class Bytes(NamedTuple):
    """The same figure of arm A and of arm B, in bytes, and the share by which it may differ without meaning."""

    a: int
    b: int
    noise: float

    def change(self, other: str) -> float:
        """What arm `other` ("A" or "B") takes more than its rival, as a share; 0.0 within the noise."""
        change = self.b / self.a - 1
        if abs(change) < self.noise:
            return 0.0
        return change if other == "B" else self.a / self.b - 1


def verdict_of(run: Snapshot, gate: Gate | None = None) -> VerdictText:
    """The verdict on what a run has come to: of a reading what B costs in quality, else which arm is faster."""
    if run.request.quality is not None:
        return VerdictText(quality_sentence(run), tolerances(run), unasked=unasked_sentence(run))
    if run.request.traffic is not None:
        return batch_verdict(run)
    if run.status == "interrupted" or not all(arm.completed(0) for arm in run.arms.values()):
        return VerdictText()
    summaries = [run.summary(name) for name in run.arms]
    if len(summaries) == 1:
        return VerdictText(_alone(next(iter(run.arms)), summaries[0], run.unit))
    if len(summaries) != 2:
        return VerdictText()
    memory = bytes_of([s.peak_memory_bytes for s in summaries], memory_noise(run))
    as_long = len({s.tokens for s in summaries}) == 1  # else the cache of the longer text is larger, for that alone
    kv = bytes_of([s.kv_bytes for s in summaries], SAME_BYTES) if as_long else None
    found, names = run.comparison(), arm_names(run)
    quality = gate_text(gate)
    if run.equal_arms:
        said = _of_equal_arms(found, run.texts(), run.unit)
    else:
        said = worded(found, memory, kv, run.texts(), run.unit, names, quality)
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


def memory_noise(run: Snapshot) -> float:
    """The share by which peak memory varies between equal runs on this run's device."""
    return SAME_RESIDENT if run.created.device == "cpu" else SAME_BYTES


def bytes_of(sizes: Sequence[int | None], noise: float) -> Bytes | None:
    """The pair, or None where one is not known."""
    a, b = sizes
    return Bytes(a, b, noise) if a and b else None


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


def headline(found: Comparison, names: Mapping[str, str] = LETTERS, serves: bool = False) -> Headline:
    """How fast B is against A: from `TIMES_FROM` on as a factor, else in percent. `serves`: many requests."""
    a, b = names["A"], names["B"]
    ends = range_text(found.low, found.high) if found.bounded and found.low and found.high else ""
    shown = times(found.ratio)
    match found.outcome:
        case "no_difference":
            what = USEFUL if serves else "speed"
            return Headline(f"No difference in {what} between {b} and {a}", shown, "", ends)
        case "undecided":
            may = f"serve more or fewer {USEFUL}" if serves else "be faster or slower"
            return Headline(f"Not decided: {b} may {may} than {a}", shown, "", ends)
        case "unknown":
            ahead = "as fast" if abs(found.ratio - 1) < ABOUT_SAME else "ahead" if found.ratio > 1 else "behind"
            return Headline(capitalized(f"{b} is {ahead} in the first pair"), shown)
    assert found.low is not None and found.high is not None
    slower, verb = found.outcome == "a_faster", "serves" if serves else "takes"
    if max(found.ratio, 1 / found.ratio) < TIMES_FROM or (serves and slower):
        ratios = (found.ratio, found.low, found.high)
        middle, *both = _percents([abs(value - 1 if serves else 1 - 1 / value) for value in ratios])
        what = f"{'fewer' if slower else 'more'} {USEFUL}" if serves else f"{'more' if slower else 'less'} time"
        range_of = " to ".join(sorted(both, key=_number))
        return Headline(capitalized(f"{b} {verb}"), middle, f"{what} than {a}", range_of)
    ratio, low, high = found.ratio, found.low, found.high
    if slower:
        ratio, low, high = 1 / ratio, 1 / high, 1 / low
    what = f"the {USEFUL} of" if serves else "the time of" if slower else "as fast as"
    verb = verb if serves or slower else "is"
    return Headline(capitalized(f"{b} {verb}"), _between(ratio, low, high), f"{what} {a}", range_text(low, high))


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


def less_or_more(change: float) -> str:
    """A share as "13% less", or from twice on "2.6\u00d7". "" for none that is worth a word."""
    if change >= 1:
        return times(1 + change)
    shown = f"{abs(change):.1%}" if abs(change) < 0.01 else f"{abs(change):.0%}"
    return "" if float(shown[:-1]) == 0 else f"{shown} {'more' if change > 0 else 'less'}"


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


def range_text(low: float, high: float) -> str:
    """Both ends of an interval of ratios, with as many digits as tell them apart."""
    short = [times(low)[:-1], times(high)[:-1]]
    if short[0] == short[1] or high - low < CLOSE:
        short = [f"{end:.2f}" if 0.1 <= end < 10 else three(end) for end in (low, high)]
    return " to ".join(short)


def _between(ratio: float, low: float, high: float) -> str:
    """The ratio with as many digits as its interval."""
    return (
        times(ratio) if times(low) != times(high) else f"{ratio:.2f}\u00d7" if ratio < 10 else f"{three(ratio)}\u00d7"
    )


def _percents(shares: Sequence[float]) -> list[str]:
    """The first one and both ends, with as few digits as tell the ends apart and from nothing."""
    shown: list[str] = []
    for places in (0, 1, 2):
        shown = [f"{100 * share:.{places}f}%" for share in shares]
        if shown[1] != shown[2] and min(_number(one) for one in shown) > 0:
            break
    return shown


def _number(shown: str) -> float:
    return float(shown.removesuffix("%"))


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


def batch_verdict(run: Snapshot) -> VerdictText:
    """The verdict on a run that has ended with all requests served; "" else."""
    if run.request.traffic is None or not all(arm.completed(0) for arm in run.arms.values()):
        return VerdictText()
    found = run.batch_summaries
    if len(found) != 2:
        name, one = next(iter(found.items()))
        return VerdictText(f"{name} serves {_rate(one)} {USEFUL}.")
    a, b = found.values()
    compared = run.comparison()
    if compared is None:
        return VerdictText()
    if run.equal_arms:
        known = compared.low is not None and compared.high is not None
        ratio = range_text(compared.low, compared.high) if known else f"{compared.ratio:.2f}"  # type: ignore[arg-type]
        said = f"The arms are equal, so any difference is noise: B serves {ratio} times A's {USEFUL}"
    elif compared.outcome != "unknown":
        said = headline(compared, arm_names(run), serves=True).text
    else:
        said = f"One pair of runs: {_one_pair(compared.ratio, run.unit, arm_names(run), serves=True)}"
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
