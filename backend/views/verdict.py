"""The verdict on a run in one sentence: which arm is faster, what it takes, and whether it writes the same text.

A winner is named only where the interval over pairs of runs excludes equality. One pair of runs names none: it gives
the difference. Arms with the same plan have no winner: whatever differs between them is noise. Bytes are compared from
the first pair of runs: those of a KV cache follow from its shape, those of a process are compared as far as
`memory_noise` lets them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from tokendyno.backend.config import MEASURE_REPEATS
from tokendyno.backend.optimizations import axis_title, choice_title
from tokendyno.backend.runs.gate import Gate
from tokendyno.backend.runs.records import ArmPlanned, Unit
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.summary import Comparison, Summary
from tokendyno.backend.runs.texts import TextComparison
from tokendyno.backend.units import bytes_text, three
from tokendyno.backend.views.gate import GateText, gate_text
from tokendyno.backend.views.start import pays_sentence

SAME_SPEED = 0.001
"""A gain below 0.1% is no gain, however narrow its interval is. Our choice."""

ABOUT_SAME = 0.01
"""One pair of runs whose times differ by less than this is said to have taken the same time. Our choice."""

SAME_BYTES = 0.01
"""GPU memory and KV caches that differ by less are called equal. Our choice."""

SAME_RESIDENT = 0.05
"""The same for resident memory on a CPU, of which the allocator keeps more or less from run to run. Our choice."""

TIMES_FROM = 1.5
"""From this ratio on "1.5x faster" is said, below it "49% faster"."""


NO_GATE = GateText()


class Asks(NamedTuple):
    """What a reader does for more: `measure` repeats the runs, `read` has both arms read given texts."""

    measure: str = "Measure"
    read: str = "press Quality"


PAGE = Asks()
ELSEWHERE = Asks(f"--repeats {MEASURE_REPEATS}", "run `tokendyno quality` with the same arms")
"""In a terminal or a file, which have no buttons."""


class VerdictText(msgspec.Struct, frozen=True):
    """The sentence, "" where there is nothing to say, and what it is based on.

    gate      what is known of the quality of one arm against the other, "" where there is nothing to know
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


def verdict_of(run: Snapshot, asks: Asks = PAGE, gate: Gate | None = None) -> VerdictText:
    """The verdict on what a run has come to."""
    measure, read = asks
    if run.status in ("failed", "interrupted") or not all(arm.completed(0) for arm in run.arms.values()):
        return VerdictText()
    summaries = [run.summary(name) for name in run.arms]
    if len(summaries) == 1:
        return VerdictText(_alone(next(iter(run.arms)), summaries[0], run.unit))
    if len(summaries) != 2:
        return VerdictText()
    memory = bytes_of([s.peak_memory_bytes for s in summaries], memory_noise(run))
    as_long = len({s.tokens for s in summaries}) == 1  # else the cache of the longer text is larger, for that alone
    kv = bytes_of([s.kv_bytes for s in summaries], SAME_BYTES) if as_long else None
    found = run.comparison()
    quality = gate_text(gate, subject_of(found), read)
    if run.equal_arms:
        said = _of_equal_arms(found, run.texts(), run.unit, measure)
    else:
        said = worded(found, memory, kv, run.texts(), run.unit, measure, quality)
    if found is not None and not as_long:
        both = f"{min(s.tokens for s in summaries):,} {_step(run.unit)}s"
        said = msgspec.structs.replace(said, basis=f"{said.basis.rstrip('.')}; compared over the first {both} of both")
    return msgspec.structs.replace(
        said,
        gate=quality.line,
        gate_run=gate.run if gate else "",
        unasked=unasked_sentence(run),
        pays=pays_sentence(run),
    )


def unasked_sentence(run: Snapshot) -> str:
    """In what two arms differ although nobody named it, such as what "auto" came to; "" for nothing."""
    apart = [
        f"{axis_title(axis)} ({'; '.join(_came_to(arm, axis) for arm in run.created.arms)})" for axis in run.unasked
    ]
    return f"The arms also differ in what nobody named: {_listed(apart)}." if apart else ""


def _came_to(arm: ArmPlanned, axis: str) -> str:
    planned, requested = arm.planned[axis], arm.requested.get(axis, arm.planned[axis])
    named = [choice_title(axis, choice) for choice in dict.fromkeys((requested, planned))]
    return f"{arm.name} {', which came to '.join(named)}"


def subject_of(found: Comparison | None) -> str:
    """The arm that a verdict is about: the faster one, else B."""
    return "A" if outcome_of(found) == "a_faster" else "B"


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
    measure: str = "Measure",
    quality: GateText = NO_GATE,
) -> VerdictText:
    """The verdict in words. Where the cost in quality is known, it stands with the gain, and in place of the token from
    which the texts differ. A cost over the tolerance comes first, and the rest of the sentence is what was had for it.
    """
    outcome, subject = outcome_of(found), subject_of(found)
    others = [
        clause
        for clause in (_bytes(memory, subject, "takes", "memory"), _bytes(kv, subject, "keeps", "KV cache"))
        if clause
    ]
    text = _text(texts, differing=not (quality.part or quality.missed))
    rest = [*others, text] if text else others
    if quality.missed:
        return VerdictText(_no_win(found, rest, unit, quality.missed), _basis(found, unit, measure))
    gain, rest = (f" {quality.clause}", rest) if quality.clause else ("", [*filter(None, [quality.part]), *rest])
    basis = _basis(found, unit, measure)
    if found is None:
        parts = [*rest, quality.part] if gain else rest
        return VerdictText(f"B {_listed(parts)}." if parts else "")
    if found.low is None or found.high is None:
        spent = _listed([_one_pair(found.ratio, unit) + gain, *rest])
        return VerdictText(f"One pair of runs: B {spent}.", basis)
    if outcome != "no_difference":
        return VerdictText(f"{subject} {_listed([_winner(found, subject, unit) + gain, *rest])}.", basis)
    rest = [quality.part, *rest] if gain else rest
    speed = _range(found.low, found.high)
    if not others and texts is not None and texts.tokens_equal_until is None:
        equal = [
            f"runs at {speed} times A's speed",
            *(["takes as much memory"] if memory else []),
            *filter(None, [quality.part]),
            "writes the same text",
        ]
        return VerdictText(f"No difference found: B {_listed(equal)}.", basis)
    said = f"No difference in speed found: B runs at {speed} times A's"
    return VerdictText(f"{said}; it {_listed(rest)}." if rest else f"{said}.", basis)


def outcome_of(found: Comparison | None) -> str:
    """Which arm is faster, as far as it can be said; a gain too small to matter is no difference."""
    if found is None:
        return "unknown"
    if found.outcome in ("a_faster", "b_faster") and abs(found.ratio - 1) < SAME_SPEED:
        return "no_difference"
    return found.outcome


def less_or_more(change: float) -> str:
    """A share as "13% less", or from twice on "2.6x". "" for none that is worth a word."""
    if change >= 1:
        return f"{_two(1 + change)}x"
    shown = f"{abs(change):.1%}" if abs(change) < 0.01 else f"{abs(change):.0%}"
    return "" if float(shown[:-1]) == 0 else f"{shown} {'more' if change > 0 else 'less'}"


# --- clauses --------------------------------------------------------------------------------------


def _of_equal_arms(found: Comparison | None, texts: TextComparison | None, unit: Unit, measure: str) -> VerdictText:
    """Of arms with the same plan, how large the noise is."""
    said = "The arms are equal, so any difference is noise"
    if found is not None and (found.low is None or found.high is None):
        said += f": in one pair of runs B {_one_pair(found.ratio, unit)}"
    elif found is not None and found.low is not None and found.high is not None:
        said += f": B runs at {_range(found.low, found.high)} times A's speed"
    if texts is not None and texts.tokens_equal_until is not None:
        said += f"; it {_text(texts, differing=True)}"
    return VerdictText(f"{said}.", _basis(found, unit, measure))


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
    return f"{name} {_listed(parts)}." if parts else ""


def _no_win(found: Comparison | None, rest: Sequence[str], unit: Unit, cost: str) -> str:
    """The sentence where the gate was missed: the cost in quality, then what was had at that price."""
    subject = subject_of(found)
    said = f"No win: {subject} has {cost}, over the tolerance"
    if found is None:
        had = list(rest)
    elif found.low is None or found.high is None:
        had = [f"{_one_pair(found.ratio, unit)} in one pair of runs", *rest]
    elif outcome_of(found) == "no_difference":
        equal = f"no difference in speed was found ({_range(found.low, found.high)} times A's)"
        return f"{said}; at that price it {_listed(rest)}; {equal}." if rest else f"{said}; {equal}."
    else:
        had = [_winner(found, subject, unit), *rest]
    return f"{said}; at that price it {_listed(had)}." if had else f"{said}."


def _basis(found: Comparison | None, unit: Unit, measure: str) -> str:
    """What the sentence is based on, or what would give it a basis."""
    if found is None:
        return ""
    if found.low is None or found.high is None:
        return f"{measure} gives the interval."
    return f"{100 * found.confidence:.0f}% interval, {found.pairs} pairs of runs, by mean time per {_step(unit)}"


def _step(unit: Unit) -> str:
    return "token" if unit == "token" else "forward pass"


def _winner(found: Comparison, subject: str, unit: Unit) -> str:
    """How much faster the winner is, with the interval."""
    assert found.low is not None and found.high is not None
    ends = (found.ratio, found.low, found.high)
    ratio, low, high = ends if subject == "B" else (1 / ends[0], 1 / ends[2], 1 / ends[1])
    verb = "generates" if unit == "token" else "runs forward passes"
    return f"{verb} {_faster(ratio, low, high)}"


def _range(low: float, high: float) -> str:
    return " to ".join(f"{end:.2f}" if 0.1 <= end < 10 else three(end) for end in (low, high))


def _one_pair(ratio: float, unit: Unit) -> str:
    """What B took of the time of A (ratio: time of A / time of B) in one pair of runs."""
    change, step = 1 / ratio - 1, _step(unit)
    if abs(change) < ABOUT_SAME:
        return f"took the same time per {step} (within {ABOUT_SAME:.0%})"
    change_text = less_or_more(change)
    return f"took {change_text} the time per {step}" if change >= 1 else f"took {change_text} time per {step}"


def _faster(ratio: float, low: float, high: float) -> str:
    """A gain with its interval, as a factor or in percent, with as many digits as tell the bounds apart."""
    if ratio >= TIMES_FROM:
        first, middle, last = _bounds(low, ratio, high)
        return f"{middle}x faster ({first} to {last})"
    for places in (0, 1, 2):
        middle, first, last = (f"{100 * (value - 1):.{places}f}%" for value in (ratio, low, high))
        if first != last and float(first[:-1]) > 0:
            break
    return f"{middle} faster ({first} to {last})"


def _bounds(low: float, middle: float, high: float) -> list[str]:
    """Ratios with two significant digits, or with three where two do not tell the bounds apart."""
    ends = (low, middle, high)
    return [_two(value) for value in ends] if _two(low) != _two(high) else [three(value) for value in ends]


def _two(value: float) -> str:
    """A ratio from 1 on with two significant digits, and whole from 10 on."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"


def _bytes(pair: Bytes | None, subject: str, verb: str, what: str) -> str:
    change = pair.change(subject) if pair else 0.0
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


def _listed(parts: Sequence[str]) -> str:
    """ "a", "a and b", "a, b, and c"."""
    if len(parts) < 3:
        return " and ".join(parts)
    return f"{', '.join(parts[:-1])}, and {parts[-1]}"
