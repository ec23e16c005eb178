"""Between the products of a layer with many tokens: the rotation of queries and keys, and the gate of an MLP.

In plain torch each is several kernels that read and write every token; here it is one.
"""

import torch
import triton
import triton.language as tl
from torch import nn

from . import description
from .parts import act

ROTATES = True  # False: transformers rotates
GATES = True  # False: torch applies gates
HEADS: tl.constexpr = tl.constexpr(8)  # of a token, at once
COLUMNS = 2048  # of a row of gates, in a program


@triton.jit
def _rotate_heads(x, out, batch, token, x_strides, out_strides, count, angles, HALF: tl.constexpr):
    """All heads of a token of x (B, heads, tokens, 2 * HALF), whose strides are given without the last, 1."""
    first_cos, first_sin, second_cos, second_sin = angles
    column = tl.arange(0, triton.next_power_of_2(HALF))
    x += batch.to(tl.int64) * x_strides[0] + token.to(tl.int64) * x_strides[2]
    out += batch.to(tl.int64) * out_strides[0] + token.to(tl.int64) * out_strides[2]
    for begin in range(0, count, HEADS):
        heads = begin + tl.arange(0, HEADS)
        inside = (heads < count)[:, None] & (column < HALF)[None, :]
        at = x + heads[:, None] * x_strides[1] + column[None, :]
        first = tl.load(at, mask=inside, other=0.0).to(tl.float32)
        second = tl.load(at + HALF, mask=inside, other=0.0).to(tl.float32)
        to = out + heads[:, None] * out_strides[1] + column[None, :]
        kind = out.dtype.element_ty
        tl.store(to, (first * first_cos - second * first_sin).to(kind), mask=inside)
        tl.store(to + HALF, (second * second_cos + first * second_sin).to(kind), mask=inside)


@triton.jit
def tokendyno_prompt_rotate(
    queries,
    keys,
    cos,
    sin,
    outs,
    strides,
    angle_strides,
    T,
    counts,
    HALF: tl.constexpr,
    AWAY: tl.constexpr,
):
    """outs = queries and keys (B, heads, T, 2 * HALF), each rotated by its token's cos and sin, (B or 1, T, HALF) or
    twice as wide; AWAY: where the angles of the second half stand. A program for each token."""
    batch, token = tl.program_id(0) // T, tl.program_id(0) % T
    column = tl.arange(0, triton.next_power_of_2(HALF))
    known = column < HALF
    at = batch * angle_strides[0] + token * angle_strides[1] + column
    angles = (
        tl.load(cos + at, mask=known, other=0.0).to(tl.float32)[None, :],
        tl.load(sin + at, mask=known, other=0.0).to(tl.float32)[None, :],
        tl.load(cos + at + AWAY, mask=known, other=0.0).to(tl.float32)[None, :],
        tl.load(sin + at + AWAY, mask=known, other=0.0).to(tl.float32)[None, :],
    )
    _rotate_heads(queries, outs[0], batch, token, strides[0], strides[1], counts[0], angles, HALF)
    _rotate_heads(keys, outs[1], batch, token, strides[2], strides[3], counts[1], angles, HALF)


@triton.jit
def tokendyno_prompt_gate(wide, out, N, ACTIVATION: tl.constexpr, COLUMNS: tl.constexpr):
    """out (rows, N) = act(gate) * up of wide (rows, 2N), gate before up."""
    row, column = tl.program_id(0).to(tl.int64), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < N
    at = wide + row * 2 * N + column
    gate = tl.load(at, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(at + N, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * N + column, (act(gate, ACTIVATION) * up).to(out.dtype.element_ty), mask=inside)


def rotate(
    q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, unsqueeze_dim: int = 1
) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries and keys (B, heads, T, D), with unsqueeze_dim 2 (B, T, heads, D), rotated half by half by the angles of
    their tokens, cos and sin (B or 1, T, D or D / 2)."""
    outs = torch.empty_like(q), torch.empty_like(k)
    four = [one if unsqueeze_dim == 1 else one.transpose(1, 2) for one in (q, outs[0], k, outs[1])]
    batch, heads, tokens, size = four[0].shape
    tokendyno_prompt_rotate[(batch * tokens,)](
        q,
        k,
        cos,
        sin,
        outs,
        tuple(one.stride()[:3] for one in four),
        (cos.stride(0) if cos.shape[0] > 1 else 0, cos.stride(1)),
        tokens,
        (heads, four[2].shape[1]),
        HALF=size // 2,
        AWAY=cos.shape[-1] - size // 2,
    )
    return outs


def can_rotate(function: nn.Module, q: torch.Tensor, k: torch.Tensor, *angles: object) -> bool:
    """Whether `function`, which a model calls to rotate, computes what `rotate` does of these: as a first call shows,
    outside of a graph's capture."""
    cos, sin, dim = (*angles, 1)[:3]
    if not (ROTATES and q.is_cuda and q.ndim == 4 and dim in (1, 2)) or torch.compiler.is_compiling():
        return False
    if q.shape[-1] != k.shape[-1] or q.shape[-1] not in (cos.shape[-1], 2 * cos.shape[-1]) or q.shape[-1] % 2:
        return False
    if cos.ndim != 3 or any(one.stride(-1) != 1 for one in (q, k, cos, sin)) or cos.stride() != sin.stride():
        return False
    if not hasattr(function, "tokendyno_rotates"):
        if torch.cuda.is_current_stream_capturing():
            return False
        pairs = zip(rotate(q, k, *angles), type(function).forward(function, q, k, *angles), strict=True)
        near = 4 * torch.finfo(q.dtype).eps
        function.tokendyno_rotates = all(bool((a - b).float().norm() <= near * b.float().norm()) for a, b in pairs)
    return function.tokendyno_rotates


def gate_of(mlp: nn.Module, x: torch.Tensor) -> tuple[nn.Module, nn.Module, int] | None:
    """Of an MLP with a gate the linear layer that is gate and up, that after it, and the activation, if the kernel
    computes what is between them for x (..., K)."""
    if not (GATES and x.is_cuda) or torch.compiler.is_compiling():
        return None
    wide, down, activation = description.feed_forward(mlp)
    kind = description.ACTIVATIONS.get(type(activation))
    return None if wide is None or kind is None else (wide, down, kind)


def gated(wide: torch.Tensor, activation: int) -> torch.Tensor:
    """act(gate) * up (..., N), of (..., 2N) with the gate first."""
    wide = wide.contiguous()
    columns, rows = wide.shape[-1] // 2, wide.shape[:-1].numel()
    out = wide.new_empty(*wide.shape[:-1], columns)
    if rows:
        tokendyno_prompt_gate[(rows, triton.cdiv(columns, COLUMNS))](wide, out, columns, activation, COLUMNS)
    return out
