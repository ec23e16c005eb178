"""Advice on the page: cards of the winners, the front of time and memory, what was ruled out and what was not tried."""

import msgspec

from tokendyno.backend.ablation.advise.predicted import PredictedArm
from tokendyno.backend.ablation.advise.result import LABELS, AdviceDocument, Label, MeasuredArm, Winner
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


COLUMNS = ["Measured", "Time a token", "First token", "Peak memory", "Times its bound", "Quality", ""]
MOST_REASONS = 8


def advice_view(course: AdviceCourse) -> AdviceView:
    document = course.document()
    timed = [arm for arm in document.measured if arm.latency_mean_s is not None]
    chart = pareto([Cost(arm.title, arm.latency_mean_s, arm.peak_memory_bytes) for arm in timed], "")
    if chart is not None:  # every arm, where the front is of those that may win
        points = zip(chart.points, timed, strict=True)
        chart = Pareto("", [msgspec.structs.replace(point, front=arm.pareto) for point, arm in points])
    return AdviceView(
        course_view(course),
        document.headline if document.measured else "",
        document.counts,
        [_card(winner, document.complete) for winner in document.winners],
        chart,
        [COLUMNS, *(measured_row(arm) for arm in document.measured)] if document.measured else [],
        [
            Reasons("Ruled out without a run", reasons(document.pruned)),
            Reasons("Not tried", reasons(document.not_tried)),
        ],
    )


def measured_row(arm: MeasuredArm) -> list[str]:
    """An arm in the order of `COLUMNS`; "" where nothing is known."""
    first = " ".join(seconds_text(arm.ttft_s)) if arm.ttft_s else ""
    quality = f"KL {three(arm.quality.kl_nats)}" if arm.quality else ""
    return [arm.title, arm.time, first, arm.size, arm.over_bound, quality, arm.barred]


PREDICTED_COLUMNS = ["Predicted", "Least time a token", "Memory", "Recorded", ""]


def predicted_view(view_id: str, document: AdviceDocument) -> AdviceView:
    """What is to be expected on a GPU that is not here."""
    script = f" For its script: {document.command}" if document.command else ""
    course = CourseView(
        view_id, "done", f"By bounds and predicted memory: nothing was measured.{script}", "", 1.0, "", "", False
    )
    rows = [predicted_row(arm) for arm in document.predicted]
    table = [PREDICTED_COLUMNS, *rows] if rows else []
    return AdviceView(course, document.headline, "", [], None, table, [Reasons("Ruled out", reasons(document.pruned))])


def predicted_row(arm: PredictedArm) -> list[str]:
    """An arm in the order of `PREDICTED_COLUMNS`; "" where nothing is known."""
    bound, recorded = (" ".join(seconds_text(value)) if value else "" for value in (arm.bound_s, arm.recorded_s))
    quality = "quality unknown" if arm.kl_nats is None else f"KL {three(arm.kl_nats)} on {recipes().model}"
    formats = f"changes number formats ({quality}): {arm.format}" if arm.format else ""
    return [arm.title, bound, " ".join(bytes_text(arm.memory_bytes)), recorded, formats]


def _card(winner: Winner, complete: bool) -> AdviceCard:
    return AdviceCard(
        winner.label,
        LABELS[winner.label] if complete else f"{LABELS[winner.label]}, so far",
        winner.arm.title,
        [Figure(*figure) for figure in winner.figures],
        winner.gets,
        winner.script,
        winner.serve,
        winner.serve_note,
        winner.certificate,
        winner.run,
    )


def reasons(groups: list[Pruned]) -> list[str]:
    """Why arms were not measured, those of most arms first, so that the counts add up to all of them."""
    shown = [f"{group.count:,}: {group.why} For example {group.arms[0]}." for group in groups[:MOST_REASONS]]
    rest = sum(group.count for group in groups[MOST_REASONS:])
    return [*shown, *([f"{rest:,} for other reasons."] if rest else [])]
