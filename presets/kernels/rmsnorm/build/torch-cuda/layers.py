"""RMSNorm as one Triton kernel, one program per row, computed in float32; transformers' own takes six kernels.

A single row is a new token. Its kernel may be launched before the one it depends on has ended, and allows the next one
to be (programmatic dependent launch).
"""

import functools

import torch
import triton
import triton.language as tl
from torch import nn
from torch.library import triton_op, wrap_triton
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

EARLY = True  # False: each kernel waits for the end of its predecessor


@triton.jit
def rms_norm_kernel(x, weight, out, columns, eps, OFFSET: tl.constexpr, BLOCK: tl.constexpr):
    """`x` and `out` are contiguous, (rows, columns). OFFSET is added to the weights."""
    row = tl.program_id(0).to(tl.int64) * columns
    column = tl.arange(0, BLOCK)
    inside = column < columns
    values = tl.load(x + row + column, mask=inside, other=0.0).to(tl.float32)
    learned = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32) + OFFSET
    scale = tl.rsqrt(tl.sum(values * values, axis=0) / columns + eps)
    tl.store(out + row + column, (values * scale * learned).to(out.dtype.element_ty), mask=inside)


@triton_op("tokendyno_rmsnorm::rms_norm", mutates_args={})
def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float, offset: float = 0.0) -> torch.Tensor:
    """Normalize over the last dimension; an operator into which torch.compile can see."""
    columns = x.shape[-1]
    rows = x.reshape(-1, columns).contiguous()
    out = torch.empty_like(rows)
    block = triton.next_power_of_2(columns)
    warps = min(max(block // 256, 1), 8)
    wrap_triton(rms_norm_kernel)[(rows.shape[0],)](
        rows, weight, out, columns, eps, OFFSET=offset, BLOCK=block, num_warps=warps
    )
    return out.view(x.shape)


@triton.jit
def rms_norm_kernel_early(x, weight, out, columns, eps, OFFSET: tl.constexpr, BLOCK: tl.constexpr):
    """The same for a single row."""
    gdc_launch_dependents()
    column = tl.arange(0, BLOCK)
    inside = column < columns
    learned = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32) + OFFSET
    gdc_wait()
    values = tl.load(x + column, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values, axis=0) / columns + eps)
    tl.store(out + column, (values * scale * learned).to(out.dtype.element_ty), mask=inside)


@functools.cache
def _can_be_early() -> bool:
    return torch.cuda.get_device_capability()[0] >= 9


def _of_one_row(x: torch.Tensor, weight: torch.Tensor, eps: float, offset: float) -> torch.Tensor:
    out = torch.empty_like(x)
    block = triton.next_power_of_2(x.numel())
    warps = min(max(block // 256, 1), 8)
    rms_norm_kernel_early[(1,)](
        x, weight, out, x.numel(), eps, OFFSET=offset, BLOCK=block, num_warps=warps, launch_pdl=True
    )
    return out


def _norm(x: torch.Tensor, weight: torch.Tensor, eps: float, offset: float) -> torch.Tensor:
    alone = x.is_cuda and x.numel() == x.shape[-1]
    if EARLY and alone and not torch.compiler.is_compiling() and _can_be_early():
        return _of_one_row(x.contiguous(), weight, eps, offset)
    return rms_norm(x, weight, eps, offset)


class RMSNorm(nn.Module):
    """Replaces the RMSNorm of Llama, Mistral, Qwen 3, OLMo, gpt-oss and others with the same two attributes."""

    can_torch_compile = True
    has_backward = False

    weight: torch.Tensor
    variance_epsilon: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return _norm(hidden_states, self.weight, self.variance_epsilon, 0.0)


class OffsetRMSNorm(nn.Module):
    """Replaces the RMSNorm of Gemma 3, which adds 1 to its weight."""

    can_torch_compile = True
    has_backward = False

    weight: torch.Tensor
    eps: float

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _norm(x, self.weight, self.eps, 1.0)
