"""Each statistic as it is defined, by hand-made series."""

import statistics as reference

import pytest

from backend.statistics import mean, median, rate_per_s, stdev, summarize


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


def test_time_to_first_token_and_decode_steps_are_never_mixed() -> None:
    found = summarize([9.0, 1.0, 2.0], [0.1, 0.3], 4, 3, [5, 0, 7, 6], (10, 20), 30)
    assert found.ttft_s == 2.0
    assert found.latency_mean_s == pytest.approx(0.2)
    assert found.tokens_per_s == pytest.approx(5.0)
    assert found.batch_tokens_per_s == pytest.approx(20.0)
    assert (found.peak_memory_bytes, found.tokens) == (7, 3)
    assert (found.kv_bytes, found.kv_sliding_bytes, found.kv_full_bytes, found.kv_predicted_bytes) == (30, 10, 20, 30)


def test_what_was_not_measured_is_none_and_never_zero() -> None:
    found = summarize([], [], 1, 0, [0, 0], None, None)
    assert set(found._asdict().values()) == {0, None}
    assert found.tokens == 0
    assert found.peak_memory_bytes is None
