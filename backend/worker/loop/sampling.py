"""Samples the next token on the device, without waiting for the host: greedy, or temperature, top-k and top-p.

The random numbers are a hash of seed, step, row and token id. So nothing synchronizes, a captured graph needs no
generator state, and a seed gives the same text on a CPU, compiled and captured. `generate` samples another text with
that seed: it draws from torch's generator.
"""

from dataclasses import dataclass
from typing import Any

import torch

_LOW_32 = 0xFFFFFFFF
# Shifts and multipliers of a 32-bit mixer with low bias. The multipliers are below 2**31: no product leaves int64.
# https://github.com/skeeto/hash-prospector (16 21f0aaad 15 735a2d97 15)
_MIX = ((16, 0x21F0AAAD), (15, 0x735A2D97))


@dataclass(frozen=True)
class Sampling:
    """temperature 0 is greedy; top_k 0 and top_p 1 switch those filters off."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0


def sample(logits: Any, sampling: Sampling, seed: Any, step: Any) -> Any:
    """Token ids (B,) from logits (B, V). `seed` and `step` are int64 tensors of shape (1,)."""
    if sampling.temperature == 0:
        return logits.argmax(-1)  # no float32 needed: rounding has made its ties already
    return (_warp(logits.float(), sampling) + gumbel(logits.shape, seed, step)).argmax(-1)


def _warp(logits: Any, sampling: Sampling) -> Any:
    """Temperature, top-k and top-p, in the order and by the rules of transformers' logits warpers."""
    logits = logits / sampling.temperature
    if 0 < sampling.top_k < logits.shape[-1]:
        kth = logits.topk(sampling.top_k).values[:, -1:]
        logits = logits.masked_fill(logits < kth, -torch.inf)
    if sampling.top_p < 1:
        ascending, order = logits.sort(dim=-1)
        drop = ascending.softmax(-1).cumsum(-1) <= 1 - sampling.top_p
        drop[:, -1] = False
        logits = logits.masked_fill(drop.scatter(1, order, drop), -torch.inf)
    return logits


def gumbel(shape: tuple[int, int], seed: Any, step: Any) -> Any:
    """Gumbel noise (B, V): the argmax of logits + noise is a sample of their softmax."""
    batch, vocabulary = shape
    rows = torch.arange(batch, device=seed.device)[:, None]
    first = _mix(_mix(seed & _LOW_32) + step)
    second = _mix(first + _mix((seed >> 32) & _LOW_32) + rows)  # (B, 1)
    bits = _mix(_mix(torch.arange(vocabulary, device=seed.device) + second) ^ first)
    uniform = ((bits >> 9).float() + 0.5) * 2.0**-23  # 23 bits: neither 0 nor 1 in float32
    return -(-uniform.log()).log()


def _mix(x: Any) -> Any:
    x = x & _LOW_32
    for shift, factor in _MIX:
        x = ((x ^ (x >> shift)) * factor) & _LOW_32
    return x ^ (x >> 15)
