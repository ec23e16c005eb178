"""The shared horizontal axis, values at a place, outliers, distributions, the CSV file: functions in a blank page."""

import csv
import io
from typing import Any

import pytest

from tests.browser.chart_page import ChartPage, columns, reply
from tests.support.runs import arm_records, created
from tokendyno.ui.live.charts import CHARTS

CHARTS_JSON = [chart.as_json() for chart in CHARTS]
LATENCY, MEMORY, KV = range(3)


def spaced(*spacings_s: float) -> list[dict[str, Any]]:
    """Arms of 101 tokens, each that many seconds apart."""
    return [columns([0.1] * 101) | {"t": [s * i for i in range(101)]} for s in spacings_s]


@pytest.mark.parametrize(
    ("to", "zoom", "wanted"),
    [("second", [20, 40], [2.0, 8.0]), ("token", [2.0, 4.0], [10, 40]), ("second", [-5, 300], [0.0, 20.0])],
)
def test_a_stretch_of_tokens_and_one_of_seconds_are_the_same_part_of_the_run(
    js: ChartPage, to: str, zoom: list[float], wanted: list[float]
) -> None:
    """Arm A takes 0.1 s a token and arm B 0.2 s: a stretch covers both."""
    assert js.call("translated", zoom, to, spaced(0.1, 0.2)) == pytest.approx(wanted)
    assert js.call("translated", zoom, to, [columns([])]) is None, "before the first token"


@pytest.mark.parametrize(("seconds", "token"), [(0.0, 0), (0.15, 0.5), (0.3, 3), (9, 4)])
def test_a_time_lies_between_the_tokens_around_it_also_where_several_came_at_once(
    js: ChartPage, seconds: float, token: float
) -> None:
    t = [0.1, 0.2, 0.3, 0.3, 0.4]
    expected = 2 if seconds == 0.3 else token
    assert js.call("tokenAt", t, seconds) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("values", "top"),
    [
        ([10.0] * 98 + [900.0, 900.0], 15.0),
        ([10.0] * 99 + [19.0], None),
        ([float(i) for i in range(100)], None),
        ([10.0] * 5 + [900.0], None),
    ],
)
def test_a_few_outliers_do_not_flatten_the_rest(js: ChartPage, values: list[float], top: float | None) -> None:
    assert js.call("outlierTop", [[5000.0, *values]], 1) == top, "the prefill is not drawn"


VIEW = """(charts, sent, more) => {
  const series = sent.head.arms.map(emptySeries);
  sent.lanes.forEach((part, a) => appendReply(series[a], part));
  const view = {
    head: sent.head, series, ended: true, hidden: new Set(), axis: 'token', zoom: null, tops: charts.map(() => null),
    ...more,
  };
  view.units = charts.map(chart => chartUnit(chart, view, null));
"""


@pytest.fixture
def spiked() -> Any:
    """A's token 30 takes 500 ms."""
    sent = reply([created(), *arm_records("A", 64), *arm_records("B", 40)])
    sent["lanes"][0]["lat"][30] = 0.5
    return sent


def said(js: ChartPage, sent: Any, chart: int, at: dict[str, float], **more: Any) -> list[str]:
    """What a chart says of both arms at a place."""
    asked = VIEW + f"return readouts(charts[{chart}], {chart}, more.at, view); }}"
    found = js.call(asked, CHARTS_JSON, sent, {"at": at, **more})
    return [f"{one['arm']} {one['text']}" for one in found]


def test_every_chart_says_what_the_columns_hold_at_one_place(js: ChartPage, spiked: Any) -> None:
    assert said(js, spiked, LATENCY, {"token": 30}) == [
        "A 500 ms, roofline bound 5.587",
        "B 10 ms, roofline bound 6.048",
    ]
    assert said(js, spiked, MEMORY, {"token": 30}) == ["A 513 MiB", "B 513 MiB"]
    assert said(js, spiked, KV, {"token": 30}) == [
        "A 15.5 sliding + 20 full KiB, as predicted, 40 tokens cached",
        "B 20 sliding + 20 full KiB, as predicted, 40 tokens cached",
    ]
    assert said(js, spiked, LATENCY, {"token": 50}) == ["A 10 ms, roofline bound 5.587"], "B ended at token 39"
    assert said(js, spiked, LATENCY, {"second": 0.395}) == [
        "A 500 ms, roofline bound 5.587, token 30",
        "B 10 ms, roofline bound 6.048, token 30",
    ]
    assert said(js, spiked, LATENCY, {"token": 0}) == [] == said(js, spiked, LATENCY, {"second": 0.05}), "the prefill"
    assert said(js, spiked, MEMORY, {"second": 0.05}) == ["A 512 MiB", "B 512 MiB"]
    ranks = {"x": [0.05, 0.3, None, 0.3, None], "bytes": [2**28, 2**30, None, 2**29, None]}
    spiked["head"]["arms"][0]["ranks"] = ranks
    assert said(js, spiked, MEMORY, {"second": 0.05}) == ["A 512 MiB, other devices 256, 512", "B 512 MiB"]


def test_the_csv_file_holds_every_token_and_every_sample(js: ChartPage) -> None:
    series = [columns([0.3, 0.01], [512]), columns([0.4])]
    head = {"unit": "token", "arms": [{"name": "A"}, {"name": "B"}]}
    rows = list(csv.DictReader(io.StringIO(js.call("csvOf", head, series))))
    assert [(row["arm"], row["series"], row["index"]) for row in rows] == [
        ("A", "token", "0"),
        ("A", "token", "1"),
        ("A", "sample", "0"),
        ("B", "token", "0"),
    ]
    assert (rows[1]["latency_s"], rows[2]["memory_bytes"], rows[2]["latency_s"]) == ("0.01", "512", "")


@pytest.mark.parametrize(
    ("bounds_s", "axis", "zoom", "wanted"),
    [
        ((0.004, 0.0041), "token", None, "roofline bound 4 ms"),
        ((0.004, 0.008), "token", None, "roofline bound A 4, B 8 ms"),
        ((0.003, 0.0031), "token", [0, 50], "roofline bound 2 ms"),
        ((0.003, 0.0031), "second", [0, 5.0], "roofline bound 2 ms"),
        ((0.003, 0.0031), "second", None, "roofline bound 3 ms"),
    ],
)
def test_the_roofline_bound_is_labelled_with_its_value_at_the_right_edge(
    js: ChartPage, bounds_s: tuple[float, float], axis: str, zoom: list[float] | None, wanted: str
) -> None:
    arms: list[dict[str, Any]] = [
        {"name": name, "floor": {"x": [0, 100], "s": [0.001, s]}} for name, s in zip("AB", bounds_s, strict=True)
    ]
    drawn = {"axis": axis, "zoom": zoom, "units": [{"unit": "ms", "scale": 1}]}
    state = {"head": {"arms": arms}, "series": spaced(0.1, 0.1), **drawn}
    (label,) = js.call("curveLabels", CHARTS_JSON[LATENCY], 0, state, "black")
    assert label["text"] == wanted
    arms[1]["floor"]["exchanges"] = "included"
    (label,) = js.call("curveLabels", CHARTS_JSON[LATENCY], 0, state, "black")
    assert label["text"] == f"{wanted}, exchanges of B included"


# --- the distribution of latencies ----------------------------------------------------------------


def test_the_table_has_the_tokens_after_the_first_or_those_that_are_zoomed(js: ChartPage) -> None:
    lat = [9.0, *(float(i) for i in range(1, 101))]
    taken = "(head, series, zoom) => latenciesOf(head, series, zoom).map(list => [...list])"
    assert js.call(taken, {"unit": "token"}, [{"lat": lat}], None) == [lat[1:]]
    assert js.call(taken, {"unit": "forward"}, [{"lat": lat}], None) == [sorted(lat)]
    assert js.call(taken, {"unit": "token"}, [{"lat": lat}], [9.5, 12.2]) == [[10.0, 11.0, 12.0]]
    assert [js.call("quantileOf", lat[1:], share) for share in (0, 0.1, 0.5, 0.9, 0.99, 1)] == [1, 10, 50, 90, 99, 100]
