"""Long runs are drawn with fewer points: no extreme is lost, and points keep still while values are added."""

import random

import pytest

from tests.browser.chart_page import ChartPage, long_run, only

MOST = 400


def test_few_points_are_all_drawn(js: ChartPage) -> None:
    assert js.call("decimate", [list(range(MOST))], 0, MOST, MOST) == list(range(MOST))
    assert js.call("decimate", [list(range(50))], 7, 30, MOST) == list(range(7, 30))
    assert js.call("decimate", [[]], 0, 0, MOST) == [] == js.call("decimate", [[1, 2]], 5, 2, MOST)


@pytest.mark.parametrize("n", [MOST + 1, 1_000, 4_096, 20_001])
def test_of_many_values_no_extreme_is_lost(js: ChartPage, n: int) -> None:
    random.seed(n)
    a, b = ([random.random() for _ in range(n)] for _ in "ab")
    kept = js.call("decimate", [a, b], 0, n, MOST)
    assert kept == sorted(set(kept)) and len(kept) <= MOST and (kept[0], kept[-1]) == (0, n - 1)
    size = 2
    while size * (MOST / 2 - 2) < n:
        size *= 2
    while len(expected := bucket_extremes([a, b], n, size)) > MOST:
        size *= 2
    assert kept == expected


def bucket_extremes(columns: list[list[float]], n: int, size: int) -> list[int]:
    """Both ends, and the first lowest and highest index of each column in each bucket of `size`."""
    kept = {0, n - 1}
    for begin in range(0, n, size):
        bucket = range(begin, min(n, begin + size))
        for column in columns:
            kept |= {min(bucket, key=column.__getitem__), max(bucket, key=column.__getitem__)}
    return sorted(kept)


def test_a_spike_survives_wherever_it_is(js: ChartPage) -> None:
    for spike in (1, 512, 3_000):
        a = [0.01] * 3_001
        a[spike] = 1.0
        line, _ = only(js.lines([long_run(a, [0.01] * 3_001)]), chart="latency", curve="")
        assert dict(zip(line.x, line.y, strict=True))[spike] == 1000.0 and len(line.x) <= MOST


def test_arms_are_drawn_at_the_same_tokens(js: ChartPage) -> None:
    random.seed(1)
    a, b = ([random.random() for _ in range(n)] for n in (5_000, 3_000))
    first, second = only(js.lines([long_run(a, b)]), chart="latency", curve="")
    assert [x for x in first.x if x < 3_000] == second.x and first.x[-1] == 4_999
    assert all(y == pytest.approx(1000 * b[int(x)]) for x, y in zip(second.x, second.y, strict=True))


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


def test_memory_samples_of_the_arms_are_reduced_each_for_itself(js: ChartPage) -> None:
    samples = [2**29 + i % 7 for i in range(2_000)]
    a, *_ = only(js.lines([long_run([0.01], [0.01], samples)], axis="second"), chart="memory")
    assert (a.x[0], a.x[-1]) == (0.0, 999.5) and len(a.x) <= MOST


@pytest.mark.parametrize(("value", "index"), [(-1, 0), (0, 0), (0.1, 1), (2, 2), (2.5, 4), (9, 4)])
def test_the_first_index_at_or_above_a_value(js: ChartPage, value: float, index: int) -> None:
    assert js.call("lowerBound", [0, 1, 2, 2.4], value) == index
