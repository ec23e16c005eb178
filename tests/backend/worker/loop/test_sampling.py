"""Tokens are sampled from the distribution that transformers' warpers leave, reproducibly by seed."""

import pytest
import torch
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from tokendyno.backend.worker.loop.sampling import Sampling, _warp, gumbel, sample

SEED, STEP = torch.tensor([7]), torch.tensor([3])


def logits(rows: int = 2, words: int = 50) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(rows, words) * 2


@pytest.mark.parametrize("top_k", [0, 1, 5, 500])
@pytest.mark.parametrize("top_p", [1.0, 0.9, 0.3, 1e-6])
def test_the_warped_logits_are_those_of_transformers(top_k: int, top_p: float) -> None:
    given = logits()
    expected = TemperatureLogitsWarper(0.7)(None, given)
    if top_k:
        expected = TopKLogitsWarper(top_k)(None, expected)
    if top_p < 1:
        expected = TopPLogitsWarper(top_p)(None, expected)
    assert torch.equal(_warp(given, Sampling(0.7, top_k, top_p)), expected)


def test_without_a_temperature_the_largest_is_chosen() -> None:
    assert torch.equal(sample(logits(), Sampling(), SEED, STEP), logits().argmax(-1))


def test_draws_follow_the_softmax() -> None:
    """20,000 draws: every frequency within 5 standard deviations of its probability."""
    draws = 20_000
    one = logits(1, 8)
    seen = sample(one.expand(draws, 8), Sampling(1.0), SEED, STEP)
    expected = one[0].softmax(-1)
    found = torch.bincount(seen, minlength=8) / draws
    deviation = (expected * (1 - expected) / draws).sqrt()
    assert ((found - expected).abs() < 5 * deviation).all()


def test_noise_differs_by_seed_step_row_and_word() -> None:
    seeds = [torch.tensor([s]) for s in (0, 1, 2**40, -5)]
    drawn = [gumbel((2, 100), seed, torch.tensor([step])) for seed in seeds for step in range(3)]
    everything = torch.stack(drawn).flatten()
    assert everything.isfinite().all()
    assert everything.unique().numel() > 0.999 * everything.numel()


def test_noise_is_the_same_for_the_same_seed_and_step() -> None:
    assert torch.equal(gumbel((2, 9), SEED, STEP), gumbel((2, 9), SEED.clone(), STEP.clone()))


def test_steps_are_independent() -> None:
    """The same two words, at 2,000 steps: the chance that both steps of a pair agree is that of chance."""
    even = torch.zeros(1, 2)
    chosen = torch.cat([sample(even, Sampling(1.0), SEED, torch.tensor([s])) for s in range(2000)]).float()
    assert abs(float(chosen.mean()) - 0.5) < 0.06
    pairs = (chosen[:-1] == chosen[1:]).float()
    assert abs(float(pairs.mean()) - 0.5) < 0.06
