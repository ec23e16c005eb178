"""The charts' data: what the JavaScript that draws them makes of a run's columns, in a blank page."""

import random
from typing import Any

import pytest

from tests.browser.chart_page import ChartPage, Line, long_run, only, reply
from tests.support.runs import PROMPT, TOKEN_BYTES, WINDOW, arm_records, created

MOST = 400
"""Points of a line that are drawn at most."""

A_COLOUR, B_COLOUR = "#4269d0", "#ff725c"


@pytest.fixture(scope="module")
def run() -> Any:
    """Arm A with 64 tokens and a sliding window, arm B with 40 and none."""
    return reply([created(), *arm_records("A", 64), *arm_records("B", 40)])


@pytest.fixture(scope="module")
def lines(js: ChartPage, run: Any) -> list[Line]:
    return js.lines([run])


def changed(sent: Any, **of_every_arm: Any) -> Any:
    """The same reply with other values in the head of every arm."""
    return sent | {"head": sent["head"] | {"arms": [arm | of_every_arm for arm in sent["head"]["arms"]]}}


# --- what each chart shows ------------------------------------------------------------------------


def test_latency_begins_at_token_1_and_is_in_milliseconds(lines: list[Line]) -> None:
    a, b = only(lines, chart="latency", curve="")
    assert (a.arm, b.arm) == ("A", "B")
    assert a.x == list(range(1, 64)) and b.x == list(range(1, 40))
    assert a.y == pytest.approx([10.0] * 63) and b.y == pytest.approx([10.0] * 39)


def test_the_roofline_bound_lies_under_the_latency_and_stops_rising_at_the_window(lines: list[Line]) -> None:
    a, b = only(lines, chart="latency", curve="floor")
    assert a.x == [1, WINDOW - 1 - PROMPT, 63] == b.x
    assert a.y[0] < a.y[1] == a.y[2] and b.y[0] < b.y[1] < b.y[2]
    assert a.y[0] == pytest.approx(4 + 1e-4 * TOKEN_BYTES * (PROMPT + 1)), "milliseconds"
    assert max(a.y + b.y) < min(only(lines, chart="latency", curve="")[0].y)
    assert (a.label, b.label) == ("A roofline", "B roofline")


def test_an_arm_keeps_its_colour_and_dash_and_a_prediction_is_dotted(js: ChartPage, run: Any) -> None:
    styles = {
        (t["meta"]["arm"], t["line"]["color"], t["line"]["dash"], bool(t["meta"]["curve"]))
        for t in js.traces([run])
        if "arm" in t.get("meta", {})
    }
    assert styles == {
        ("A", A_COLOUR, "solid", False),
        ("B", B_COLOUR, "5px,2.5px", False),
        ("A", A_COLOUR, "1px,3px", True),
        ("B", B_COLOUR, "1px,3px", True),
    }


def test_memory_of_the_other_ranks_is_one_line_with_gaps_on_either_axis(js: ChartPage, run: Any) -> None:
    ranks = {"x": [0.1, 0.3, None, 0.1, 0.3, None], "bytes": [2**29, 2**30, None, 2**28, 2**28, None]}
    several = changed(run, ranks=ranks)
    found = [t for t in js.traces([several]) if t.get("meta", {}).get("curve") == "ranks"]
    assert [t["meta"]["arm"] for t in found] == ["A", "B"]
    assert found[0]["y"] == [512, 1024, None, 256, 256, None] and found[0]["x"].count(None) == 2
    labels = [t["meta"]["legend"] for t in js.traces([several]) if t["showlegend"]]
    assert "other devices" in labels
    legends = {t["meta"]["legend"]: t["legend"] for t in js.traces([several]) if t["showlegend"]}
    assert (legends["A"], legends["other devices"], legends["full"]) == ("legend", "legend2", "legend3")


# --- what a user does: hide, zoom -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("A", {"arm": "A"}),
        ("sliding", {"kind": "sliding"}),
        ("roofline", {"curve": "floor"}),
    ],
)
def test_a_name_in_the_legend_hides_its_lines_and_no_others(
    js: ChartPage, run: Any, name: str, gone: dict[str, str]
) -> None:
    found = js.lines([run], hidden=[name])
    assert {line for line in range(len(found)) if not found[line].visible} == {
        line for line in range(len(found)) if found[line] in only(found, **gone)
    }
    entries = {t["meta"]["legend"]: t["visible"] for t in js.traces([run], hidden=[name]) if t["showlegend"]}
    assert list(entries) == ["A", "B", "roofline", "sliding", "full", "predicted"]
    assert {entry for entry, visible in entries.items() if visible == "legendonly"} == {name}


@pytest.mark.parametrize(
    ("axis", "arm", "zoom", "first", "last"),
    [
        ("token", "A", [20.4, 30.2], 19, 32),
        ("token", "B", [35, 60], 34, 39),
        ("second", "A", [0.301, 0.399], 0.3, 0.41),
    ],
)
def test_zoomed_charts_draw_their_stretch_and_a_neighbour_on_each_side(
    js: ChartPage, run: Any, axis: str, arm: str, zoom: list[float], first: float, last: float
) -> None:
    found, whole = js.lines([run], axis=axis, zoom=zoom), js.lines([run], axis=axis)
    for line in only(found, arm=arm, curve=""):
        (all_of_it,) = only(whole, chart=line.chart, arm=arm, kind=line.kind, curve="")
        assert set(zip(line.x, line.y, strict=True)) <= set(zip(all_of_it.x, all_of_it.y, strict=True))
        if line.chart == "memory":
            assert len(line.x) == 2, "both neighbours"
        else:
            begin = max(first, 1) if line.chart == "latency" and axis == "token" else first
            assert [line.x[0], line.x[-1]] == pytest.approx([begin, last])


# --- axes and units -------------------------------------------------------------------------------


def extent(js: ChartPage, sent: Any, chart: str, ended: bool, axis: str = "token") -> tuple[list[float], list[float]]:
    (found,) = (
        t for t in js.traces([sent], ended=ended, axis=axis) if t.get("meta", {}) == {"chart": chart, "extent": True}
    )
    return found["x"], found["y"]


def test_the_axes_reach_to_the_end_of_the_run_and_to_what_was_generated_once_it_ended(js: ChartPage, run: Any) -> None:
    short = reply([created(), *arm_records("A", 9), *arm_records("B", 5)])
    assert extent(js, short, "latency", ended=False)[0] == [0, 64]
    assert extent(js, short, "latency", ended=True)[0] == [0, 9]
    for curve in ("floor", "predicted"):
        assert {line.x[-1] for line in only(js.lines([short]), curve=curve)} == {8}, "curves end with the run"
        assert {line.x[-1] for line in only(js.lines([short], ended=False), curve=curve)} == {63}
    for chart in ("latency", "memory", "kv"):
        assert extent(js, short, chart, ended=False, axis="second")[0] == [0, 1]
        assert extent(js, short, chart, ended=True, axis="second")[0] == [0, 0.5]
    seconds = long_run([0.01], [0.01], [2**29] * 50)  # to 24.5 s
    assert extent(js, seconds, "memory", ended=False, axis="second")[0] == [0, 30]


def test_latency_and_kv_begin_at_0_and_memory_covers_a_tenth_of_its_value(js: ChartPage, run: Any) -> None:
    assert extent(js, run, "latency", ended=True)[1] == [0, 0], "the prefill of 100 ms does not hold it up"
    assert extent(js, run, "kv", ended=True)[1] == [0, TOKEN_BYTES * (PROMPT + 63) / 1024]
    assert extent(js, run, "kv", ended=False)[1] == [0, 1.25 * TOKEN_BYTES * (PROMPT + 63) / 1024], "room to grow"
    low, high = extent(js, run, "memory", ended=True)[1]
    assert low == pytest.approx(512 - 51.3 / 4) and high == pytest.approx(512 + 3 * 51.3 / 4)


# --- columns, points and values -----------------------------------------------------------------------


def test_overlapping_replies_count_nothing_twice(js: ChartPage) -> None:
    records = [created(), *arm_records("A", 64), *arm_records("B", 40)]
    run = reply(records)
    later = [reply(records, cursors) for cursors in ([[30, 1, 4], [39, 0, 0]], [[5, 0, 0], [40, 2, 1]])]
    assert js.lines([run, *later]) == js.lines([run])
    head = run["head"]
    gap = js.lines([later[0]], head=head)  # token 30 before tokens 0 to 29: not taken
    assert all(not line.x for line in only(gap, chart="latency", arm="A", curve=""))


def test_a_spike_survives_wherever_it_is(js: ChartPage) -> None:
    for spike in (1, 512, 3_000):
        a = [0.01] * 3_001
        a[spike] = 1.0
        line, _ = only(js.lines([long_run(a, [0.01] * 3_001)]), chart="latency", curve="")
        assert dict(zip(line.x, line.y, strict=True))[spike] == 1000.0 and len(line.x) <= MOST


def test_zooming_in_refines(js: ChartPage) -> None:
    random.seed(2)
    a = [random.random() for _ in range(20_000)]
    sent, view = long_run(a, a), {"zoom": [1_000, 1_200]}
    assert only(js.lines([sent], **view), chart="latency", arm="A", curve="")[0].x == list(range(999, 1_202))
