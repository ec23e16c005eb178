"""What several kernels share."""

import functools

import torch
import triton
import triton.language as tl


@functools.cache
def can_be_early() -> bool:
    """Whether this GPU launches a kernel before its predecessor has ended: Hopper and later."""
    return torch.cuda.get_device_capability()[0] >= 9


@triton.jit
def act(first, GELU: tl.constexpr):
    """silu(first), or GELU in its tanh form; float32."""
    slope = first
    if GELU:  # (1 + tanh(y)) / 2 is 1 / (1 + exp(-2 y))
        slope = 1.5957691216057308 * (first + 0.044715 * first * first * first)
    return first / (1 + tl.exp(-slope))


@triton.jit
def gate(first, second, GELU: tl.constexpr):
    """act(first) * second."""
    return act(first, GELU) * second
