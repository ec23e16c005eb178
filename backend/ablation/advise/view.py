"""Advice on the page: cards of the winners, the front of time and memory, what was ruled out and what was not tried."""

from collections.abc import Sequence

import msgspec

from tokendyno.backend.ablation.advise.predicted import PredictedArm
from tokendyno.backend.ablation.advise.result import (
    LABELS,
    AdviceDocument,
    Label,
    MeasuredArm,
    Winner,
    counts_text,
    size_text,
    time_text,
)
from tokendyno.backend.ablation.advise.space import Pruned
from tokendyno.backend.ablation.course_view import CourseView, course_view
from tokendyno.backend.ablation.kinds import AdviceCourse
from tokendyno.backend.quality.recipes import recipes
from tokendyno.backend.units import bytes_text, seconds_text, three
from tokendyno.backend.views.pareto import Cost, Pareto, pareto


class Figure(msgspec.Struct, frozen=True):
    """A figure of a card: `value` and what it is."""

    value: str
    what: str


class AdviceCard(msgspec.Struct, frozen=True):
    """A winner. `run`: id of the run that measured it again; `serve_note`: why its command is not transformers'."""

    label: Label
    tag: str
    title: str
    figures: list[Figure]
    gets: list[str]
    script: str
    serve: str
    serve_note: str
    certificate: list[str]
    run: str


class Reasons(msgspec.Struct, frozen=True):
    """Arms by the reason why they were not measured."""

    title: str
    lines: list[str]


class AdviceView(msgspec.Struct, frozen=True):
    """What the page gets. `counts`: arms ruled out, measured and not tried, in words."""

    course: CourseView
    headline: str
    counts: str
    cards: list[AdviceCard]
    pareto: Pareto | None
    table: list[list[str]]
    left: list[Reasons]


COLUMNS = ["Measured", "Time a token", "First token", "Peak memory", "Its bound", "Quality", ""]
MOST_REASONS = 8


def advice_view(course: AdviceCourse) -> AdviceView:
    """Advice as it is now."""
    found = course.document()
    return AdviceView(
        course_view(course),
        found.headline if found.measured else "",
        counts_text(found),
        [_card(one) for one in found.winners],
        _front(found.measured),
        [COLUMNS, *(_row(arm) for arm in found.measured)] if found.measured else [],
        [Reasons("Ruled out without a run", _lines(found.pruned)), Reasons("Not tried", _lines(found.not_tried))],
    )


PREDICTED_COLUMNS = ["Predicted", "Least time a token", "Memory", "Recorded", ""]


def predicted_view(view_id: str, found: AdviceDocument) -> AdviceView:
    """What is to be expected on a GPU that is not here."""
    rows = [
        [
            one.title,
            " ".join(seconds_text(one.bound_s)) if one.bound_s else "",
            " ".join(bytes_text(one.memory_bytes)),
            " ".join(seconds_text(one.recorded_s)) if one.recorded_s else "",
            _format(one),
        ]
        for one in found.predicted
    ]
    return AdviceView(
        CourseView(view_id, "done", "By bounds and predicted memory: nothing was measured.", "", 1.0, "", "", False),
        found.headline,
        "",
        [],
        None,
        [PREDICTED_COLUMNS, *rows] if rows else [],
        [Reasons("Ruled out", _lines(found.pruned))],
    )


def _format(one: PredictedArm) -> str:
    if not one.format:
        return ""
    quality = "quality unknown" if one.kl_nats is None else f"KL {three(one.kl_nats)} on {recipes().model}"
    return f"changes number formats ({quality}): {one.format}"


def _front(measured: Sequence[MeasuredArm]) -> Pareto | None:
    """Every arm by time and memory; the front is of those that may win."""
    known = [arm for arm in measured if arm.latency_mean_s is not None]
    chart = pareto([Cost(arm.title, arm.latency_mean_s, arm.peak_memory_bytes) for arm in known], "")
    if chart is None:
        return None
    points = zip(chart.points, known, strict=True)
    return Pareto("", [msgspec.structs.replace(point, front=arm.pareto) for point, arm in points])


def _card(one: Winner) -> AdviceCard:
    arm = one.arm
    figures = [Figure(time_text(arm), "a token"), Figure(size_text(arm), "at the peak")]
    if arm.start_s is not None:
        figures.append(Figure(" ".join(seconds_text(arm.start_s)), "from its process to its first token"))
    if one.ratio is not None:
        bounds = f" ({three(one.low)} to {three(one.high)})" if one.low is not None and one.high is not None else ""
        figures.append(Figure(f"{three(one.ratio)}\u00d7", f"as fast as it comes{bounds}"))
    if arm.bound_s and arm.latency_mean_s:
        figures.append(Figure(f"{three(arm.latency_mean_s / arm.bound_s)}\u00d7", "its roofline bound"))
    tag = LABELS[one.label]
    return AdviceCard(
        one.label, tag, arm.title, figures, one.gets, one.script, one.serve, one.serve_note, one.certificate, one.run
    )


def _row(arm: MeasuredArm) -> list[str]:
    bound = three(arm.latency_mean_s / arm.bound_s) + "\u00d7" if arm.bound_s and arm.latency_mean_s else ""
    return [
        arm.title,
        time_text(arm),
        " ".join(seconds_text(arm.ttft_s)) if arm.ttft_s else "",
        size_text(arm),
        bound,
        f"KL {three(arm.quality.kl_nats)}" if arm.quality else "",
        arm.barred,
    ]


def _lines(groups: list[Pruned]) -> list[str]:
    shown = [f"{one.count:,}: {one.why} For example {one.arms[0]}." for one in groups[:MOST_REASONS]]
    rest = sum(one.count for one in groups[MOST_REASONS:])
    return [*shown, *([f"{rest:,} for other reasons."] if rest else [])]
