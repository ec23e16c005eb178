"""What several kernels share: what is fused to a product, float32 of numbers, activations, and rotation."""

import functools
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from triton.experimental.gluon import language as gl

from . import description

GELU: tl.constexpr = tl.constexpr(description.GELU)
RELU2: tl.constexpr = tl.constexpr(description.RELU2)
barrier = gl.barrier if hasattr(gl, "barrier") else gl.thread_barrier  # the latter in Triton 3.6
EARLY = True  # False: each kernel waits for the end of its predecessor


def can_be_early() -> bool:
    """Whether kernels are launched before their predecessor has ended (programmatic dependent launch)."""
    return EARLY and capability() >= (9, 0)


@functools.cache
def capability() -> tuple[int, int]:
    return torch.cuda.get_device_capability()


class Flags(NamedTuple):
    """What of `Fused` a kernel is compiled with. EARLY: it is launched before its predecessor has ended."""

    NORM: bool
    OFFSET: float
    CENTRED: bool
    SCALED: bool
    BIAS: bool
    RESIDUAL: bool
    GAIN: float
    GATED: bool
    ACTED: bool
    ACTIVATION: int
    EARLY: bool


class Fused(NamedTuple):
    """What kernels compute around the product of a matrix w (N, K) with a vector x (K,):

        out (N,) = residual + gain * act(scale * (w @ norm(x)) + bias)

    norm, eps, offset   an RMSNorm: its weights (K,), to which offset is added; None: no norm
    shift     the bias (K,) of a LayerNorm, else it is an RMSNorm
    scale     of each row of 8-bit weights; of 4-bit ones what their kernel reads beside them
    acted, activation   there is an activation, of those in `description`
    gated     w is (2N, K), gate above up, and out = residual + gain * act(gate) * up
    """

    norm: torch.Tensor | None = None
    eps: float = 0.0
    offset: float = 0.0
    shift: torch.Tensor | None = None
    scale: torch.Tensor | None = None
    bias: torch.Tensor | None = None
    residual: torch.Tensor | None = None
    gated: bool = False
    acted: bool = False
    activation: int = description.SILU
    gain: float = 1.0

    def tensors(self, x: torch.Tensor, *names: str) -> list[torch.Tensor]:
        """These of its tensors; x stands for one that there is not, and is not read."""
        return [x if getattr(self, name) is None else getattr(self, name) for name in names]

    def constants(self) -> dict[str, object]:
        """Those of a kernel that computes this, and how it is launched."""
        norm, shift, scale, bias, residual = (
            one is not None for one in (self.norm, self.shift, self.scale, self.bias, self.residual)
        )
        after = (self.gain, self.gated, self.acted, self.activation)
        flags = Flags(norm, self.offset, shift, scale, bias, residual, *after, can_be_early())
        return {"FUSED": flags, "launch_pdl": flags.EARLY}


@triton.jit
def wide(x):
    """x in float32. Two numbers of bfloat16 in a register take two instructions; a compiler of its own takes three."""
    if x.dtype == tl.bfloat16:
        return tl.inline_asm_elementwise(
            "shl.b32 $0, $2, 16; and.b32 $1, $2, 0xffff0000;", "=&f,=&f,r", [x], dtype=tl.float32, is_pure=True, pack=2
        )
    return x.to(tl.float32)


@triton.jit
def per_row(numbers, rows, inside, N, FUSED: tl.constexpr):
    """float32: what each row has in `numbers`, a bias or a scale; and GATED the row of up that belongs to it."""
    first = tl.load(numbers + rows, mask=inside, other=0.0).to(tl.float32)
    second = first
    if FUSED.GATED:
        second = tl.load(numbers + N + rows, mask=inside, other=0.0).to(tl.float32)
    return first, second


@triton.jit
def act(first, ACTIVATION: tl.constexpr):
    """silu(first), GELU in its tanh form, or relu(first) squared; float32."""
    slope = first
    if ACTIVATION == RELU2:
        return tl.maximum(first, 0.0) * first
    if ACTIVATION == GELU:  # (1 + tanh(y)) / 2 is 1 / (1 + exp(-2 y))
        slope = 1.5957691216057308 * (first + 0.044715 * first * first * first)
    return first / (1 + tl.exp(-slope))


@triton.jit
def activated(first, second, FUSED: tl.constexpr):
    """act(first) * second if GATED, act(first) if ACTED, else first."""
    if FUSED.GATED:
        first = act(first, FUSED.ACTIVATION) * second
    elif FUSED.ACTED:
        first = act(first, FUSED.ACTIVATION)
    return first


@triton.jit
def weighed(scores, top):
    """A block (R, N) of a softmax that is taken block by block: the largest score of each row so far, what sums of
    earlier blocks shrink by, and the weights of this one. top: (R,), the largest score before, -inf without one."""
    best = tl.maximum(top, tl.max(scores, 1))
    safe = tl.where(best == float("-inf"), 0.0, best)
    return best, tl.exp(top - safe), tl.exp(scores - safe[:, None])


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
