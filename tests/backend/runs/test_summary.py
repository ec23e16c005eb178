"""The figures of an arm, and A against B, on hand-made series."""

import msgspec
import pytest

from tokendyno.backend.counts import counts_of
from tokendyno.backend.runs.statistics import estimate, interval
from tokendyno.backend.runs.summary import Comparison, Measured, compare_pairs, pair_ratios, summarize

STEPS = ([9.0, 0.1, 0.3], [1.0, 0.1, 0.3], [2.0])


def measured(*runs: list[float], **extra: float) -> list[Measured]:
    return [Measured(run, counts_of(extra)) for run in runs]


def compare(a: list[Measured], b: list[Measured], prefill: bool = True) -> Comparison | None:
    return compare_pairs(pair_ratios(a, b, prefill), equal=False)


def test_time_to_first_token_and_decode_steps_are_never_mixed() -> None:
    summary = summarize(measured(*STEPS), 4, 3, [5, 0, 7, 6], (10, 20), 30)
    assert summary.ttft_s == pytest.approx(18 ** (1 / 3))
    assert summary.latency_mean_s == pytest.approx(0.2)
    assert summary.tokens_per_s == pytest.approx(5.0)
    assert summary.batch_tokens_per_s == pytest.approx(20.0)
    assert (summary.peak_memory_bytes, summary.tokens, summary.runs) == (7, 3, 3)
    assert (summary.kv_bytes, summary.kv_predicted_bytes) == (30, 30)
    assert (summary.kv_sliding_bytes, summary.kv_full_bytes) == (10, 20)


def test_the_passes_of_an_encoder_are_all_alike() -> None:
    summary = summarize(measured([0.5, 0.1, 0.3]), 4, 3, [], None, None, prefill=False)
    assert (summary.ttft_s, summary.ttft_interval_s) == (None, None)
    assert summary.latency_mean_s == pytest.approx(0.3)
    assert summary.batch_tokens_per_s == pytest.approx(12 / 0.9)


def test_what_was_not_measured_is_none_and_never_zero() -> None:
    for runs in ([], measured([]), measured([], [])):
        summary = summarize(runs, 1, 0, [0, 0], None, None)
        assert set(msgspec.structs.asdict(summary).values()) == {0, None}
        assert (summary.tokens, summary.runs) == (0, 0)
        assert summary.peak_memory_bytes is None


# --- intervals ------------------------------------------------------------------------------------


def test_the_interval_is_over_runs_and_not_over_the_steps_of_one() -> None:
    slow_then_fast = [1.0] + [0.3] * 500 + [0.1] * 500
    once = summarize(measured(slow_then_fast), 1, 1001, [], None, None)
    assert (once.latency_interval_s, once.run_cv, once.ttft_interval_s) == (None, None, None)
    assert once.latency_cv is not None
    runs = measured([1.0, 0.1, 0.3], [1.2, 0.2, 0.4], [1.4, 0.3, 0.5])
    summary = summarize(runs, 1, 3, [], None, None)
    token, ttft = estimate([0.2, 0.3, 0.4]), estimate([1.0, 1.2, 1.4])
    assert token and ttft and (summary.ttft_s, summary.ttft_interval_s) == (ttft.value, ttft.interval)
    assert summary.latency_mean_s == pytest.approx(token.value)
    assert summary.latency_interval_s == pytest.approx(token.interval)
    assert summary.run_cv == pytest.approx(0.1 / 0.3)


# --- A against B ----------------------------------------------------------------------------------


def test_one_pair_of_runs_tells_nothing() -> None:
    comparison = compare(measured([9.0, 0.2]), measured([1.0, 0.1]))
    assert comparison is not None
    assert comparison.ratio == pytest.approx(2.0)
    assert (comparison.low, comparison.high, comparison.pairs, comparison.outcome) == (None, None, 1, "unknown")


def test_no_pair_no_comparison() -> None:
    assert compare([], measured([1.0, 0.1])) is None
    assert compare(measured([1.0]), measured([1.0, 0.1])) is None, "a prefill alone is no step"


@pytest.mark.parametrize(
    ("a", "b", "outcome"),
    [
        ([0.20, 0.21, 0.19], [0.10, 0.10, 0.11], "b_faster"),
        ([0.10, 0.10, 0.11], [0.20, 0.21, 0.19], "a_faster"),
        ([0.10, 0.12, 0.09], [0.11, 0.09, 0.12], "undecided"),
        ([0.10] * 3 + [0.1001] * 3, [0.1001] * 3 + [0.10] * 3, "no_difference"),
        ([0.10, 0.10], [0.10, 0.10], "no_difference"),
    ],
)
def test_a_difference_is_found_or_is_not(a: list[float], b: list[float], outcome: str) -> None:
    comparison = compare(measured(*([5.0, x] for x in a)), measured(*([1.0, x] for x in b)))
    assert comparison is not None and comparison.low is not None and comparison.high is not None
    assert comparison.outcome == outcome
    assert comparison.low <= comparison.ratio <= comparison.high
    assert (comparison.low > 1, comparison.high < 1) == (outcome == "b_faster", outcome == "a_faster")
    assert (comparison.pairs, comparison.confidence) == (len(a), 0.95)


def test_pairs_take_out_what_both_arms_suffer_from() -> None:
    """The machine slows down from run to run; B is 2% faster in each. Only pairs can see that."""
    drift = [1.0, 1.3, 1.7, 2.2, 2.6]
    a = measured(*([0.0, 0.102 * d] for d in drift))
    b = measured(*([0.0, 0.100 * d] for d in drift))
    comparison = compare(a, b)
    assert comparison is not None and comparison.outcome == "b_faster"
    assert comparison.ratio == pytest.approx(1.02)
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
    comparison = compare(measured([1.0, 0.1, 0.1, 9.0, 9.0]), measured([1.0, 0.1, 0.1]))
    assert comparison is not None and comparison.ratio == pytest.approx(1.0)


def test_the_first_pass_of_an_encoder_counts() -> None:
    comparison = compare(measured([0.3, 0.1]), measured([0.1, 0.1]), prefill=False)
    assert comparison is not None and comparison.ratio == pytest.approx(2.0)


# --- energy and the GPU's share -------------------------------------------------------------------


def test_energy_is_shared_among_the_tokens_of_all_sequences() -> None:
    summary = summarize(measured([0.5, 0.5, 1.0], energy_j=120.0), 4, 3, [], None, None)
    assert summary.energy_per_token_j == pytest.approx(10.0)


def test_energy_of_a_run_shorter_than_its_sensor_is_not_told() -> None:
    assert summarize(measured([0.3, 0.3], energy_j=9.0), 1, 2, [], None, None).energy_per_token_j is None
    assert summarize(measured([3.0, 3.0]), 1, 2, [], None, None).energy_per_token_j is None
    assert summarize(measured([0.5, 0.5], energy_j=9.0), 1, 2, [], None, None).energy_per_token_j == 4.5
    mixed = [*measured([1.0, 1.0], energy_j=8.0), *measured([1.0, 1.0])]
    assert summarize(mixed, 1, 2, [], None, None).energy_per_token_j == pytest.approx(4.0)


def test_the_gpus_share_is_of_a_step_and_not_of_the_prefill() -> None:
    summary = summarize(measured([9.0] + [0.010] * 20, step_busy_s=0.004), 1, 21, [], None, None)
    assert summary.gpu_busy_share == pytest.approx(0.4)
    assert summarize(measured([9.0], step_busy_s=0.004), 1, 1, [], None, None).gpu_busy_share is None
    assert summarize(measured([9.0, 0.01]), 1, 2, [], None, None).gpu_busy_share is None


def test_the_gpus_share_is_of_the_first_steps_at_whose_lengths_it_was_profiled() -> None:
    slower_later = [9.0] + [0.010] * 64 + [0.030] * 64
    summary = summarize(measured(slower_later, step_busy_s=0.004), 1, 129, [], None, None)
    assert summary.gpu_busy_share == pytest.approx(0.4)


@pytest.mark.parametrize(("busy", "bound"), [(None, None), (0.5, True), (0.75, False), (0.9, False)])
def test_a_step_is_launch_bound_below_three_quarters_of_busy_time(busy: float | None, bound: bool | None) -> None:
    summary = summarize(measured(*STEPS), 1, 3, [], None, None)
    assert msgspec.structs.replace(summary, gpu_busy_share=busy).launch_bound is bound


def test_an_interval_that_is_not_shown_to_its_ends_decides_nothing() -> None:
    """Two pairs, 30 and 3,000 times as fast: Student's interval of that holds 1."""
    comparison = compare(measured([1.0, 30.0], [1.0, 3_000.0]), measured([1.0, 1.0], [1.0, 1.0]))
    assert comparison is not None and comparison.ratio == pytest.approx(300) and comparison.outcome == "undecided"
