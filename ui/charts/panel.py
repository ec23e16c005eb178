"""A chart as a value: which column is drawn over what, in which unit.

Two readers share a declaration: the browser (`ui/js/charts.js`) draws it, tests read it with `data`. So a
claim such as "the sliding layers stop growing at the window" is tested on numbers, without a picture.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from backend import view
from backend.records import Unit

At = Literal["token", "second", "length"]
Scale = Literal["ms", "bytes"]


class Trace(NamedTuple):
    """One line for each arm.

    column     field of `view.LaneDelta`; when `predicted`, of the curve of `view.ArmHead` that `curve` names
    at         what stands below: the token's index, seconds since the arm's run began, or tokens in the cache
    first      index of the first value that is drawn (of an encoder's passes, which are all alike, 0)
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
    curve: Literal["predicted", "floor"] = "predicted"


class ForEncoder(NamedTuple):
    """A chart's words where forward passes are timed. `note`: why there is nothing to draw."""

    title: str
    x_title: str
    hover: str = ""
    note: str = ""


class Panel(NamedTuple):
    """One chart.

    title       "" means: the run's own label of what its memory series shows
    hover       heading of the hover box, with `%{x}` for the place
    from_zero   the vertical axis begins at 0
    min_span    least share of the largest value that the vertical axis covers, so that noise is not magnified
    marks       what may explain a value is shown at its token
    encoder     what is said instead where forward passes are timed; None: the same
    """

    key: str
    title: str
    x_title: str
    hover: str
    unit: Scale
    traces: tuple[Trace, ...]
    from_zero: bool = True
    min_span: float = 0.0
    marks: bool = False
    encoder: ForEncoder | None = None


class Series(NamedTuple):
    """One arm, from its first token on: what all pulls of a viewer add up to."""

    arm: str
    lane: view.LaneDelta
    prompt_tokens: int
    predicted: view.Curve | None
    unit: Unit = "token"
    floor: view.FloorCurve | None = None
    marks: Sequence[view.MarkPoint] = ()


class Spot(NamedTuple):
    """A place of one arm's line where something happened, one or several things at one token."""

    arm: str
    x: int
    y: float
    texts: list[str]


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
        Series(arm.name, lane, arm.prompt_tokens, arm.predicted, delta.head.unit, arm.floor, arm.marks)
        for arm, lane in zip(delta.head.arms, delta.lanes, strict=True)
    ]


def data(panel: Panel, arms: Sequence[Series]) -> list[Line]:
    """Every line of a panel, undecimated."""
    return [line for trace in panel.traces for arm in arms if (line := _line(trace, arm)) is not None]


def spots(panel: Panel, arms: Sequence[Series]) -> list[Spot]:
    """Where the panel's line bears marks: each stands on the value of its token, and none on the prefill."""
    if not panel.marks:
        return []
    (trace,) = (trace for trace in panel.traces if not trace.predicted)
    found: list[Spot] = []
    for arm in arms:
        first = trace.first if arm.unit == "token" else 0
        values: list[float] = getattr(arm.lane, trace.column)
        for token in dict.fromkeys(mark.token for mark in arm.marks):
            if first <= token < len(values):
                texts = [mark.text for mark in arm.marks if mark.token == token]
                found.append(Spot(arm.arm, token, values[token] * trace.scale, texts))
    return found


def _line(trace: Trace, arm: Series) -> Line | None:
    source: view.LaneDelta | view.Curve | view.FloorCurve = arm.lane
    if trace.predicted:
        curve = arm.floor if trace.curve == "floor" else arm.predicted
        if curve is None:
            return None
        source = curve
        x: Sequence[float] = curve.x
    elif trace.at == "second":
        x = arm.lane.st
    else:
        x = range(arm.lane.n) if trace.at == "token" else range(arm.prompt_tokens, arm.prompt_tokens + arm.lane.n)
    values: list[float] = getattr(source, trace.column)
    y = [value * trace.scale for value in values]
    first = trace.first if arm.unit == "token" and not trace.predicted else 0
    return Line(arm.arm, trace.kind, trace.predicted, list(x)[first:], y[first:])
