"""Products of a matrix with several vectors, a token of each text of a batch: weights are still what is read.

Tensor cores multiply 16 or 32 vectors, of which some may be empty. What multiplies fastest depends on shape, number of
vectors and card, so it is measured when a shape is first seen, which is during warm-up, and kept: the library's product
against the tile sizes in WAYS. `CHOSEN` says what was found. Rows of 8 bits become numbers of the vectors' format, in
which they are exact, on the way to the tensor cores: no library's product reads them as they are.
"""

from collections.abc import Callable

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from . import kept
from .products import _prefetch, act, can_be_early, gate, key_of, reads

MOST = 32  # vectors
LATE = 1.2  # a layer of our products alone was faster than one with the library's where it is faster by up to 14%
LIBRARY = "library"
WAYS: dict[str, dict[str, int]] = {
    "32x128, 4 ahead": {"BN": 32, "BK": 128, "TURNED": 0, "num_warps": 4, "num_stages": 4},
    "32x128, 9 ahead": {"BN": 32, "BK": 128, "TURNED": 0, "num_warps": 4, "num_stages": 9},
    "32x128, 14 ahead": {"BN": 32, "BK": 128, "TURNED": 0, "num_warps": 4, "num_stages": 14},
    "16x256, 6 ahead": {"BN": 16, "BK": 256, "TURNED": 0, "num_warps": 4, "num_stages": 6},
    "64x128, 4 ahead, turned": {"BN": 64, "BK": 128, "TURNED": 1, "num_warps": 4, "num_stages": 4},
    "64x128, 6 ahead, turned": {"BN": 64, "BK": 128, "TURNED": 1, "num_warps": 4, "num_stages": 6},
}
"""Tile sizes: rows of the matrix in a program, columns loaded at once, and loads under way."""
OF_8_BITS: dict[str, dict[str, int]] = WAYS | {
    "32x256, 4 ahead": {"BN": 32, "BK": 256, "TURNED": 0, "num_warps": 4, "num_stages": 4},
    "32x256, 9 ahead": {"BN": 32, "BK": 256, "TURNED": 0, "num_warps": 4, "num_stages": 9},
    "64x256, 4 ahead, turned": {"BN": 64, "BK": 256, "TURNED": 1, "num_warps": 4, "num_stages": 4},
}

ALL = {LIBRARY: torch.__version__, **WAYS}
CHOSEN: dict[kept.Key, kept.Measured] = {}
"""(card, vectors, rows, columns, gated, dtype) -> the fastest way, and microseconds of each that ran."""


@triton.jit
def tokendyno_rows_norm(
    x,
    norm,
    shift,
    residual,
    out,
    K,
    eps,
    OFFSET: tl.constexpr,
    CENTRED: tl.constexpr,
    RESIDUAL: tl.constexpr,
    COLUMNS: tl.constexpr,
    EARLY: tl.constexpr,
):
    """out (B, K) = norm(x), by a program for each row; RESIDUAL is added to the norm, which is rounded first as in a
    model's own code. CENTRED: it is a LayerNorm, with a bias, `shift`."""
    if EARLY:
        gdc_launch_dependents()
    columns = tl.arange(0, COLUMNS)
    here = columns < K
    at = tl.program_id(0) * K + columns
    learned = tl.load(norm + columns, mask=here, other=0.0).to(tl.float32) + OFFSET
    if CENTRED:
        shifted = tl.load(shift + columns, mask=here, other=0.0).to(tl.float32)
    if EARLY:
        gdc_wait()
    vector = tl.load(x + at, mask=here, other=0.0).to(tl.float32)
    if CENTRED:
        vector = tl.where(here, vector - tl.sum(vector, 0) / K, 0.0)
    vector *= tl.rsqrt(tl.sum(vector * vector, 0) / K + eps) * learned
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
    x,
    w,
    scale,
    bias,
    residual,
    out,
    B,
    N,
    K: tl.constexpr,
    SCALED: tl.constexpr,
    BIAS: tl.constexpr,
    RESIDUAL: tl.constexpr,
    GAIN: tl.constexpr,
    GATED: tl.constexpr,
    ACTED: tl.constexpr,
    GELU: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    BB: tl.constexpr,
    TURNED: tl.constexpr,
    WHOLE: tl.constexpr,
    AHEAD: tl.constexpr,
    EARLY: tl.constexpr,
):
    """out (B, N) = residual + x (B, K) @ w (N, K).T + bias; gated: w is (2N, K), out = act(first) * second.

    SCALED  w is of 8 bits, with a scale for each row
    ACTED   out = residual + act(...), as in `products`
    BB      vectors that are multiplied, B of them real; TURNED: rows of w, not vectors, are the rows of the product
    WHOLE   K and N are multiples of the tile
    AHEAD   elements of each row that are asked into L2 before x is ready; EARLY: launched before its predecessor ended
    """
    rows = tl.program_id(0) * BN + tl.arange(0, BN)
    tokens, columns = tl.arange(0, BB), tl.arange(0, BK)
    real, inside = (tokens < B)[:, None], (rows < N)[:, None]
    at = w + rows[:, None].to(tl.int64) * K + columns[None, :]
    more = at + tl.cast(N, tl.int64) * K
    if EARLY:
        gdc_launch_dependents()
        line: tl.constexpr = 128 // (w.dtype.element_ty.primitive_bitwidth // 8)
        first = (
            w + tl.where(rows < N, rows, 0)[:, None].to(tl.int64) * K + (tl.arange(0, AHEAD // line) * line)[None, :]
        )
        _prefetch(first)
        if GATED:
            _prefetch(first + tl.cast(N, tl.int64) * K)
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
        if GATED:
            others = tl.load(more + k, mask=known, other=None if WHOLE else 0.0, eviction_policy="evict_first")
            others = widened(others, x.dtype.element_ty)
            if TURNED:
                second = tl.dot(others, tl.trans(vectors), second, input_precision="ieee")
            else:
                second = tl.dot(vectors, tl.trans(others), second, input_precision="ieee")
    if TURNED:
        total, second = tl.trans(total), tl.trans(second)
    if SCALED:
        total *= tl.load(scale + rows, mask=rows < N, other=0.0).to(tl.float32)[None, :]
        if GATED:
            second *= tl.load(scale + N + rows, mask=rows < N, other=0.0).to(tl.float32)[None, :]
    if BIAS:
        total += tl.load(bias + rows, mask=rows < N, other=0.0).to(tl.float32)[None, :]
        if GATED:
            second += tl.load(bias + N + rows, mask=rows < N, other=0.0).to(tl.float32)[None, :]
    if GATED:
        total = gate(total, second, GELU)
    elif ACTED:
        total = act(total, GELU)
    to = tokens[:, None] * N + rows[None, :]
    stored = real & (rows < N)[None, :]
    if RESIDUAL:
        total = total * GAIN + tl.load(residual + to, mask=stored, other=0.0).to(tl.float32)
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
    early: bool | None = None,
    shift: torch.Tensor | None = None,
) -> torch.Tensor:
    """residual + norm(x) of (..., K). shift: the bias of a LayerNorm, else it is an RMSNorm."""
    early = can_be_early() if early is None else early
    out, columns = torch.empty_like(x), triton.next_power_of_2(x.shape[-1])
    tokendyno_rows_norm[(x.shape[:-1].numel(),)](
        x,
        weight,
        x if shift is None else shift,
        x if residual is None else residual,
        out,
        x.shape[-1],
        eps,
        OFFSET=offset,
        CENTRED=shift is not None,
        RESIDUAL=residual is not None,
        COLUMNS=columns,
        EARLY=early,
        launch_pdl=early,
        num_warps=min(16, max(1, columns // 256)),
    )
    return out


def product(
    x: torch.Tensor,
    w: torch.Tensor,
    bias: torch.Tensor | None = None,
    residual: torch.Tensor | None = None,
    gated: bool = False,
    gelu: bool = False,
    acted: bool = False,
    scale: torch.Tensor | None = None,
    gain: float = 1.0,
) -> torch.Tensor:
    """x (..., K) -> residual + x @ w.T + bias (..., N), in the way that is fastest for this shape. acted: activated,
    ungated; scale: (rows of w,), of those of 8 bits; gain: of what is added to the residual."""
    key, ways = key_of(w, gated, x.shape[:-1].numel()), ALL if scale is None else OF_8_BITS

    def run(way: str) -> torch.Tensor:
        if way == LIBRARY:
            return by_library(x, w, bias, residual, gated, gelu, acted, gain)
        return by_tiles(x, w, bias, residual, gated, gelu, OF_8_BITS[way], acted=acted, scale=scale, gain=gain)

    if key not in CHOSEN:
        if torch.cuda.is_current_stream_capturing():
            return run(next(iter(ways)))
        CHOSEN[key] = preferred(kept.fastest(key, ways, run))
    return run(CHOSEN[key][0])


def settle(weights: list[torch.Tensor], vectors: int, gated: bool, run: Callable[[], object]) -> None:
    """See `kept.settle`. weights, gated: as of `ops.decoder_layer`."""
    kept.settle(
        {key_of(w, gated and place == 2, vectors): w for place, w in enumerate(weights)}, CHOSEN, ALL | OF_8_BITS, run
    )


def preferred(found: kept.Measured) -> kept.Measured:
    """The library's way only where ours take longer by LATE: it cannot begin early, nor can what follows it."""
    way, took_us = found
    ours = {name: us for name, us in took_us.items() if name != LIBRARY}
    best = min(ours, key=lambda name: ours[name], default=LIBRARY)
    return (best if way == LIBRARY and took_us[best] < LATE * took_us[LIBRARY] else way), took_us


def by_library(
    x: torch.Tensor,
    w: torch.Tensor,
    bias: torch.Tensor | None,
    residual: torch.Tensor | None,
    gated: bool,
    gelu: bool,
    acted: bool = False,
    gain: float = 1.0,
) -> torch.Tensor:
    """The product as a model's own code computes it, rounded in between."""
    out, second = torch.nn.functional.linear(x, w, bias), None
    if gated:
        out, second = out.chunk(2, -1)
    if gated or acted:
        out = torch.nn.functional.gelu(out, approximate="tanh") if gelu else torch.nn.functional.silu(out)
    out = out if second is None else out * second
    return out if residual is None else out * gain + residual


def by_tiles(
    x: torch.Tensor,
    w: torch.Tensor,
    bias: torch.Tensor | None,
    residual: torch.Tensor | None,
    gated: bool,
    gelu: bool,
    how: dict[str, int],
    early: bool | None = None,
    acted: bool = False,
    scale: torch.Tensor | None = None,
    gain: float = 1.0,
) -> torch.Tensor:
    """The same in one kernel."""
    early = can_be_early() if early is None else early
    count, columns = x.shape[:-1].numel(), w.shape[1]
    rows = w.shape[0] // (2 if gated else 1)
    out = torch.empty(*x.shape[:-1], rows, dtype=x.dtype, device=x.device)
    tokendyno_rows_product[(triton.cdiv(rows, how["BN"]),)](
        x,
        w,
        *(x if one is None else one for one in (scale, bias, residual)),
        out,
        count,
        rows,
        K=columns,
        SCALED=scale is not None,
        BIAS=bias is not None,
        RESIDUAL=residual is not None,
        GAIN=gain,
        GATED=gated,
        ACTED=acted,
        GELU=gelu,
        BB=max(8 if how["TURNED"] else 16, triton.next_power_of_2(count)),
        WHOLE=rows % how["BN"] == 0 and columns % how["BK"] == 0,
        AHEAD=512 if columns >= 512 else max(64, 128 // w.element_size()),
        EARLY=early,
        launch_pdl=early,
        **how,
    )
    return out
