"""What a change costs, in words: each tolerance at its edge."""

import pytest

from tests.backend.runs.test_quality import A, B, run_of
from tokendyno.backend.runs.quality import ReadingDifference
from tokendyno.backend.views.quality import Cost, cost_of, quality_sentence


def difference(kl: float, agreement: float, ratio: float = 1.0, most: float = 0.5) -> ReadingDifference:
    return ReadingDifference(ratio, ratio, ratio, kl, most, agreement, None if agreement == 1 else 7)


@pytest.mark.parametrize(
    ("found", "cost"),
    [
        (difference(0.0, 1.0, most=0.0), "none"),
        (difference(0.0, 1.0, most=1e-9), "rounding"),
        (difference(0.001, 0.99), "rounding"),
        (difference(0.0011, 0.99), "small"),
        (difference(0.001, 0.98), "small"),
        (difference(0.05, 0.9, ratio=1.05), "small"),
        (difference(0.051, 0.9), "large"),
        (difference(0.04, 0.9, ratio=1.06), "large"),
    ],
)
def test_the_cost_by_its_tolerances(found: ReadingDifference, cost: Cost) -> None:
    assert cost_of(found) == cost


def test_the_sentence_has_the_figures() -> None:
    said = quality_sentence(run_of(A=A, B=B).snapshot())
    assert said.startswith("B has a large quality cost: over 6 positions the KL divergence from A is 0.100 nats")
    assert "83.3%" in said and "1.40\u00d7" in said


def test_equal_arms_are_said_to_be_equal() -> None:
    same = [A[0], A[1]]
    with_kl = [type(one)(one.ids, one.nll_nats, one.top, [0.0] * len(one.ids)) for one in same]
    assert "bit for bit" in quality_sentence(run_of(A=A, B=with_kl).snapshot())


def test_one_arm_has_a_perplexity() -> None:
    assert quality_sentence(run_of(A=A).snapshot()).startswith("A predicts 6 tokens with a perplexity of 7.39")


def test_random_weights_are_not_judged() -> None:
    run = run_of(model="random:gpt2", A=A, B=B)
    said = quality_sentence(run.snapshot())
    assert said.startswith("The KL divergence of B from A is 0.100 nats over 6 positions. The weights are random")
    assert "costs" not in said
