"""An ablation on the page: bars of a waterfall for latency, memory and quality, and what is to be said of each step."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from tokendyno.backend.ablation.course_view import CourseView, course_view, quality_note
from tokendyno.backend.ablation.headline import ablation_headline, change_title
from tokendyno.backend.ablation.kinds import Ablation
from tokendyno.backend.ablation.result import StepResult
from tokendyno.backend.ablation.steps import arm_text
from tokendyno.backend.optimizations import axis_title, defaults
from tokendyno.backend.units import bytes_text, seconds_text, three
from tokendyno.backend.views.pareto import Cost, Pareto, pareto
from tokendyno.backend.views.quality import ROUNDING_NATS, cost_remark

TITLES = {
    "stair": ("One after the other", "from arm A to arm B, in the order of the axes; each against the one before"),
    "alone": ("Each alone", "arm A and one choice, against arm A"),
    "without": ("All but one", "arm B without one choice, against arm B: what is lost without it"),
}

DIVERGENCE = "KL divergence from A"


class Bar(msgspec.Struct, frozen=True):
    """A value and where it came from: `begin` and `end` as shares of the axis, from 0 to 1.

    low, high  bootstrap interval of the end, likewise; None without one
    text       the change with its unit
    better     less of it; "": no change beyond its interval
    """

    begin: float
    end: float
    low: float | None
    high: float | None
    text: str
    interval: str
    better: str


class Row(msgspec.Struct, frozen=True):
    """One step: its title, a bar for each figure (None: not known yet), and remarks."""

    title: str
    bars: list[Bar | None]
    remarks: list[str]


class Group(msgspec.Struct, frozen=True):
    """The steps of one kind, the first row being where they start from."""

    title: str
    what: str
    rows: list[Row]


class WorthView(msgspec.Struct, frozen=True):
    """What the page gets. `headline`: what was found; `figures`: titles of the bars of a row; `note`: on what quality
    means here; `pareto`: every arm once."""

    course: CourseView
    headline: str
    note: str
    figures: list[str]
    groups: list[Group]
    pareto: Pareto | None


class _Figure(NamedTuple):
    """A figure of all steps: a value as (number, unit), its values, how much more each is than that of the step it is
    compared with (None for the base), the interval of that, and the largest change that is rounding."""

    title: str
    words: Callable[[float], tuple[str, str]]
    values: Sequence[float | None]
    mores: Sequence[float | None]
    intervals: Sequence[tuple[float, float] | None]
    rounding: float = 0.0


def worth_view(course: Ablation) -> WorthView:
    steps = course.results()
    figures = [
        _Figure(
            "Time per token",
            seconds_text,
            [step.latency_mean_s for step in steps],
            [step.latency_more_s for step in steps],
            [step.latency_interval_s for step in steps],
        ),
        _Figure(
            "Peak memory",
            bytes_text,
            [step.peak_memory_bytes for step in steps],
            [step.memory_more_bytes for step in steps],
            [step.memory_interval_bytes for step in steps],
        ),
        *([_quality(steps)] if course.heading.positions else []),
    ]
    groups = []
    for kind, (title, what) in TITLES.items():
        if kind not in course.heading.kinds:
            continue
        rows = [_start(kind, steps, figures)]
        rows += [_row(index, steps, figures, kind) for index, step in enumerate(steps) if step.kind == kind]
        if kind == "stair" and any(step.kind == "all" for step in steps):
            rows.append(_start("without", steps, figures))
        groups.append(Group(title, what, rows))
    return WorthView(
        course_view(course),
        ablation_headline(steps, course.heading.rounds),
        quality_note(course.heading),
        [figure.title for figure in figures],
        groups,
        _pareto(steps, figures),
    )


def _pareto(steps: Sequence[StepResult], figures: Sequence[_Figure]) -> Pareto | None:
    """Every arm once, by what it has in place of arm A's choices."""
    base, arms = steps[0].choices, dict[str, Cost]()
    for index, step in enumerate(steps):
        added = [change_title(f"{a}={c}") for a, c in step.choices.items() if base.get(a) != c]
        added += [change_title(f"{a}={defaults()[a]}") for a in base if a not in step.choices]
        title = "Arm A" if step.kind == "base" else "Arm B" if step.kind == "all" else ", ".join(added)
        latency_s, memory_bytes, *kl = (figure.values[index] for figure in figures)
        arms.setdefault(arm_text(step.choices), Cost(title, latency_s, memory_bytes, kl[0] if kl else None))
    return pareto(list(arms.values()), DIVERGENCE)


# --- figures --------------------------------------------------------------------------------------


def _quality(steps: Sequence[StepResult]) -> _Figure:
    """KL divergence from the base. Its interval is that of the value, so it is shifted to become that of the change."""
    values = [0.0 if step.kind == "base" else step.quality.kl_nats if step.quality else None for step in steps]
    mores, intervals = list[float | None](), list[tuple[float, float] | None]()
    for step, value in zip(steps, values, strict=True):
        there = values[step.against] if step.against is not None else None
        compared = value is not None and there is not None
        mores.append(value - there if value is not None and there is not None else None)
        ends = step.quality.kl_interval if step.quality else None
        intervals.append((ends[0] - there, ends[1] - there) if compared and ends and there is not None else None)
    return _Figure(DIVERGENCE, lambda nats: (three(nats), "nats"), values, mores, intervals, ROUNDING_NATS)


def _text(figure: _Figure, value: float, sign: bool) -> str:
    head = ("+" if value > 0 else "\u2212" if value < 0 else "\u00b1") if sign else ""
    return f"{head}{' '.join(figure.words(abs(value)))}"


def _start(kind: str, steps: Sequence[StepResult], figures: Sequence[_Figure]) -> Row:
    """Arm A, or arm B for what is left out of it."""
    index = next((i for i, step in enumerate(steps) if step.kind == ("all" if kind == "without" else "base")), 0)
    bars = [_bar(figure, index, False) for figure in figures]
    return Row("Arm B" if kind == "without" else "Arm A", bars, _remarks(steps[index]))


def _row(index: int, steps: Sequence[StepResult], figures: Sequence[_Figure], kind: str) -> Row:
    step = steps[index]
    name = change_title(step.change)
    gains = step.quality is None or step.quality.gains
    bars = [_bar(figure, index, True, gains or figure.title == DIVERGENCE, step.equal) for figure in figures]
    return Row(f"without {name}" if kind == "without" else name, bars, _remarks(step))


def _bar(figure: _Figure, index: int, change: bool, gains: bool = True, equal: bool = False) -> Bar | None:
    """The bar of a step, on an axis from 0 to 15% over the largest value of the figure; None where it is not known.
    `change`: of the change, else of the whole value; `gains`: less of it may count as better; `equal`: both arms have
    the same plan, so that neither is better."""
    value, more = figure.values[index], figure.mores[index]
    if value is None or (change and more is None):
        return None
    most = max([figure.rounding, *(v for v in figure.values if v is not None)]) * 1.15 or 1.0
    if not change or more is None:
        return Bar(0.0, value / most, None, None, _text(figure, value, False), "", "")
    begin, interval = value - more, figure.intervals[index]
    low, high = (begin + interval[0], begin + interval[1]) if interval else (None, None)
    better = "yes" if interval and interval[1] < 0 and gains else "no" if interval and interval[0] > 0 else ""
    better = "" if equal or abs(more) <= figure.rounding else better
    return Bar(
        _share(begin, most),
        _share(value, most),
        None if low is None else _share(low, most),
        None if high is None else _share(high, most),
        _text(figure, more, True),
        f"{_text(figure, interval[0], True)} to {_text(figure, interval[1], True)}" if interval else "",
        better,
    )


def _share(value: float, most: float) -> float:
    return min(1.0, max(0.0, value / most))


# --- words ----------------------------------------------------------------------------------------


def _remarks(step: StepResult) -> list[str]:
    """Why it cannot run; what else changed; what the ledger does not show as planned; another text; a cost."""
    if step.refused:
        return [f"cannot run: {step.refused}"]
    remarks = ["changes nothing of the plan: what differs is noise"] if step.equal else []
    remarks += [
        f"{axis_title(a)} went from {there} to {here} with it" for a, (there, here) in step.also_changed.items()
    ]
    remarks += [f"{axis_title(a)} is not as planned ({s.replace('_', ' ')})" for a, s in step.doubtful.items()]
    if step.same_text is False:
        remarks.append("writes another text than arm A")
    if step.quality is not None and (cost := cost_remark(step.quality.cost, step.quality.finer)):
        remarks.append(cost)
    return remarks
