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
def wide(x):
    """x in float32. Two numbers of bfloat16 in a register take two instructions; a compiler of its own takes three."""
    if x.dtype == tl.bfloat16:
        return tl.inline_asm_elementwise(
            "shl.b32 $0, $2, 16; and.b32 $1, $2, 0xffff0000;", "=&f,=&f,r", [x], dtype=tl.float32, is_pure=True, pack=2
        )
    return x.to(tl.float32)


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


@triton.jit
def partner(dims, ROTATED: tl.constexpr, PAIRS: tl.constexpr):
    """What each of the ROTATED dimensions of a head is rotated with: its neighbour, or the one half of them away."""
    return dims ^ 1 if PAIRS else (dims + ROTATED // 2) % ROTATED


@triton.jit
def angle(dims, ANGLES: tl.constexpr, PAIRS: tl.constexpr):
    """Which of ANGLES each dimension is rotated by."""
    return dims // 2 % ANGLES if PAIRS else dims % ANGLES


@triton.jit
def leads(dims, ROTATED: tl.constexpr, PAIRS: tl.constexpr):
    """Whether each dimension is the first of the two that are rotated with each other."""
    return dims % 2 == 0 if PAIRS else dims < ROTATED // 2
