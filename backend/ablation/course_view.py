"""How far an ablation, a sweep or advice is, in words."""

import msgspec

from tokendyno.backend.ablation.course import Course, CourseState
from tokendyno.backend.ablation.journal import Heading
from tokendyno.backend.models import is_random
from tokendyno.backend.views.quality import RANDOM_WEIGHTS, TOLERANCES


class CourseView(msgspec.Struct, frozen=True):
    """What the page gets of each. `share`: of the runs, from 0 to 1; `doing`: the run in flight; `left`: time left;
    `again`: whether it can go on."""

    id: str
    state: CourseState
    sentence: str
    message: str
    share: float
    doing: str
    left: str
    again: bool


def course_view(course: Course) -> CourseView:
    left_s = course.left_s()
    return CourseView(
        course.id,
        course.state,
        _sentence(course),
        course.message,
        course.share,
        course.doing,
        f"about {_duration(left_s)} left" if left_s is not None else "",
        course.state in ("stopped", "failed") and not course.closed,
    )


def quality_note(heading: Heading) -> str:
    """What quality means in an ablation or a sweep, "" where no texts are read."""
    if not heading.positions:
        return ""
    return f"{RANDOM_WEIGHTS}." if is_random(heading.model) else f"Quality costs: {TOLERANCES}."


def _sentence(course: Course) -> str:
    count = course.count
    match course.state:
        case "running":
            return f"Measuring: {count}."
        case "done":
            return course.outcome
        case "stopped":
            return f"Stopped after {count}, which are kept. Go on measures the rest."
        case "failed":
            return f"Ended after {count}, which are kept."


def _duration(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 90 else f"{round(seconds / 60)} min"
