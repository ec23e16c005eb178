"""Figures and verdicts at their edges."""

import math
from typing import Any

import pytest

from tokendyno.backend.claims.declared import Figure
from tokendyno.backend.claims.formula import Bounds, Side, State, Word, bounds, drifted, side, state, verdict
from tokendyno.backend.claims.samples import Samples
from tokendyno.backend.runs.statistics import interval
from tokendyno.backend.runs.summary import Measured, compare_pairs, pair_ratios

TESTS: dict[str, Samples] = {
    "t": {
        "A": {"token_s": [0.4, 0.44, 0.36], "weight_bytes": [400.0], "peak_bytes": [900.0, 1000.0, 950.0]},
        "B": {"token_s": [0.2, 0.2, 0.2], "weight_bytes": [100.0], "peak_bytes": [450.0] * 3, "cold_s": [20.0],
              "useful_tokens_s": [30.0]},
    },
    "half": {"A": {"token_s": [0.4, 0.4]}, "B": {"token_s": [0.4, 0.4]}},
    "rates": {"A": {"useful_tokens_s": [10.0, 10.0]}, "B": {"useful_tokens_s": [30.0, 30.0]}},
}  # fmt: skip


def figure(form: str = "times", metric: str = "token_s", test: str = "t", **more: Any) -> Figure:
    return Figure(test, "a figure", metric, form, "x", **more)  # type: ignore[arg-type]


def test_a_ratio_is_that_of_a_comparison_and_its_interval_that_of_runs_that_were_looked_at_once() -> None:
    a, b = (TESTS["t"][arm]["token_s"] for arm in "AB")
    ratios = pair_ratios([Measured([0.0, s]) for s in a], [Measured([0.0, s]) for s in b])
    found = compare_pairs(ratios, equal=False)
    assert found is not None
    one = bounds(figure(), TESTS)
    assert one is not None and one.low is not None and one.high is not None
    once = interval([math.log(x / y) for x, y in zip(a, b, strict=True)])
    assert once is not None and found.low is not None and found.low < math.exp(once[0])
    assert (one.value, one.low, one.high) == pytest.approx((found.ratio, *map(math.exp, once)))
    faster, less, share = (bounds(figure(form), TESTS) for form in ("faster", "less", "share"))
    assert faster is not None and less is not None and share is not None
    assert faster.value == pytest.approx(one.value - 1) and faster.low == pytest.approx(one.low - 1)
    assert less.value == pytest.approx(1 - 1 / one.value) and less.low == pytest.approx(1 - 1 / one.low)
    assert share.value == pytest.approx(1 / one.value) and share.high == pytest.approx(1 / one.low)


@pytest.mark.parametrize(
    ("of_figure", "value", "low", "high"),
    [
        (figure(metric="weight_bytes"), 4.0, 4.0, 4.0),
        (figure("value", "peak_bytes"), 950.0, 900.0, 1000.0),
        (figure("value", "cold_s", arm="B"), 20.0, None, None),
        (figure("difference", "peak_bytes"), 500.0, 450.0, 550.0),
        (figure("less", "peak_bytes"), 1 - 450 / (900 * 1000 * 950) ** (1 / 3), 0.5, 0.55),
        (figure(metric="useful_tokens_s", test="rates"), 3.0, 3.0, 3.0),
    ],
)
def test_forms(of_figure: Figure, value: float, low: float | None, high: float | None) -> None:
    found = bounds(of_figure, TESTS)
    assert found is not None
    assert found.value == pytest.approx(value)
    assert (found.low, found.high) == (pytest.approx(low) if low else low, pytest.approx(high) if high else high)


def test_compile_time_pays_back_after_as_many_tokens_as_save_it_and_never_where_nothing_is_saved() -> None:
    found = bounds(figure("payback"), TESTS)
    assert found is not None and found.value == pytest.approx(20.0 / 0.2)
    slower: dict[str, Samples] = {"t": {"A": {"token_s": [0.1, 0.1]}, "B": {"token_s": [0.2, 0.2], "cold_s": [20.0]}}}
    assert bounds(figure("payback"), slower) == Bounds(math.inf, math.inf, math.inf)
    maybe: dict[str, Samples] = {"t": {"A": {"token_s": [0.05, 0.4]}, "B": {"token_s": [0.1, 0.1], "cold_s": [20.0]}}}
    found = bounds(figure("payback"), maybe)
    assert found is not None and found.low is not None and (found.high, found.low < found.value) == (math.inf, True)


def test_one_test_over_another_adds_what_is_unknown_of_both() -> None:
    one, other, both = (bounds(figure(**more), TESTS) for more in ({}, {"test": "half"}, {"over": "half"}))
    assert one is not None and other is not None and both is not None and both.low is not None and one.low is not None
    assert both.value == pytest.approx(one.value / other.value)
    assert both.low == pytest.approx(one.low)  # the other is exact
    assert bounds(figure(over="none"), TESTS) is None


def test_what_was_not_measured_has_no_figure() -> None:
    assert bounds(figure(metric="ttft_s"), TESTS) is None and bounds(figure(test="none"), TESTS) is None
    assert bounds(figure(metric="useful_tokens_s"), TESTS) is None  # of one arm only


@pytest.mark.parametrize(
    ("low", "high", "better", "found", "expected", "beyond"),
    [
        (1.3, 1.5, "above", Bounds(1.4, 1.3, 1.5), "within", ""),
        (1.3, 1.5, "above", Bounds(1.4, 1.2999, 1.5), "overlaps", "below"),
        (1.3, 1.5, "above", Bounds(1.6, 1.5, 1.7), "overlaps", "above"),
        (1.3, 1.5, "above", Bounds(1.4, 1.2, 1.7), "overlaps", "both"),
        (1.3, 1.5, "above", Bounds(1.6, 1.5001, 1.7), "exceeds", "above"),
        (1.3, 1.5, "below", Bounds(1.6, 1.5001, 1.7), "outside", "above"),
        (1.3, 1.5, "below", Bounds(1.1, 1.0, 1.2999), "exceeds", "below"),
        (1.3, 1.5, "", Bounds(1.1, 1.0, 1.2999), "outside", "below"),
        (1.3, 1.5, "above", Bounds(1.4, None, None), "overlaps", ""),  # one run confirms nothing
        (1.3, None, "", Bounds(9.0, 8.0, math.inf), "within", ""),
        (None, 1.0, "", Bounds(0.5, -1.0, 1.0), "within", ""),
        (0.0, None, "", Bounds(0.0, 0.0, 0.0), "outside", "below"),  # to save nothing is not to save
        (0.0, None, "", Bounds(0.1, 0.0, 0.2), "overlaps", "below"),
        (None, None, "", Bounds(1.5, 1.0, 2.0), "shown", ""),
        (1.0, None, "", None, "missing", ""),
    ],
)
def test_a_figure_against_its_range(
    low: float | None, high: float | None, better: str, found: Bounds | None, expected: State, beyond: Side
) -> None:
    one = figure(low=low, high=high, better=better)
    assert (state(one, found), side(one, found)) == (expected, beyond)


@pytest.mark.parametrize(
    ("states", "partly", "word"),
    [
        (["within", "shown"], False, "confirmed"),
        (["within", "within"], True, "partly confirmed"),
        (["within", "outside"], False, "partly confirmed"),
        (["within", "missing"], False, "partly confirmed"),
        (["within", "exceeds"], False, "exceeded"),
        (["exceeds", "shown"], False, "exceeded"),
        (["exceeds", "overlaps"], False, "partly confirmed"),
        (["overlaps", "missing"], False, "not decided"),
        (["overlaps", "outside"], False, "not confirmed"),
        (["missing", "shown"], False, "not tested here"),
        ([], False, "not tested here"),
    ],
)
def test_a_verdict_follows_from_its_figures(states: list[State], partly: bool, word: Word) -> None:
    assert verdict(states, partly) == word


@pytest.mark.parametrize(
    ("now", "drift"), [(1.0, False), (1.1, False), (1.3, False), (1.301, True), (0.7, False), (0.699, True)]
)
def test_drift_is_what_leaves_the_stored_interval_with_its_room(now: float, drift: bool) -> None:
    assert drifted(Bounds(1.0, 0.9, 1.1), Bounds(now, None, None), 0.2) is drift


def test_what_never_paid_back_and_still_does_not_has_not_drifted() -> None:
    never = Bounds(math.inf, 9.0, math.inf)
    assert not drifted(never, never, 0.2)
    assert drifted(Bounds(9.0, 8.0, 10.0), never, 0.2) and drifted(never, Bounds(5.0, None, None), 0.2)
