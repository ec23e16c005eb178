"""Products of a matrix with several vectors, a token of each text of a batch: weights are still what is read.

Tensor cores multiply 16 or 32 vectors, of which some may be empty. What multiplies fastest depends on shape, number of
vectors and card, so it is measured during warm-up (`settings`): the library's product against tiles of several sizes.
Rows of 8 bits become numbers of the vectors' format, in which they are exact, on the way to the tensor cores: no
library's product reads them as they are.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from . import settings
from .description import GELU, RELU2
from .parts import Fused, activated, can_be_early, per_row
from .products import prefetch, reads
from .settings import LIBRARY, Settings


@triton.jit
def tokendyno_rows_norm(
    x,
    norm,
    shift,
    residual,
    out,
    K,
    WIDTH,
    eps,
    OFFSET: tl.constexpr,
    CENTRED: tl.constexpr,
    RESIDUAL: tl.constexpr,
    GROUPS: tl.constexpr,
    COLUMNS: tl.constexpr,
    EARLY: tl.constexpr,
):
    """out (B, K) = norm(x), by a program for each row, which begins WIDTH numbers behind the last; RESIDUAL is added to
    the norm, which is rounded first as in a model's own code. CENTRED: it is a LayerNorm, with a bias, `shift`. GROUPS:
    rows that have weights of their own."""
    if EARLY:
        gdc_launch_dependents()
    columns = tl.arange(0, COLUMNS)
    here = columns < K
    at = tl.program_id(0) * K + columns
    norm += tl.program_id(0) % GROUPS * K
    learned = tl.load(norm + columns, mask=here, other=0.0).to(tl.float32) + OFFSET
    if CENTRED:
        shifted = tl.load(shift + columns, mask=here, other=0.0).to(tl.float32)
    if EARLY:
        gdc_wait()
    vector = tl.load(x + tl.program_id(0) * WIDTH + columns, mask=here, other=0.0).to(tl.float32)
    if CENTRED:
        vector = tl.where(here, vector - tl.sum(vector, 0) / K, 0.0)
    vector = vector * tl.rsqrt(tl.sum(vector * vector, 0) / K + eps) * learned  # as `slabs` rounds it
    if CENTRED:
        vector += shifted
    if RESIDUAL:
        added = tl.load(residual + at, mask=here, other=0.0).to(tl.float32)
        vector = vector.to(out.dtype.element_ty).to(tl.float32) + added
    tl.store(out + at, vector.to(out.dtype.element_ty), mask=here)


@triton.jit
def widened(codes, kind: tl.constexpr):
    """Numbers of 8 bits in this format. The bits of an e4m3 number, spread, are those of a bfloat16 2**120 times as
    small: two at a time are scaled by one instruction, where a conversion takes a detour through float16."""
    if codes.dtype == tl.float8e4nv and kind == tl.bfloat16:
        return tl.inline_asm_elementwise(
            """{
            .reg .b32 a, b, c, d;
            prmt.b32 a, 0, $2, 0x5040;
            prmt.b32 b, 0, $2, 0x7060;
            and.b32 c, a, 0x7f007f00;
            and.b32 d, b, 0x7f007f00;
            shr.b32 c, c, 4;
            shr.b32 d, d, 4;
            lop3.b32 c, a, 0x80008000, c, 0xea;
            lop3.b32 d, b, 0x80008000, d, 0xea;
            mov.b32 a, 0x7b807b80;
            mov.b32 b, 0x80008000;
            fma.rn.bf16x2 $0, c, a, b;
            fma.rn.bf16x2 $1, d, a, b;
            }""",
            "=r,=r,r",
            [codes.to(tl.uint8, bitcast=True)],
            dtype=tl.bfloat16,
            is_pure=True,
            pack=4,
        )
    return codes.to(kind)


@triton.jit
def tokendyno_rows_product(
    given,
    B,
    N,
    K: tl.constexpr,
    FUSED: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    BB: tl.constexpr,
    TURNED: tl.constexpr,
    WHOLE: tl.constexpr,
    AHEAD: tl.constexpr,
):
    """out (B, N) of w (N, K) and x (B, K), as `Fused` says, without a norm.

    BB      vectors that are multiplied, B of them real; TURNED: rows of w, not vectors, are the rows of the product
    WHOLE   K and N are multiples of the tile
    AHEAD   elements of each row that are asked into L2 before x is ready
    """
    x, w, scale, bias, residual, out = given
    rows = tl.program_id(0) * BN + tl.arange(0, BN)
    tokens, columns = tl.arange(0, BB), tl.arange(0, BK)
    real, inside = (tokens < B)[:, None], (rows < N)[:, None]
    at = w + rows[:, None].to(tl.int64) * K + columns[None, :]
    more = at + tl.cast(N, tl.int64) * K
    if FUSED.EARLY:
        gdc_launch_dependents()
        line: tl.constexpr = 128 // (w.dtype.element_ty.primitive_bitwidth // 8)
        first = (
            w + tl.where(rows < N, rows, 0)[:, None].to(tl.int64) * K + (tl.arange(0, AHEAD // line) * line)[None, :]
        )
        prefetch(first)
        if FUSED.GATED:
            prefetch(first + tl.cast(N, tl.int64) * K)
        gdc_wait()
    total = tl.zeros((BN, BB) if TURNED else (BB, BN), tl.float32)
    second = total
    for k in tl.range(0, K, BK):
        here = (k + columns < K)[None, :]
        known = None if WHOLE else inside & here
        weights = tl.load(at + k, mask=known, other=None if WHOLE else 0.0, eviction_policy="evict_first")
        weights = widened(weights, x.dtype.element_ty)
        vectors = tl.load(x + tokens[:, None] * K + k + columns[None, :], mask=real & here, other=0.0)
        if TURNED:
            total = tl.dot(weights, tl.trans(vectors), total, input_precision="ieee")
        else:
            total = tl.dot(vectors, tl.trans(weights), total, input_precision="ieee")
        if FUSED.GATED:
            others = tl.load(more + k, mask=known, other=None if WHOLE else 0.0, eviction_policy="evict_first")
            others = widened(others, x.dtype.element_ty)
            if TURNED:
                second = tl.dot(others, tl.trans(vectors), second, input_precision="ieee")
            else:
                second = tl.dot(vectors, tl.trans(others), second, input_precision="ieee")
    if TURNED:
        total, second = tl.trans(total), tl.trans(second)
    if FUSED.SCALED:
        unit, other_unit = per_row(scale, rows, rows < N, N, FUSED)
        total *= unit[None, :]
        second *= other_unit[None, :]
    if FUSED.BIAS:
        constant, other_constant = per_row(bias, rows, rows < N, N, FUSED)
        total += constant[None, :]
        second += other_constant[None, :]
    total = activated(total, second, FUSED)
    to = tokens[:, None] * N + rows[None, :]
    stored = real & (rows < N)[None, :]
    if FUSED.RESIDUAL:
        total = total * FUSED.GAIN + tl.load(residual + to, mask=stored, other=0.0).to(tl.float32)
    tl.store(out + to, total.to(out.dtype.element_ty), mask=stored)


def fits(weight: torch.Tensor) -> bool:
    """Whether the kernel reads these rows: dense ones, or those of 8 bits that have a scale each."""
    plain = type(weight) in (torch.nn.Parameter, torch.Tensor) and weight.is_contiguous()
    kind = (weight.element_size() > 1 and weight.is_floating_point()) or reads(weight)
    return plain and kind and weight.shape[1] % 16 == 0


def norm(
    x: torch.Tensor,
    weight: torch.Tensor,
    eps: float,
    offset: float = 0.0,
    residual: torch.Tensor | None = None,
    shift: torch.Tensor | None = None,
) -> torch.Tensor:
    """residual + norm(x) of (..., K), or of a part of (B, 1, more), weights (K,); or of (..., G, K), weights (G, K).
    shift: the bias of a LayerNorm, else it is an RMSNorm."""
    early, out, columns = can_be_early(), torch.empty_like(x), triton.next_power_of_2(x.shape[-1])
    tokendyno_rows_norm[(x.shape[:-1].numel(),)](
        x,
        weight,
        x if shift is None else shift,
        x if residual is None else residual,
        out,
        x.shape[-1],
        x.shape[-1] if x.is_contiguous() else x.stride(0),
        eps,
        OFFSET=offset,
        CENTRED=shift is not None,
        RESIDUAL=residual is not None,
        GROUPS=weight.numel() // x.shape[-1],
        COLUMNS=columns,
        EARLY=early,
        launch_pdl=early,
        num_warps=min(16, max(1, columns // 256)),
    )
    return out


def product(x: torch.Tensor, w: torch.Tensor, **fused: object) -> torch.Tensor:
    """x (..., K) -> (..., N), in the way that is fastest for this shape. fused: fields of `Fused`, without a norm."""
    around = Fused(**fused)
    ways = settings.TILES_OR_LIBRARY if around.scale is None else settings.TILES_OF_8_BITS

    def run(way: str) -> torch.Tensor:
        return by_library(x, w, around) if way == LIBRARY else by_tiles(x, w, around, ways[way])

    key = settings.key_of(w, around.gated, x.shape[:-1].numel())
    return run(settings.choose(key, ways, run) or next(iter(ways)))


def by_library(x: torch.Tensor, w: torch.Tensor, fused: Fused) -> torch.Tensor:
    """The product as a model's own code computes it, rounded in between."""
    out, second = torch.nn.functional.linear(x, w, fused.bias), None
    if fused.gated:
        out, second = out.chunk(2, -1)
    if fused.activation == RELU2:
        out = torch.nn.functional.relu(out).square()
    elif fused.gated or fused.acted:
        gelu = fused.activation == GELU
        out = torch.nn.functional.gelu(out, approximate="tanh") if gelu else torch.nn.functional.silu(out)
    out = out if second is None else out * second
    return out if fused.residual is None else out * fused.gain + fused.residual


def by_tiles(x: torch.Tensor, w: torch.Tensor, fused: Fused, how: Settings) -> torch.Tensor:
    """The same in one kernel."""
    count, columns = x.shape[:-1].numel(), w.shape[1]
    rows = w.shape[0] // (2 if fused.gated else 1)
    out = torch.empty(*x.shape[:-1], rows, dtype=x.dtype, device=x.device)
    tokendyno_rows_product[(triton.cdiv(rows, how["BN"]),)](
        (x, w, *fused.tensors(x, "scale", "bias", "residual"), out),
        count,
        rows,
        K=columns,
        BB=max(8 if how["TURNED"] else 16, triton.next_power_of_2(count)),
        WHOLE=rows % how["BN"] == 0 and columns % how["BK"] == 0,
        AHEAD=512 if columns >= 512 else max(64, 128 // w.element_size()),
        **fused.constants(),
        **how,
    )
    return out
