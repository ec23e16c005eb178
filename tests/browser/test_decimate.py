"""Long runs are drawn with fewer points: no extreme is lost, and points keep still while values are added."""

import random

from tests.browser.chart_page import ChartPage, long_run, only

MOST = 400


def test_few_points_are_all_drawn(js: ChartPage) -> None:
    assert js.call("decimate", [list(range(MOST))], 0, MOST, MOST) == list(range(MOST))
    assert js.call("decimate", [list(range(50))], 7, 30, MOST) == list(range(7, 30))
    assert js.call("decimate", [[]], 0, 0, MOST) == [] == js.call("decimate", [[1, 2]], 5, 2, MOST)


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


def test_points_keep_still_while_values_are_added(js: ChartPage) -> None:
    random.seed(3)
    column = [random.random() for _ in range(1_600)]
    before, after = (js.call("decimate", [column[:n]], 0, n, MOST) for n in (1_500, 1_520))
    settled = [index for index in before if index < 1_496]
    assert settled == after[: len(settled)]
