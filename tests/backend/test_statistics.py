"""Each statistic as it is defined, by hand-made series."""

import random
import statistics as reference

import pytest

from backend.statistics import (
    Measured,
    compare,
    interval,
    mean,
    median,
    percentile,
    rate_per_s,
    stdev,
    summarize,
    t_probability,
    t_quantile,
    variation,
)


@pytest.mark.parametrize(
    ("values", "middle", "average", "spread", "rate"),
    [
        ([], None, None, None, None),
        ([0.5], 0.5, 0.5, None, 2.0),
        ([0.1, 0.3], 0.2, 0.2, 0.1414213562, 5.0),
        ([0.3, 0.1, 0.2], 0.2, 0.2, 0.1, 5.0),
        ([0.1, 0.1, 0.1, 10.0], 0.1, 2.575, 4.95, 0.3883495146),
    ],
)
def test_definitions(
    values: list[float], middle: float | None, average: float | None, spread: float | None, rate: float | None
) -> None:
    found = [median(values), mean(values), stdev(values), rate_per_s(values)]
    for got, want in zip(found, [middle, average, spread, rate], strict=True):
        assert got == (None if want is None else pytest.approx(want))


def test_no_time_gives_no_rate() -> None:
    assert rate_per_s([0.0, 0.0]) is None


def test_the_spread_is_of_a_sample() -> None:
    values = [0.02, 0.03, 0.025, 0.021]
    assert stdev(values) == pytest.approx(reference.stdev(values))
    assert stdev(values) != pytest.approx(reference.pstdev(values))


def test_a_sum_of_many_small_times_loses_nothing() -> None:
    assert mean([0.1] * 10_000) == 0.1


STEPS = ([9.0, 0.1, 0.3], [1.0, 0.1, 0.3], [2.0])


def measured(*runs: list[float], **extra: float) -> list[Measured]:
    return [Measured(run, extra) for run in runs]


def test_time_to_first_token_and_decode_steps_are_never_mixed() -> None:
    found = summarize(measured(*STEPS), 4, 3, [5, 0, 7, 6], (10, 20), 30)
    assert found.ttft_s == 2.0
    assert found.latency_mean_s == pytest.approx(0.2)
    assert found.tokens_per_s == pytest.approx(5.0)
    assert found.batch_tokens_per_s == pytest.approx(20.0)
    assert (found.peak_memory_bytes, found.tokens, found.runs) == (7, 3, 3)
    assert (found.kv_bytes, found.kv_sliding_bytes, found.kv_full_bytes, found.kv_predicted_bytes) == (30, 10, 20, 30)


def test_the_passes_of_an_encoder_are_all_alike() -> None:
    found = summarize(measured([0.5, 0.1, 0.3]), 4, 3, [], None, None, prefill=False)
    assert (found.ttft_s, found.ttft_interval_s) == (None, None)
    assert found.latency_mean_s == pytest.approx(0.3)
    assert found.batch_tokens_per_s == pytest.approx(12 / 0.9)


def test_what_was_not_measured_is_none_and_never_zero() -> None:
    for runs in ([], measured([]), measured([], [])):
        found = summarize(runs, 1, 0, [0, 0], None, None)
        assert set(found._asdict().values()) == {0, None}
        assert (found.tokens, found.runs) == (0, 0)
        assert found.peak_memory_bytes is None


# --- percentiles and variation --------------------------------------------------------------------


@pytest.mark.parametrize(("share", "floor"), [(0.90, 64), (0.99, 662)])
def test_a_percentile_is_given_from_its_floor_on_and_not_below(share: float, floor: int) -> None:
    values = [float(i) for i in range(1, floor + 1)]
    random.Random(0).shuffle(values)
    assert percentile(values[:-1], share) is None
    found = percentile(values, share)
    assert found is not None
    assert sum(value <= found for value in values) >= share * floor > sum(value < found for value in values)


@pytest.mark.parametrize(("share", "count", "rank"), [(0.90, 100, 90), (0.90, 101, 91), (0.99, 1000, 990)])
def test_a_percentile_is_a_latency_that_occurred(share: float, count: int, rank: int) -> None:
    assert percentile([float(i) for i in range(1, count + 1)], share) == rank


def test_variation_is_relative_and_needs_two_values() -> None:
    assert variation([0.1, 0.3]) == pytest.approx(0.1414213562 / 0.2)
    assert variation([1.0, 1.0, 1.0]) == 0
    assert variation([0.1]) is None and variation([]) is None


# --- intervals ------------------------------------------------------------------------------------

TABLE = {
    0.90: {1: 6.314, 2: 2.920, 3: 2.353, 4: 2.132, 5: 2.015, 10: 1.812, 30: 1.697, 60: 1.671, 120: 1.658},
    0.95: {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 10: 2.228, 30: 2.042, 60: 2.000, 120: 1.980},
    0.99: {1: 63.657, 2: 9.925, 3: 5.841, 4: 4.604, 5: 4.032, 10: 3.169, 30: 2.750, 60: 2.660, 120: 2.617},
}
"""Two-sided points of Student's t: Abramowitz and Stegun, table 26.10."""


@pytest.mark.parametrize(("confidence", "df", "t"), [(c, df, t) for c, row in TABLE.items() for df, t in row.items()])
def test_students_t_is_that_of_the_tables(confidence: float, df: int, t: float) -> None:
    assert t_quantile(confidence, df) == pytest.approx(t, abs=0.00051)
    assert t_probability(t_quantile(confidence, df), df) == pytest.approx(confidence, abs=1e-12)


def test_students_t_tends_to_the_normal_distribution() -> None:
    normal = reference.NormalDist().inv_cdf(0.975)
    assert t_quantile(0.95, 20_000) == pytest.approx(normal, abs=2e-4)


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


def test_the_interval_is_over_runs_and_not_over_the_steps_of_one() -> None:
    slow_then_fast = [1.0] + [0.3] * 500 + [0.1] * 500
    once = summarize(measured(slow_then_fast), 1, 1001, [], None, None)
    assert (once.latency_interval_s, once.run_cv, once.ttft_interval_s) == (None, None, None)
    assert once.latency_cv is not None
    runs = measured([1.0, 0.1, 0.3], [1.2, 0.2, 0.4], [1.4, 0.3, 0.5])
    found = summarize(runs, 1, 3, [], None, None)
    assert found.latency_interval_s == pytest.approx(interval([0.2, 0.3, 0.4]))
    assert found.run_cv == pytest.approx(0.1 / 0.3)
    assert found.ttft_interval_s == pytest.approx(interval([1.0, 1.2, 1.4]))


# --- A against B ----------------------------------------------------------------------------------


def test_one_pair_of_runs_tells_nothing() -> None:
    found = compare(measured([9.0, 0.2]), measured([1.0, 0.1]))
    assert found is not None
    assert found.ratio == pytest.approx(2.0)
    assert (found.low, found.high, found.pairs, found.verdict) == (None, None, 1, "unknown")


def test_no_pair_no_comparison() -> None:
    assert compare([], measured([1.0, 0.1])) is None
    assert compare(measured([1.0]), measured([1.0, 0.1])) is None, "a prefill alone is no step"


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ([0.20, 0.21, 0.19], [0.10, 0.10, 0.11], "b_faster"),
        ([0.10, 0.10, 0.11], [0.20, 0.21, 0.19], "a_faster"),
        ([0.10, 0.12, 0.09], [0.11, 0.09, 0.12], "no_difference"),
        ([0.10, 0.10], [0.10, 0.10], "no_difference"),
    ],
)
def test_a_difference_is_found_or_is_not(a: list[float], b: list[float], verdict: str) -> None:
    found = compare(measured(*([5.0, x] for x in a)), measured(*([1.0, x] for x in b)))
    assert found is not None and found.low is not None and found.high is not None
    assert found.verdict == verdict
    assert found.low <= found.ratio <= found.high
    assert (found.low > 1, found.high < 1) == (verdict == "b_faster", verdict == "a_faster")
    assert (found.pairs, found.confidence) == (len(a), 0.95)


def test_pairs_take_out_what_both_arms_suffer_from() -> None:
    """The machine slows down from run to run; B is 2% faster in each. Only pairs can see that."""
    drift = [1.0, 1.3, 1.7, 2.2, 2.6]
    a = measured(*([0.0, 0.102 * d] for d in drift))
    b = measured(*([0.0, 0.100 * d] for d in drift))
    found = compare(a, b)
    assert found is not None and found.verdict == "b_faster"
    assert found.ratio == pytest.approx(1.02)
    low_a, high_a = interval([run.latencies_s[1] for run in a]) or (0, 0)
    assert low_a < 0.1 * sum(drift) / 5 < high_a, "the arms' own intervals overlap"


def test_a_against_b_is_the_inverse_of_b_against_a() -> None:
    a, b = measured([1.0, 0.3], [1.0, 0.2], [1.0, 0.4]), measured([1.0, 0.1], [1.0, 0.3], [1.0, 0.2])
    there, back = compare(a, b), compare(b, a)
    assert there is not None and back is not None and there.high is not None and back.low is not None
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert there.high == pytest.approx(1 / back.low)


def test_only_steps_that_both_made_are_compared() -> None:
    """B ended early, before its cache had grown: the longer tail of A does not count against it."""
    found = compare(measured([1.0, 0.1, 0.1, 9.0, 9.0]), measured([1.0, 0.1, 0.1]))
    assert found is not None and found.ratio == pytest.approx(1.0)


def test_the_first_pass_of_an_encoder_counts() -> None:
    found = compare(measured([0.3, 0.1]), measured([0.1, 0.1]), prefill=False)
    assert found is not None and found.ratio == pytest.approx(2.0)


# --- energy and the GPU's share -------------------------------------------------------------------


def test_energy_is_shared_among_the_tokens_of_all_sequences() -> None:
    found = summarize(measured([0.5, 0.5, 1.0], energy_j=120.0), 4, 3, [], None, None)
    assert found.energy_per_token_j == pytest.approx(10.0)


def test_energy_of_a_run_shorter_than_its_sensor_is_not_told() -> None:
    assert summarize(measured([0.3, 0.3], energy_j=9.0), 1, 2, [], None, None).energy_per_token_j is None
    assert summarize(measured([3.0, 3.0]), 1, 2, [], None, None).energy_per_token_j is None
    mixed = [*measured([1.0, 1.0], energy_j=8.0), *measured([1.0, 1.0])]
    assert summarize(mixed, 1, 2, [], None, None).energy_per_token_j == pytest.approx(4.0)


def test_the_gpus_share_is_of_a_step_and_not_of_the_prefill() -> None:
    found = summarize(measured([9.0] + [0.010] * 20, step_busy_s=0.004), 1, 21, [], None, None)
    assert found.gpu_busy_share == pytest.approx(0.4)
    assert summarize(measured([9.0], step_busy_s=0.004), 1, 1, [], None, None).gpu_busy_share is None
    assert summarize(measured([9.0, 0.01]), 1, 2, [], None, None).gpu_busy_share is None
