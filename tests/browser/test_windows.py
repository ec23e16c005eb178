"""Linked zoom, outliers and the CSV file: functions of the charts in a blank page."""

import csv
import io
from typing import Any

import pytest

from tests.browser.chart_page import ChartPage, columns, reply
from tests.support.runs import PROMPT, arm_records, created
from ui.live.charts import CHARTS

CHARTS_JSON = [chart.as_json() for chart in CHARTS]
LATENCY, MEMORY, KV = range(3)


def view(*spacings_s: float) -> dict[str, Any]:
    """Arms of 101 tokens, each that many seconds apart."""
    series = [columns([0.1] * 101) | {"t": [s * i for i in range(101)]} for s in spacings_s]
    return {"head": {"arms": [{"prompt_tokens": PROMPT}] * len(series)}, "series": series}


@pytest.mark.parametrize(
    ("chart", "window", "wanted"),
    [
        (LATENCY, [20, 40], [[20, 40], [2.0, 8.0], [30, 50]]),
        (KV, [30, 50], [[20, 40], [2.0, 8.0], [30, 50]]),
        (MEMORY, [2.0, 4.0], [[10, 40], [2.0, 4.0], [20, 50]]),
        (LATENCY, [-5, 300], [[-5, 300], [0.0, 20.0], [5, 310]]),
    ],
)
def test_a_stretch_of_one_chart_is_the_same_stretch_of_the_run_on_all(
    js: ChartPage, chart: int, window: list[float], wanted: list[list[float]]
) -> None:
    """Arm A takes 0.1 s a token and arm B 0.2 s: seconds cover both."""
    found = js.call("linkedWindows", CHARTS_JSON, chart, window, view(0.1, 0.2))
    assert [pytest.approx(one) for one in wanted] == found


def test_before_the_first_token_nothing_is_linked(js: ChartPage) -> None:
    empty = {"head": {"arms": [{"prompt_tokens": 0}]}, "series": [columns([])]}
    assert js.call("linkedWindows", CHARTS_JSON, LATENCY, [1, 2], empty) == [[1, 2], None, None]


@pytest.mark.parametrize(
    ("values", "top"),
    [
        ([10.0] * 98 + [900.0, 900.0], 15.0), ([10.0] * 99 + [19.0], None), ([float(i) for i in range(100)], None),
        ([10.0] * 5 + [900.0], None),
    ],
)  # fmt: skip
def test_a_few_outliers_do_not_flatten_the_rest(js: ChartPage, values: list[float], top: float | None) -> None:
    assert js.call("outlierTop", [[5000.0, *values]], 1) == top, "the prefill is not drawn"


def test_what_is_cut_off_stands_at_the_edge_with_its_value(js: ChartPage) -> None:
    sent = reply([created(), *arm_records("A", 64), *arm_records("B", 40)])
    sent["lanes"][0]["lat"][30] = 0.5
    (trace,) = js.call(
        """(charts, sent) => {
          const series = sent.head.arms.map(emptySeries);
          sent.lanes.forEach((part, a) => appendReply(series[a], part));
          const view = { head: sent.head, series, ended: true, hidden: new Set(), windows: [null, null, null] };
          const units = charts.map(chart => chartUnit(chart, view, null));
          const traces = chartTraces(charts, { ...view, units, tops: [15, null, null] });
          return traces.filter(trace => trace.meta?.outliers === 'A');
        }""",
        CHARTS_JSON,
        sent,
    )
    assert (trace["x"], trace["text"]) == ([30], ["500 ms"]) and trace["y"][0] == pytest.approx(0.985 * 15)


def test_the_csv_file_holds_every_token_and_every_sample(js: ChartPage) -> None:
    series = [columns([0.3, 0.01], [512]), columns([0.4])]
    head = {"unit": "token", "arms": [{"name": "A"}, {"name": "B"}]}
    rows = list(csv.DictReader(io.StringIO(js.call("csvOf", head, series))))
    assert [(row["arm"], row["series"], row["index"]) for row in rows] == [
        ("A", "token", "0"), ("A", "token", "1"), ("A", "sample", "0"), ("B", "token", "0"),
    ]  # fmt: skip
    assert (rows[1]["latency_s"], rows[2]["memory_bytes"], rows[2]["latency_s"]) == ("0.01", "512", "")


def test_the_roofline_bound_is_labelled_once_for_both_arms(js: ChartPage) -> None:
    unit = {"unit": "ms", "scale": 1}

    def labels(*bounds_s: float, zoomed: bool = False) -> list[str]:
        arms = [{"name": name, "floor": {"s": [0.001, s]}} for name, s in zip("AB", bounds_s, strict=False)]
        state = {"head": {"arms": arms}, "windows": [[1, 2] if zoomed else None], "units": [unit]}
        return [label["text"] for label in js.call("curveLabels", CHARTS_JSON[LATENCY], 0, state, "black")]

    assert labels(0.004, 0.0041) == ["roofline bound 4 ms"]
    assert labels(0.004, 0.008) == ["roofline bound A 4, B 8 ms"]
    assert labels(0.004, 0.0041, zoomed=True) == []
