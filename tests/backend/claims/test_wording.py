"""A verdict in words, as a reader sees it: how many of how many figures hold, and on which side the others miss."""

import math

import pytest

from tokendyno.backend.claims.declared import Figure
from tokendyno.backend.claims.formula import Bounds, verdict
from tokendyno.backend.claims.view import Standing, claimed_text, measured_text, remark

IN, BETTER, LOW, HIGH = (
    Standing("within"),
    Standing("exceeds", "above"),
    Standing("outside", "below"),
    Standing("outside", "above"),
)
REACHES, COVERS = Standing("overlaps", "above"), Standing("overlaps", "both")
ONCE, ONCE_LOW, MISSING, SHOWN = (
    Standing("overlaps", "", True),
    Standing("outside", "below", True),
    Standing("missing"),
    Standing("shown"),
)


@pytest.mark.parametrize(
    ("figures", "partly", "said"),
    [
        ([IN, SHOWN], False, "confirmed: "),
        ([IN, IN, IN], False, "confirmed: all 3 figures are within what was claimed"),
        ([IN], True, "partly confirmed: within what was claimed; a choice was in effect only in part"),
        ([BETTER], False, "exceeded: above what was claimed, which is better"),
        ([IN, HIGH], False, "partly confirmed: 1 of 2 figures is within what was claimed; the other is above it"),
        (
            [REACHES, BETTER, MISSING, MISSING],
            False,
            "partly confirmed: 1 of 4 figures is above what was claimed, which is better; the interval of one reaches "
            "above it; the other two were not measured",
        ),
        (
            [IN, ONCE],
            False,
            "partly confirmed: 1 of 2 figures is within what was claimed; the other is within it, but in one run only",
        ),
        ([COVERS], False, "not decided: the interval reaches below and above what was claimed"),
        ([ONCE], False, "not decided: within what was claimed, but in one run only"),
        (
            [MISSING, REACHES],
            False,
            "not decided: the interval of 1 of 2 figures reaches above what was claimed; the other was not measured",
        ),
        ([LOW], False, "not confirmed: below what was claimed"),
        ([ONCE_LOW], False, "not confirmed: below what was claimed, in one run only"),
        (
            [REACHES, LOW],
            False,
            "not confirmed: 1 of 2 figures is below what was claimed; the interval of the other reaches above it",
        ),
        ([MISSING, MISSING], False, "not tested here: "),
    ],
)
def test_a_verdict_says_how_many_hold_and_how_the_others_miss(figures: list[Standing], partly: bool, said: str) -> None:
    word = verdict([one.state for one in figures], partly)
    assert f"{word}: {remark(figures, word, partly)}" == said


def test_a_figure_says_that_it_is_of_one_run_and_what_never_pays_back() -> None:
    assert measured_text("s", Bounds(37.5, None, None)) == "37.5 s (one run, no interval)"
    assert measured_text("tokens", Bounds(math.inf, 1430.0, math.inf)) == "never (1,430 to never)"
    assert measured_text("tokens", Bounds(math.inf, math.inf, math.inf)) == "never"
    saved = Figure("t", "a figure", "peak_bytes", "less", "%", low=0.0)
    assert claimed_text(saved) == "more than 0%"
