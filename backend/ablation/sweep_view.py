"""A sweep on the page: lines with intervals, a heat map where two things vary, time against memory, and a table."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from tokendyno.backend.ablation.course_view import CourseView, course_view, quality_note
from tokendyno.backend.ablation.headline import rate_text, sweep_headline
from tokendyno.backend.ablation.kinds import Sweep
from tokendyno.backend.ablation.sweep import SIZES, PointResult, settings_title, title_of, value_title
from tokendyno.backend.optimizations import axis_title, titles_text
from tokendyno.backend.traffic.presets import traffic_preset
from tokendyno.backend.units import bytes_text, interval_text, seconds_text, three
from tokendyno.backend.views.pareto import Cost, Pareto, pareto
from tokendyno.backend.views.quality import cost_remark


class Line(msgspec.Struct, frozen=True):
    """One line: a value at each place of the horizontal axis; None where nothing is known. `low`, `high`: 95%
    interval."""

    title: str
    values: list[float | None]
    low: list[float | None]
    high: list[float | None]
    texts: list[str]


class LineChart(msgspec.Struct, frozen=True):
    """A figure over what varies first, a line for each combination of the rest."""

    title: str
    unit: str
    lines: list[Line]


class HeatMap(msgspec.Struct, frozen=True):
    """A figure where two things vary: a row for each value of the one, a column for each of the other."""

    title: str
    rows: list[str]
    columns: list[str]
    values: list[list[float | None]]
    texts: list[list[str]]


class SweepView(msgspec.Struct, frozen=True):
    """What the page gets.

    note         on what quality means here, and which requests were served
    arm          the arm that is swept, by its titles; "" for every default
    over         what is varied, with its values as they are typed
    horizontal   what the lines run over: its title and values; `numbers`: whether these are lengths
    across, down what the columns and rows of heat maps are
    """

    course: CourseView
    headline: str
    note: str
    arm: str
    over: list[tuple[str, str]]
    horizontal: str
    places: list[str]
    numbers: bool
    charts: list[LineChart]
    across: str
    down: str
    heats: list[HeatMap]
    pareto: Pareto | None
    table: list[list[str]]


class _Figure(NamedTuple):
    """A figure of a point. `value`, `low`, `high`: names of fields of `PointResult`; `scale`: factor to the unit of the
    chart; `words`: a value as (number, unit)."""

    title: str
    unit: str
    scale: float
    value: str
    low: str
    high: str
    words: Callable[[float], tuple[str, str]]

    def drawn(self, name: str, point: PointResult) -> float | None:
        """One of its three fields in the unit of the chart; None where it is not known."""
        value: float | None = getattr(point, name)
        return None if value is None else value * self.scale


def sweep_view(course: Sweep) -> SweepView:
    results = course.results()
    kls = _divergences(course, results)
    over = {name: list(values) for name, values in course.over.items()}
    first = first_of(over)
    two = [*over] if len(over) == 2 else []
    figures = (_RATE, *(figure for figure in _FIGURES if figure is not _RATE)) if course.heading.traffic else _FIGURES
    return SweepView(
        course=course_view(course),
        headline=sweep_headline(results, course.heading.rounds),
        note=_note(course),
        arm=titles_text(course.heading.base) if course.heading.base else "",
        over=[(name, ", ".join(values)) for name, values in over.items()],
        horizontal=title_of(first),
        places=[value_title(first, value) for value in over[first]],
        numbers=first in SIZES,
        charts=[_chart(figure, results, over) for figure in figures],
        across=title_of(two[1]) if two else "",
        down=title_of(two[0]) if two else "",
        heats=[_heat(figure, results, two, over) for figure in (figures[0], _MEMORY)] if two else [],
        pareto=_pareto(course, results, kls),
        table=sweep_table(results, over, kls if course.heading.positions else None),
    )


def _note(course: Sweep) -> str:
    if not course.heading.traffic:
        return quality_note(course.heading)
    return (
        f"{traffic_preset(course.heading.traffic).summary} What varies takes the place of that; tokens are useful ones."
    )


def _named(point: PointResult, names: Sequence[str]) -> str:
    return settings_title({name: point.settings[name] for name in names})


# --- figures --------------------------------------------------------------------------------------


_TIME = _Figure("Time per token", "ms", 1e3, "latency_mean_s", "latency_low_s", "latency_high_s", seconds_text)
_MEMORY = _Figure(
    "Peak memory", "MiB", 2**-20, "peak_memory_bytes", "peak_memory_low_bytes", "peak_memory_bytes", bytes_text
)
_KV = _Figure("KV cache", "MiB", 2**-20, "kv_bytes", "kv_bytes", "kv_bytes", bytes_text)
_RATE = _Figure(
    "Tokens per second, all sequences", "tok/s", 1.0, "tokens_per_s", "tokens_per_s_low", "tokens_per_s_high", rate_text
)
_FIGURES = (
    _TIME,
    _RATE,
    _Figure("Time to first token", "ms", 1e3, "ttft_s", "ttft_low_s", "ttft_high_s", seconds_text),
    _MEMORY,
)


def first_of(over: Mapping[str, Sequence[str]]) -> str:
    """What the lines run over: the first size, else what varies first."""
    return next((name for name in over if name in SIZES), next(iter(over)))


def chart_of(value: str, results: Sequence[PointResult], over: Mapping[str, Sequence[str]]) -> LineChart:
    """One chart of a sweep. `value`: the figure, as a field of `PointResult`."""
    return _chart(next(figure for figure in (*_FIGURES, _KV) if figure.value == value), results, over)


def _chart(figure: _Figure, results: Sequence[PointResult], over: Mapping[str, Sequence[str]]) -> LineChart:
    lines, first = [], first_of(over)
    others = [name for name in over if name != first]
    combinations = dict.fromkeys(tuple(point.settings[name] for name in others) for point in results)
    for chosen in combinations:
        by_place = {p.settings[first]: p for p in results if tuple(p.settings[name] for name in others) == chosen}
        points = [by_place[place] for place in over[first]]
        values, lows, highs = (
            [figure.drawn(name, p) for p in points] for name in (figure.value, figure.low, figure.high)
        )
        lines.append(Line(_named(points[0], others), values, lows, highs, [_text(figure, p) for p in points]))
    return LineChart(figure.title, figure.unit, lines)


def _heat(figure: _Figure, results: Sequence[PointResult], two: Sequence[str], over: dict[str, list[str]]) -> HeatMap:
    at = {(p.settings[two[0]], p.settings[two[1]]): p for p in results}
    grid = [[at[down, across] for across in over[two[1]]] for down in over[two[0]]]
    rows, columns = ([value_title(name, value) for value in over[name]] for name in two)
    return HeatMap(
        figure.title,
        rows,
        columns,
        [[figure.drawn(figure.value, p) for p in row] for row in grid],
        [[_text(figure, p, interval=False) for p in row] for row in grid],
    )


def _text(figure: _Figure, point: PointResult, interval: bool = True) -> str:
    value, low, high = (getattr(point, name) for name in (figure.value, figure.low, figure.high))
    if value is None:
        return "refused" if point.refused else "not measured"
    return interval_text(figure.words, value, low if interval else None, high, point.both.get(figure.value, ()))


def _pareto(course: Sweep, results: Sequence[PointResult], kls: Sequence[float | None]) -> Pareto | None:
    """Points compete with those of the same sizes; None where only sizes vary."""
    if all(name in SIZES for name in course.over):
        return None
    sizes = [name for name in course.over if name in SIZES]
    costs = [
        Cost(_named(p, [*course.over]), p.latency_mean_s, p.peak_memory_bytes, kl, _named(p, sizes))
        for p, kl in zip(results, kls, strict=True)
    ]
    return pareto(costs, "KL divergence")


def _divergences(course: Sweep, results: Sequence[PointResult]) -> list[float | None]:
    """Of each point, nats of KL divergence from the choices that the others are compared with: 0 for those; None where
    nothing was read."""
    reference = course.points[0].arm
    read = course.heading.positions > 0
    return [
        result.quality.kl_nats if result.quality is not None else 0.0 if read and point.arm == reference else None
        for point, result in zip(course.every, results, strict=True)
    ]


# --- the table ------------------------------------------------------------------------------------

HEAD = ("Time per token", "Tokens/s", "First token", "Memory")
UNKNOWN = "\u2013"


def sweep_table(
    points: Sequence[PointResult], over: Mapping[str, Sequence[str]], kls: Sequence[float | None] | None
) -> list[list[str]]:
    """Titles, then a row for each point: its settings, figures and remark. `kls`: nats of each; None: nothing was
    read."""
    rows = [[*map(title_of, over), *HEAD, *([] if kls is None else ["KL divergence"]), ""]]
    for number, point in enumerate(points):
        cells = [UNKNOWN if point.refused else _text(figure, point) for figure in _FIGURES]
        if kls is not None:
            kl = kls[number]
            cells.append(UNKNOWN if kl is None else f"{three(kl)} nats")
        rows.append([*(value_title(name, point.settings[name]) for name in over), *cells, _remark(point)])
    return rows


def _remark(point: PointResult) -> str:
    remarks = [f"{axis_title(a)} is not as planned ({s.replace('_', ' ')})" for a, s in point.doubtful.items()]
    if point.quality is not None and (cost := cost_remark(point.quality.cost, point.quality.finer)):
        remarks.append(cost)
    return point.refused or "; ".join(remarks)
