"""A chart as a value: which column is drawn over what, in which unit.

Two readers share a declaration: the browser (`ui/js/charts.js`) draws it, tests read it with `data`. So a
claim such as "the sliding layers stop growing at the window" is tested on numbers, without a picture.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from backend import view

At = Literal["token", "second", "length"]
Unit = Literal["ms", "bytes"]


class Trace(NamedTuple):
    """One line for each arm.

    column     field of `view.LaneDelta`; of `view.Curve` when `predicted`
    at         what stands below: the token's index, seconds since the arm's run began, or tokens in the cache
    first      index of the first value that is drawn
    scale      from the column's seconds or bytes to the panel's unit
    kind       layer kind, "" where there is none
    width      of the line, in pixels: kinds must be told apart without colour
    """

    column: str
    at: At
    first: int = 0
    scale: float = 1.0
    kind: str = ""
    width: float = 1.6
    predicted: bool = False


class Panel(NamedTuple):
    """One chart.

    title       "" means: the run's own label of what its memory series shows
    hover       heading of the hover box, with `%{x}` for the place
    from_zero   the vertical axis begins at 0
    min_span    least share of the largest value that the vertical axis covers, so that noise is not magnified
    """

    key: str
    title: str
    x_title: str
    hover: str
    unit: Unit
    traces: tuple[Trace, ...]
    from_zero: bool = True
    min_span: float = 0.0


class Series(NamedTuple):
    """One arm, from its first token on: what all pulls of a viewer add up to."""

    arm: str
    lane: view.LaneDelta
    prompt_tokens: int
    predicted: view.Curve | None


class Line(NamedTuple):
    """What is drawn of one trace and one arm, in the panel's unit (bytes stay bytes)."""

    arm: str
    kind: str
    predicted: bool
    x: list[float]
    y: list[float]


def series(delta: view.Delta) -> list[Series]:
    """The arms of a pull that began at cursor 0 and version 0."""
    if delta.head is None:
        raise ValueError("pull from version 0: the arms' names are in the head")
    return [
        Series(arm.name, lane, arm.prompt_tokens, arm.predicted)
        for arm, lane in zip(delta.head.arms, delta.lanes, strict=True)
    ]


def data(panel: Panel, arms: Sequence[Series]) -> list[Line]:
    """Every line of a panel, undecimated."""
    return [line for trace in panel.traces for arm in arms if (line := _line(trace, arm)) is not None]


def _line(trace: Trace, arm: Series) -> Line | None:
    source: view.LaneDelta | view.Curve = arm.lane
    if trace.predicted:
        if arm.predicted is None:
            return None
        source = arm.predicted
        x: Sequence[float] = source.x
    elif trace.at == "second":
        x = arm.lane.st
    else:
        x = range(arm.lane.n) if trace.at == "token" else range(arm.prompt_tokens, arm.prompt_tokens + arm.lane.n)
    values: list[float] = getattr(source, trace.column)
    y = [value * trace.scale for value in values]
    return Line(arm.arm, trace.kind, trace.predicted, list(x)[trace.first :], y[trace.first :])
