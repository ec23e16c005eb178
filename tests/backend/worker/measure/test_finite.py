"""What is kept of the scores that tokens were chosen by."""

import math

import pytest
import torch

from tokendyno.backend.worker.measure.finite import BestOfEach, BestScores, NotFinite


def test_on_a_cpu_nothing_is_kept_of_a_run_whose_scores_are_numbers() -> None:
    """A tensor of each token would lie between the blocks of a growing cache."""
    best = BestScores(torch.float32)
    each = BestOfEach(best, sampled=False)
    for length in range(3, 40):
        each(torch.zeros(2, length, dtype=torch.long), torch.tensor([[0.5, -math.inf], [1.0, 2.0]]))
    assert best._scores == []
    best.check()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_one_score_that_is_no_number_is_enough(bad: float) -> None:
    best = BestScores(torch.float32)
    for token in range(9):
        scores = torch.tensor([1.0, bad if token >= 4 else 2.0])
        best.take(scores)
    with pytest.raises(NotFinite, match="infinite" if bad == math.inf else "not a number"):
        best.check()
    best.check()


def test_what_is_forgotten_is_no_fault() -> None:
    best = BestScores(torch.float32)
    best.take(torch.tensor([math.nan]))
    best.forget()
    best.check()
