"""The charts' own JavaScript in a blank page: columns go in, Plotly traces come out. No app, no figure."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from tests.support.runs import created
from tokendyno.backend.paths import ROOT
from tokendyno.backend.runs.records import Created, Record
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views import live
from tokendyno.ui.live.charts import CHARTS

NAMES = ("dom", "series", "decimate", "windows", "chart_data", "annotations")
PURE = (*(f"ui/live/js/{name}.js" for name in NAMES), "ui/compare/js/rank.js")
"""Modules whose functions need no component of the page."""

SITE = "http://modules.test/"

TRACES = """({charts, replies, head, ended, hidden, axis, zoom}) => {
  const series = head ? head.arms.map(emptySeries) : [];
  for (const reply of replies) reply.lanes.forEach((part, a) => appendReply(series[a], part));
  const view = { head, series, ended, hidden: new Set(hidden), axis, zoom, ink: 'black', neutral: 'grey' };
  view.units = charts.map(chart => head ? chartUnit(chart, view, null) : null);
  return { traces: chartTraces(charts, view), units: view.units };
}"""


class Line(NamedTuple):
    """One line of one arm, as it would be drawn."""

    chart: str
    arm: str
    kind: str
    curve: str
    x: list[float]
    y: list[float]
    visible: bool
    axes: tuple[str, str]
    label: str


def _module(route: Any) -> None:
    path = route.request.url.removeprefix(SITE)
    body = (ROOT / path).read_text(encoding="utf-8") if path else "<!doctype html>"
    route.fulfill(body=body, content_type="text/javascript" if path else "text/html")


class ChartPage:
    """A blank page whose globals are what these modules export."""

    def __init__(self, page: Any, modules: Sequence[str] = PURE) -> None:
        self._page = page
        page.route(f"{SITE}**", _module)
        page.goto(SITE)
        page.evaluate(
            "async names => { for (const name of names) Object.assign(window, await import('/' + name)); }", modules
        )

    def call(self, expression: str, *arguments: Any) -> Any:
        """The value of a JavaScript function of the charts for these arguments."""
        return self._page.evaluate(f"given => ({expression})(...given)", list(arguments))

    def traces(
        self,
        replies: Sequence[Any],
        head: Any = None,
        ended: bool = True,
        hidden: Sequence[str] = (),
        axis: str = "token",
        zoom: Sequence[float] | None = None,
    ) -> list[dict[str, Any]]:
        """All traces after these replies. `head`: the first reply's, unless given."""
        given = {
            "charts": [chart.as_json() for chart in CHARTS],
            "replies": replies,
            "ended": ended,
            "head": head or (replies[0]["head"] if replies else None),
            "hidden": hidden,
            "axis": axis,
            "zoom": zoom,
        }
        found: list[dict[str, Any]] = self._page.evaluate(TRACES, given)["traces"]
        return found

    def lines(self, replies: Sequence[Any], **view: Any) -> list[Line]:
        """The lines of the arms alone."""
        return [
            Line(
                m["chart"],
                m["arm"],
                m["kind"],
                m["curve"],
                t["x"],
                t["y"],
                t["visible"],
                (t["xaxis"], t["yaxis"]),
                t["name"],
            )
            for t in self.traces(replies, **view)
            if "arm" in (m := t.get("meta", {}))
        ]


def reply(records: Sequence[Record], cursors: Sequence[Sequence[int]] = ((0, 0, 0), (0, 0, 0))) -> Any:
    """What the server sends of a run with these records to a viewer at `cursors`."""
    first, *rest = records
    assert isinstance(first, Created)
    run = Run(first)
    for record in rest:
        run.append(record)
    return msgspec.json.decode(msgspec.json.encode(live.delta(run, 0, list(cursors), 1.0)))


def columns(latencies_s: Sequence[float], samples: Sequence[int] = ()) -> dict[str, Any]:
    """An arm's part of a reply with these latencies, and memory samples twice a second."""
    n, zeros = len(latencies_s), [0] * len(latencies_s)
    return {
        "first": 0,
        "n": n,
        "t": [float(i) for i in range(n)],
        "lat": list(latencies_s),
        "kvs": zeros,
        "kvf": zeros,
        "sfirst": 0,
        "sn": len(samples),
        "st": [0.5 * i for i in range(len(samples))],
        "sm": list(samples),
        "cfirst": 0,
        "cn": 0,
        "text": "",
    }


def long_run(a: Sequence[float], b: Sequence[float], memory: Sequence[int] = ()) -> Any:
    """A reply with these latencies, in seconds."""
    return reply([created()]) | {"lanes": [columns(a, memory), columns(b)]}


def only(lines: Sequence[Line], **wanted: Any) -> list[Line]:
    """The lines with these fields."""
    return [line for line in lines if all(getattr(line, name) == value for name, value in wanted.items())]
