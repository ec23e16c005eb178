"""What is kept of the scores that tokens were chosen by."""

import functools
import math

import pytest
import torch

from tokendyno.backend.worker.measure.finite import BestOfEach, BestScores, NotFinite, of_rows


def test_on_a_cpu_nothing_is_kept_of_a_run_whose_scores_are_numbers() -> None:
    """A tensor of each token would lie between the blocks of a growing cache."""
    best = BestScores(torch.float32)
    each = BestOfEach(best, 3, sampled=False)
    for length in range(3, 40):
        each(torch.zeros(2, length, dtype=torch.long), torch.tensor([[0.5, -math.inf], [1.0, 2.0]]))
    assert best._scores == []
    best.check()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_the_first_score_that_is_no_number_is_named_by_its_token_and_text(bad: float) -> None:
    best = BestScores(torch.float32)
    for token in range(9):
        scores = torch.tensor([1.0, bad if token >= 4 else 2.0])
        best.take(scores, functools.partial(of_rows, token, 2))
    with pytest.raises(NotFinite, match=r"token 4 \(counted from 0\) of text 2"):
        best.check()
    best.check()


def test_what_is_forgotten_is_no_fault() -> None:
    best = BestScores(torch.float32)
    best.take(torch.tensor([math.nan]), functools.partial(of_rows, 0, 1))
    best.forget()
    best.check()
