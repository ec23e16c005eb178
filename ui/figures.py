"""Results of the library as Plotly figures."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

COLORS = ("#4269d0", "#ff725c", "#3ca951", "#a463f2", "#9c6b4e")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


def latency(arms: Mapping[str, Sequence[float]], title: str) -> go.Figure:
    """Seconds of each step, by arm, without the time to first token where more follow."""
    figure = _figure(title, "token", "ms")
    for place, (name, steps_s) in enumerate(arms.items()):
        first = 1 if len(steps_s) > 1 else 0
        figure.add_scatter(
            x=list(range(first, len(steps_s))),
            y=[1e3 * step_s for step_s in steps_s[first:]],
            name=name,
            line={"color": COLORS[place % len(COLORS)], "dash": DASHES[place % len(DASHES)]},
        )
    return figure


def bars(values: Mapping[str, float], unit: str, title: str) -> go.Figure:
    """A bar for each value, by its name."""
    figure = _figure(title, "", unit)
    figure.add_bar(x=list(values), y=list(values.values()), marker_color=COLORS[0])
    return figure


def intervals(
    names: Sequence[str], seconds: Sequence[float], ends: Sequence[tuple[float | None, float | None]], title: str
) -> go.Figure:
    """A point for each name, with its interval where one is known."""
    figure = _figure(title, "", "ms")
    above = [1e3 * (high - mid) if high is not None else 0 for mid, (_, high) in zip(seconds, ends, strict=True)]
    below = [1e3 * (mid - low) if low is not None else 0 for mid, (low, _) in zip(seconds, ends, strict=True)]
    figure.add_scatter(
        x=list(names),
        y=[1e3 * value_s for value_s in seconds],
        mode="markers",
        marker={"color": COLORS[0], "size": 9},
        error_y={"type": "data", "array": above, "arrayminus": below, "symmetric": False},
    )
    return figure


def _figure(title: str, x: str, y: str) -> go.Figure:
    figure = go.Figure()
    figure.update_layout(title=title, xaxis_title=x, yaxis_title=y, template="plotly_white")
    figure.update_yaxes(rangemode="tozero")
    return figure
