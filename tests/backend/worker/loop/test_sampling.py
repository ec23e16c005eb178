"""Tokens are sampled from the distribution that transformers' warpers leave, reproducibly by seed."""

import pytest
import torch
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from tokendyno.backend.worker.loop.sampling import Sampling, _warp, sample

SEED, STEP = torch.tensor([7]), torch.tensor([3])


def logits(rows: int = 2, words: int = 50) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(rows, words) * 2


@pytest.mark.parametrize("top_k", [0, 1, 5, 500])
@pytest.mark.parametrize("top_p", [1.0, 0.9, 0.3, 1e-6])
def test_the_warped_logits_are_those_of_transformers(top_k: int, top_p: float) -> None:
    scores = logits()
    expected = TemperatureLogitsWarper(0.7)(None, scores)
    if top_k:
        expected = TopKLogitsWarper(top_k)(None, expected)
    if top_p < 1:
        expected = TopPLogitsWarper(top_p)(None, expected)
    assert torch.equal(_warp(scores, Sampling(0.7, top_k, top_p)), expected)


def test_without_a_temperature_the_largest_is_chosen() -> None:
    assert torch.equal(sample(logits(), Sampling(), SEED, STEP), logits().argmax(-1))


def test_draws_follow_the_softmax() -> None:
    """20,000 draws: every frequency within 5 standard deviations of its probability."""
    draws = 20_000
    row = logits(1, 8)
    ids = sample(row.expand(draws, 8), Sampling(1.0), SEED, STEP)
    expected = row[0].softmax(-1)
    shares = torch.bincount(ids, minlength=8) / draws
    deviation = (expected * (1 - expected) / draws).sqrt()
    assert ((shares - expected).abs() < 5 * deviation).all()
