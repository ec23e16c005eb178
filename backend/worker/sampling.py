"""Chooses the next token from logits without asking the host: greedy, temperature, top-k and top-p.

The random numbers are a hash of seed, step, row and word. So nothing waits, nothing has to be registered with a
captured graph, and one seed gives one text on a CPU, compiled, and replayed. It is not the text that `generate`
samples with that seed, which draws from torch's generator.
"""

from typing import Any

import msgspec
import torch

_LOW_32 = 0xFFFFFFFF
# Multipliers and shifts of a 32-bit mixer with a low bias, both below 2**31 so that no product leaves int64:
# https://github.com/skeeto/hash-prospector (16 21f0aaad 15 735a2d97 15)
_MIX = ((16, 0x21F0AAAD), (15, 0x735A2D97))


class Sampling(msgspec.Struct, frozen=True):
    """temperature 0 is greedy; top_k 0 and top_p 1 leave the distribution whole."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0


def choose(logits: Any, sampling: Sampling, seed: Any, step: Any) -> Any:
    """The next ids, shape (B,), from logits (B, V). `seed` and `step`: int64 tensors of shape (1,)."""
    if sampling.temperature == 0:
        return logits.argmax(-1)  # the same in half precision: what is equal there was made equal before
    return (_warp(logits.float(), sampling) + _gumbel(logits.shape, seed, step)).argmax(-1)


def _warp(logits: Any, sampling: Sampling) -> Any:
    """As the warpers of `transformers` do it, in their order: temperature, top-k, top-p."""
    logits = logits / sampling.temperature
    if 0 < sampling.top_k < logits.shape[-1]:
        kth = logits.topk(sampling.top_k).values[:, -1:]
        logits = logits.masked_fill(logits < kth, -torch.inf)
    if sampling.top_p < 1:
        rising, order = logits.sort(dim=-1)
        drop = rising.softmax(-1).cumsum(-1) <= 1 - sampling.top_p
        drop[:, -1] = False
        logits = logits.masked_fill(drop.scatter(1, order, drop), -torch.inf)
    return logits


def _gumbel(shape: tuple[int, int], seed: Any, step: Any) -> Any:
    """Gumbel noise (B, V): the largest of logits + noise is a draw from their softmax."""
    batch, words = shape
    rows = torch.arange(batch, device=seed.device)[:, None]
    first = _mix(_mix(seed & _LOW_32) + step)
    second = _mix(first + _mix((seed >> 32) & _LOW_32) + rows)  # (B, 1)
    bits = _mix(_mix(torch.arange(words, device=seed.device) + second) ^ first)
    uniform = ((bits >> 9).float() + 0.5) * 2.0**-23  # 23 bits: neither 0 nor 1 in float32
    return -(-uniform.log()).log()


def _mix(x: Any) -> Any:
    x = x & _LOW_32
    for shift, factor in _MIX:
        x = ((x ^ (x >> shift)) * factor) & _LOW_32
    return x ^ (x >> 15)
