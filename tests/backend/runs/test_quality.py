"""Two arms over given texts, against figures worked out by hand."""

import math

import pytest

from tokendyno.backend.config import ArmRequest, Request, reading_of
from tokendyno.backend.messages import Scored
from tokendyno.backend.quality import Quality, QualityText
from tokendyno.backend.runs.quality import readings, whole_reading
from tokendyno.backend.runs.records import ArmEvent, ArmPlanned, Created
from tokendyno.backend.runs.run import Run

ASKED = Quality([QualityText("one", "First."), QualityText("two", "Second.")])
A = [Scored([5, 6, 7, 8], [1.0, 2.0, 3.0, 2.0], [5, 6, 1, 1]), Scored([9, 9], [0.0, 4.0], [9, 2])]
B = [
    Scored([5, 6, 7, 8], [1.5, 2.0, 3.5, 3.0], [5, 6, 1, 2], [0.0, 0.1, 0.3, 0.2]),
    Scored([9, 9], [0.0, 4.0], [9, 2], [0.0, 0.0]),
]


def run_of(model: str = "pocket", **arms: list[Scored]) -> Run:
    named = [ArmRequest(name) for name in arms]
    planned = [ArmPlanned(name, {}, {}, []) for name in arms]
    run = Run(Created("r", 0.0, Request(model, named, reading_of(ASKED), None, ASKED), planned, "", "", {}, "cpu"))
    for name, found in arms.items():
        for event in found:
            run.append(ArmEvent(name, 0, 1.0, event))
    return run


def test_each_text_and_all_of_them() -> None:
    now = run_of(A=A, B=B).snapshot()
    one, two = readings(now)
    assert (one.name, one.positions, two.name, two.positions) == ("one", 4, "two", 2)
    assert one.arms["A"].perplexity == pytest.approx(math.exp(2.0))
    assert one.arms["B"].nll_nats == 2.5
    found = one.difference
    assert found is not None
    assert found.perplexity_ratio == pytest.approx(math.exp(0.5))
    assert found.kl_nats == pytest.approx(0.15) and found.kl_max_nats == 0.3
    assert (found.top1_agreement, found.first_divergence) == (0.75, 3)
    half = 3.18245 * math.sqrt(0.5 / 3) / 2  # of 0.5, 0, 0.5 and 1: three degrees of freedom
    assert math.log(found.perplexity_high) == pytest.approx(0.5 + half, rel=1e-4)
    assert math.log(found.perplexity_low) == pytest.approx(0.5 - half, rel=1e-4)
    whole = whole_reading(now)
    assert whole is not None and whole.difference is not None
    assert (whole.positions, whole.difference.first_divergence) == (6, 3)
    assert whole.difference.kl_nats == pytest.approx(0.1)
    assert whole.difference.top1_agreement == pytest.approx(5 / 6)


def test_arms_that_agree_have_no_divergence() -> None:
    two = readings(run_of(A=A, B=B).snapshot())[1].difference
    assert two is not None and two.first_divergence is None
    assert (two.perplexity_ratio, two.perplexity_low, two.perplexity_high) == (1.0, 1.0, 1.0)


def test_while_b_reads_its_second_text_only_the_first_counts() -> None:
    now = run_of(A=A, B=B[:1]).snapshot()
    assert [one.name for one in readings(now)] == ["one"]
    whole = whole_reading(now)
    assert whole is not None and whole.positions == 4


def test_one_arm_has_perplexities_and_nothing_to_compare() -> None:
    one, _ = readings(run_of(A=A).snapshot())
    assert one.difference is None and one.arms["A"].nll_nats == 2.0


def test_arms_that_read_different_positions_are_never_compared() -> None:
    """As a file that was made elsewhere may have them."""
    for short in (Scored([9], [0.0], [9, 2], [0.0]), Scored([9, 9], [0.0, 4.0], [9], [0.0, 0.0])):
        with pytest.raises(ValueError, match="zip"):
            readings(run_of(A=A, B=[B[0], short]).snapshot())


def test_before_any_text_there_is_nothing() -> None:
    now = run_of(A=A, B=[]).snapshot()
    assert readings(now) == [] and whole_reading(now) is None
    assert readings(run_of().snapshot()) == [] and whole_reading(run_of().snapshot()) is None
