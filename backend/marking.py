"""What marks say to people: the words beside a shape on the latency chart."""

from collections.abc import Sequence

from backend.messages import Mark
from backend.view import MarkPoint, seconds_text


def mark_points(marks: Sequence[Mark]) -> list[MarkPoint]:
    """The marks of one arm in order of their tokens, each with its length in words where it is known."""
    return [MarkPoint(m.kind, m.token, _words(m)) for m in sorted(marks, key=lambda m: (m.token, m.t_s))]


def _words(mark: Mark) -> str:
    return f"{mark.text} ({' '.join(seconds_text(mark.seconds))})" if mark.seconds else mark.text
