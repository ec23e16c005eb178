"""Each statistic by its definition, on hand-made series."""

import math
import random

import pytest

from tokendyno.backend.runs.statistics import (
    estimate,
    interval,
    mean,
    median,
    percentile,
    positive_interval,
    stdev,
    t_probability,
    t_quantile,
    variation,
)


@pytest.mark.parametrize(
    ("values", "middle", "average", "spread"),
    [
        ([], None, None, None),
        ([0.5], 0.5, 0.5, None),
        ([0.1, 0.3], 0.2, 0.2, 0.1414213562),
        ([0.3, 0.1, 0.2], 0.2, 0.2, 0.1),
        ([0.1, 0.1, 0.1, 10.0], 0.1, 2.575, 4.95),
        ([9.0, 1.0, 2.0, 4.0], 3.0, 4.0, 3.5590260841),
        ([9.0, 1.0, 2.0, 8.0, 5.0], 5.0, 5.0, 3.5355339059),
    ],
)
def test_definitions(values: list[float], middle: float | None, average: float | None, spread: float | None) -> None:
    computed = [median(values), mean(values), stdev(values)]
    for got, want in zip(computed, [middle, average, spread], strict=True):
        assert got == (None if want is None else pytest.approx(want))


# --- percentiles and variation --------------------------------------------------------------------


@pytest.mark.parametrize(("share", "least"), [(0.90, 64), (0.99, 662)])
def test_a_percentile_is_needs_its_minimum_of_samples(share: float, least: int) -> None:
    values = [float(i) for i in range(1, least + 1)]
    random.Random(0).shuffle(values)
    assert percentile(values[:-1], share) is None
    found = percentile(values, share)
    assert found is not None
    assert sum(value <= found for value in values) >= share * least > sum(value < found for value in values)


@pytest.mark.parametrize(
    ("share", "count", "rank"),
    [(0.90, 100, 90), (0.90, 101, 91), (0.90, 110, 99), (0.90, 70, 63), (0.99, 1000, 990), (0.99, 700, 693)],
)
def test_a_percentile_is_a_latency_that_occurred(share: float, count: int, rank: int) -> None:
    assert percentile([float(i) for i in range(1, count + 1)], share) == rank


def test_variation_is_relative_and_needs_two_values() -> None:
    assert variation([0.1, 0.3]) == pytest.approx(0.1414213562 / 0.2)
    assert variation([1.0, 1.0, 1.0]) == 0
    assert variation([0.1]) is None and variation([]) is None


# --- intervals ------------------------------------------------------------------------------------

TABLE = {
    0.50: {1: 1.000, 2: 0.816, 3: 0.765, 4: 0.741, 5: 0.727, 10: 0.700, 30: 0.683, 60: 0.679, 120: 0.677},
    0.90: {1: 6.314, 2: 2.920, 3: 2.353, 4: 2.132, 5: 2.015, 10: 1.812, 30: 1.697, 60: 1.671, 120: 1.658},
    0.95: {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 10: 2.228, 30: 2.042, 60: 2.000, 120: 1.980},
    0.99: {1: 63.657, 2: 9.925, 3: 5.841, 4: 4.604, 5: 4.032, 10: 3.169, 30: 2.750, 60: 2.660, 120: 2.617},
}
"""Two-sided points of Student's t: Abramowitz and Stegun, table 26.10."""


@pytest.mark.parametrize(("confidence", "df", "t"), [(c, df, t) for c, row in TABLE.items() for df, t in row.items()])
def test_students_t_is_that_of_the_tables(confidence: float, df: int, t: float) -> None:
    assert t_quantile(confidence, df) == pytest.approx(t, abs=0.00051)
    assert t_probability(t_quantile(confidence, df), df) == pytest.approx(confidence, abs=1e-12)


def test_an_interval_by_hand_and_none_of_a_single_value() -> None:
    # mean 2, deviation 1, n 3: 2 +- 4.303 / sqrt 3
    assert interval([1.0, 2.0, 3.0]) == pytest.approx((2 - 2.48414, 2 + 2.48414), abs=1e-4)
    assert interval([5.0]) is None and interval([]) is None
    assert interval([5.0, 5.0]) == (5.0, 5.0)


def test_an_interval_covers_the_true_mean_as_often_as_it_says() -> None:
    draw = random.Random(1)
    hits = 0
    for _ in range(4000):
        low, high = interval([draw.gauss(10, 3) for _ in range(5)]) or (0, 0)
        hits += low <= 10 <= high
    assert hits / 4000 == pytest.approx(0.95, abs=0.012)


@pytest.mark.parametrize("values", [[0.1], [0.1, 0.1], [0.1, 0.12, 0.3], [1e-9, 5.0], [1e-300, 1e300]])
def test_an_estimate_lies_in_its_interval_and_its_inverse_is_that_of_inverses(values: list[float]) -> None:
    estimated, inverse = estimate(values), estimate([1 / value for value in values])
    assert estimated is not None and inverse is not None and estimated.value == pytest.approx(1 / inverse.value)
    assert (estimated.interval is None) is (len(values) == 1)
    if estimated.low is not None and estimated.high is not None:
        assert 0 < estimated.low <= estimated.value <= estimated.high < math.inf
        assert inverse.low == pytest.approx(1 / estimated.high)


def test_an_estimate_of_ratios_is_the_ratio_of_estimates_and_without_a_time_there_is_none() -> None:
    a, b = [0.1, 0.2, 0.4], [0.3, 0.1, 0.2]
    of_a, of_b, of_ratios = estimate(a), estimate(b), estimate([x / y for x, y in zip(a, b, strict=True)])
    assert of_a and of_b and of_ratios and of_ratios.value == pytest.approx(of_a.value / of_b.value)
    assert estimate([]) is estimate([0.1, 0.0]) is None


def test_an_interval_of_times_by_hand_and_none_of_a_single_value() -> None:
    # mean 2, deviation 1, n 3: half of Student's interval is 2.48414, which is 1.24207 of the mean
    low, high = 2 * math.exp(-1.24207), 2 * math.exp(1.24207)
    assert positive_interval([1.0, 2.0, 3.0]) == pytest.approx((low, high), rel=1e-4)
    assert positive_interval([5.0]) is None and positive_interval([]) is None and positive_interval([0.0, 0.0]) is None
    assert positive_interval([5.0, 5.0]) == (5.0, 5.0)
    assert positive_interval([-1.0, 5.0]) is None and positive_interval([0.0, 5.0]) is not None
    assert positive_interval([1.00, 1.01, 0.99]) == pytest.approx(interval([1.00, 1.01, 0.99]), rel=1e-3)


@pytest.mark.parametrize(("sigma", "least"), [(0.05, 0.94), (0.3, 0.935), (0.8, 0.89)])
def test_an_interval_of_skewed_times_covers_their_mean_no_less_often_than_students(sigma: float, least: float) -> None:
    """Log-normal times, five runs each; Student's interval covers 0.86 of the time where they are skewed most."""
    draw, mean_s = random.Random(2), math.exp(sigma**2 / 2)
    hits = students = 0
    for _ in range(3000):
        values = [draw.lognormvariate(0, sigma) for _ in range(5)]
        low, high = positive_interval(values) or (0, 0)
        hits += low <= mean_s <= high
        low, high = interval(values) or (0, 0)
        students += low <= mean_s <= high
    assert hits / 3000 > least and hits >= students - 15
