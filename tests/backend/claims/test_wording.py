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
COVERS, ONCE, MISSING, SHOWN = (
    Standing("overlaps", "both"),
    Standing("overlaps", "", True),
    Standing("missing"),
    Standing("shown"),
)


@pytest.mark.parametrize(
    ("figures", "partly", "said"),
    [
        ([IN, SHOWN], False, "confirmed: "),
        ([IN], True, "partly confirmed: within the claimed range; a choice was in effect only in part"),
        (
            [HIGH, BETTER, IN, IN],
            False,
            "partly confirmed: of 4 figures 2 within the claimed range; 1 above the claimed range, which is better; "
            "1 above the claimed range",
        ),
        (
            [COVERS, MISSING],
            False,
            "not decided: of 2 figures 1 with an interval that reaches below and above the claimed range; "
            "1 not measured",
        ),
        ([ONCE], False, "not decided: within the claimed range, in one run only"),
        ([LOW], False, "not confirmed: below the claimed range"),
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
