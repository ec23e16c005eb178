"""The phases of a run: each with its title and what to expect of it, and the bar of the whole run.

The bar has the parts of a run in their order, what each took or may take, and when it should be over. What is expected
comes from earlier runs here with the same arms and lengths (`runs/earlier.py`). Without one, the pairs of runs have an
end that the first of them tells.
"""

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from tokendyno.backend.config import LEAST_PAIRS
from tokendyno.backend.messages import Amount, PhaseName
from tokendyno.backend.runs.arm_series import ArmSeries, Phase
from tokendyno.backend.runs.quality import Gate
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.units import bytes_text, plural, three

PHASE_TITLES: dict[PhaseName, str] = {
    "start": "start",
    "import": "imports",
    "download": "download",
    "load": "load",
    "quantize": "quantize",
    "compile": "compile",
    "warmup": "warm-up",
    "run": "run",
    "prove": "verify",
    "quality": "read texts",
}

PartName = Literal["ready", "pairs", "proof", "quality"]

_PARTS: dict[PhaseName, PartName] = {"run": "pairs", "prove": "proof", "quality": "quality"}
"""The part that a phase belongs to; all others belong to "ready"."""

_ENDED = {"done": "Done in", "cancelled": "Stopped after", "failed": "Failed after", "interrupted": "Interrupted after"}


class PhaseStep(msgspec.Struct, frozen=True):
    """One phase of an arm, with its title. `begin_s`: seconds since the run was created. `expected_s`: how long it took
    the last time, for the bar."""

    name: PhaseName
    title: str
    state: str
    begin_s: float
    seconds: float
    fraction: float | None = None
    note: str = ""
    wait: str = ""
    expected_s: float | None = None


class Part(msgspec.Struct, frozen=True):
    """A part of a run. `expected_s`: what it should take as a whole; None where nothing tells."""

    name: PartName
    text: str
    state: Literal["waiting", "now", "done"]
    spent_s: float
    expected_s: float | None = None


class PhaseBar(msgspec.Struct, frozen=True):
    """A run from its first process to its last text. `label`: how long it took, "" while it is under way. `left_s`:
    until it should be over; `most_s`: of its pairs, at most; None where nothing tells."""

    label: str
    parts: list[Part]
    spent_s: float
    left_s: float | None = None
    most_s: float | None = None
    rule: str = ""


def phase_bar(run: Snapshot, now_s: float, gate: Gate | None) -> PhaseBar | None:
    """The bar of a run; None where it ended before it began. `now_s`: seconds since it was created."""
    phases = [(name, phase) for name, arm in run.arms.items() for phase in arm.phases.values()]
    if not phases and run.ended:
        return None
    newest = max(phases, key=lambda of_arm: of_arm[1].begin_s, default=None)
    first_s = [phase.begin_s for arm in run.arms.values() for phase in arm.first_phases.values()]
    begin_s = max(0.0, min([*first_s, *(phase.begin_s for _, phase in phases)], default=now_s))
    ends_s = [phase.begin_s + phase.seconds for _, phase in phases]
    end_s = max(ends_s) if run.ended else now_s
    current: PartName = "ready"
    if newest is not None and all("run" in arm.first_phases or arm.scores for arm in run.arms.values()):
        current = _PARTS.get(newest[1].name, "pairs")
    spent = _spent_s(run, now_s, end_s)
    expected = _expected_s(run, spent, now_s)
    names = [name for name in spent if spent[name] or name == current or _is_to_come(run, name, gate, expected)]
    if run.ended:
        names = [name for name in names if spent[name]]
    parts = []
    for name in names:
        # a proof or a reading that was stopped gave nothing; pairs are kept as they are
        left_off = name == current and name in ("proof", "quality") and run.status != "done"
        over = (run.ended and not left_off) or list(spent).index(name) < list(spent).index(current)
        state: Literal["waiting", "now", "done"] = (
            "done" if over else "now" if name == current and newest and not run.ended else "waiting"
        )
        text = _text(run, name, state, spent[name], newest if state == "now" else None)
        parts.append(Part(name, text, state, spent[name], expected.get(name)))
    if run.ended:
        return PhaseBar(f"{_ENDED[run.status]} {duration(end_s - begin_s)}", parts, end_s - begin_s, rule=_rule(run))
    left = [
        None if part.expected_s is None else max(0.0, part.expected_s - part.spent_s)
        for part in parts
        if part.state != "done"
    ]
    left_s = None if None in left else sum(seconds for seconds in left if seconds is not None)
    most_s = _most_s(run, spent["pairs"]) if current == "pairs" else None
    return PhaseBar("", parts, now_s - begin_s, left_s, most_s, _rule(run))


# --- seconds --------------------------------------------------------------------------------------


def _spent_s(run: Snapshot, now_s: float, end_s: float) -> dict[PartName, float]:
    spent: dict[PartName, float] = {"ready": 0.0, "pairs": 0.0, "proof": 0.0, "quality": 0.0}
    reading_from_s = 0.0
    for arm in run.arms.values():
        for phase in arm.first_phases.values():
            if phase.name not in _PARTS:
                spent["ready"] += _took_s(run, arm, phase, now_s)
        spent["pairs"] += sum(finish.wall_s for finish in arm.finishes.values())
        if (running := arm.phases.get("run")) is not None and _live(run, arm, running):
            spent["pairs"] += _took_s(run, arm, running, now_s)
        if (proving := arm.phases.get("prove")) is not None:
            spent["proof"] += _took_s(run, arm, proving, now_s)
        ends_s = (phase.begin_s + phase.seconds for phase in arm.phases.values() if phase.name != "quality")
        reading_from_s = max([reading_from_s, *ends_s])
    if any("quality" in arm.phases for arm in run.arms.values()):
        spent["quality"] = max(0.0, end_s - reading_from_s)
    return spent


def _took_s(run: Snapshot, arm: ArmSeries, phase: Phase, now_s: float) -> float:
    return max(phase.seconds, now_s - phase.begin_s) if _live(run, arm, phase) else phase.seconds


def _live(run: Snapshot, arm: ArmSeries, phase: Phase) -> bool:
    """Whether it is under way. A phase that never ends, such as a remark before any worker, is over with the next."""
    newest = max(arm.phases.values(), key=lambda phase: phase.begin_s)
    return not run.ended and phase.state in ("begin", "step") and newest.name == phase.name


def _expected_s(run: Snapshot, spent: dict[PartName, float], now_s: float) -> dict[PartName, float]:
    """What each part should take as a whole, by earlier runs; without parts of which none tells."""
    expected: dict[PartName, float] = {}
    arms = run.arms.values()
    if all(arm.expected_s for arm in arms):
        expected["ready"] = spent["ready"] + sum(left for arm in arms for left in _left_s(run, arm, now_s))
    if all(arm.expected_whole_s for arm in arms):
        for phase, part in _PARTS.items():
            expected[part] = sum(arm.expected_whole_s.get(phase, 0.0) for arm in arms)
    return expected


def _left_s(run: Snapshot, arm: ArmSeries, now_s: float) -> Iterator[float]:
    """Seconds left of each phase before the first run of an arm. A phase that was passed over was not needed."""
    order = list(PHASE_TITLES)
    reached = max((order.index(name) for name in arm.first_phases), default=-1)
    for name, seconds in arm.expected_s.items():
        phase = arm.first_phases.get(name)
        if phase is not None and _live(run, arm, phase):
            yield max(0.0, seconds - (now_s - phase.begin_s))
        elif phase is None and order.index(name) > reached:
            yield seconds


def _most_s(run: Snapshot, spent_s: float) -> float | None:
    request, done = run.request, _pairs(run)
    if not done or not request.until_s:
        return None
    pair_s = sum(arm.finishes[done - 1].wall_s for arm in run.arms.values())
    by_time = max(request.until_s, LEAST_PAIRS * pair_s)
    return max(0.0, min(by_time, max(LEAST_PAIRS, request.workload.repeats) * pair_s) - spent_s)


def _pairs(run: Snapshot) -> int:
    """Repeats that every arm completed."""
    return min(sum(arm.completed(repeat) for repeat in arm.finishes) for arm in run.arms.values())


# --- words ----------------------------------------------------------------------------------------


def _is_to_come(run: Snapshot, name: PartName, gate: Gate | None, expected: dict[PartName, float]) -> bool:
    """Whether a run will have a part, as far as that is known."""
    if name == "proof":
        return run.request.proof and run.request.until_s > 0
    if name == "quality":
        needless = "pairs" in expected and not expected.get("quality")  # it was, in the run before
        unread = (
            gate is not None and gate.state == "unread" and run.request.until_s > 0 and run.request.reading is not None
        )
        return run.request.quality is not None or (unread and not needless)
    return name == "ready" or run.request.quality is None


def _text(run: Snapshot, name: PartName, state: str, spent_s: float, under_way: tuple[str, Phase] | None) -> str:
    most, compares = run.request.workload.repeats, len(run.arms) == 2
    word, does = "pair" if compares else "run", "writes" if run.request.traffic is None else "serves"
    if under_way is not None:
        arm, phase = under_way
        if name == "pairs":
            limit = f"of up to {most}" if run.request.until_s else f"of {most}"
            return f"{word} {run.repeat + 1} {limit}{f', {arm} {does}' if compares else ''}"
        if phase.name == "run":
            return f"{arm} {does}"
        note = f", {phase.note}" if phase.note and phase.name in ("compile", "warmup") else ""
        return f"{arm}: {PHASE_TITLES[phase.name]}{note}"
    if name == "pairs":
        if state == "waiting":
            return f"{'up to ' if run.request.until_s else ''}{plural(most, word)}"
        done, comparison, decided = _pairs(run), run.comparison, ""
        if comparison is not None and run.request.until_s:
            decided = ", decided" if comparison.decided else ", not decided"
        return f"{plural(done, word)}{decided}, {duration(spent_s)}"
    if name == "ready":
        compiles = any("compile" in {**arm.expected_s, **arm.first_phases} for arm in run.arms.values())
        return f"start, load, {'compile, ' if compiles else ''}warm-up"
    return name


def _rule(run: Snapshot) -> str:
    request = run.request
    if not request.until_s or len(run.arms) != 2:
        return ""
    return f"rule: until decided, at most {plural(request.workload.repeats, 'pair')} or {round(request.until_s, 1):g} s"


# --- what to expect of a phase that is under way ---------------------------------------------------

UNKNOWN = "no earlier run tells how long"

WORTH_A_WORD_S = 1.0
"""No wait is mentioned for a phase that took less the last time."""


def phase_step(phase: Phase, expected_s: Mapping[PhaseName, float]) -> PhaseStep:
    return PhaseStep(
        phase.name,
        PHASE_TITLES[phase.name],
        phase.state,
        phase.begin_s,
        phase.seconds,
        phase.fraction,
        phase.note,
        wait_text(phase, expected_s),
        expected_s.get(phase.name),
    )


def wait_text(phase: Phase, expected_s: Mapping[PhaseName, float]) -> str:
    """The words after the seconds of a phase, "" for none; a finished download keeps its size."""
    over = phase.state in ("end", "broken")
    parts = [_amount(phase.amount, over)] if phase.amount is not None else []
    seconds = expected_s.get(phase.name)
    if not over:
        if seconds is not None and seconds >= WORTH_A_WORD_S:
            parts.append(f"about {duration(seconds)} expected")
        elif seconds is None and phase.name == "compile":
            parts.append(UNKNOWN)
    return ", ".join(part for part in parts if part)


def start_cost_text(seconds: float) -> str:
    if abs(seconds) < WORTH_A_WORD_S:
        return "+0 s to start here"
    sign = "+" if seconds > 0 else "\u2212"
    return f"{sign}{duration(abs(seconds))} to start here"


def _amount(amount: Amount, over: bool) -> str:
    """ "1.20 of 14.9 GiB, 85.0 MiB/s, 2 min 45 s left"; what is not known is left out."""
    done, unit = bytes_text(amount.done_bytes)
    if over:
        return f"{done} {unit}" if amount.done_bytes else ""
    if amount.total_bytes:
        total, total_unit = bytes_text(amount.total_bytes)
        parts = [f"{done}{'' if unit == total_unit else f' {unit}'} of {total} {total_unit}"]
    else:
        parts = [f"{done} {unit}"]
    rate = amount.bytes_per_s
    if rate is not None:
        parts.append(f"{' '.join(bytes_text(rate))}/s")
        left_bytes = (amount.total_bytes or 0) - amount.done_bytes
        if rate and left_bytes > 0:
            parts.append(f"{duration(left_bytes / rate)} left")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Seconds in the units that one waits in: "0.42 s", "8.1 s", "61 s", "2 min 45 s", "1 h 20 min"."""
    if seconds < 10:
        return f"{three(seconds) if seconds < 1 else f'{seconds:.1f}'} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"
