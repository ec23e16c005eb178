"""Matrix-vector products near memory bandwidth: the matrix is read once, and nothing else matters.

The operations around the product in a decoder layer are fused: an RMSNorm or LayerNorm of the vector before it; a bias,
a residual, an activation or a gate after it. Arithmetic is in float32.

Each kernel may be launched before the one it depends on has ended (programmatic dependent launch): it loads its first
weights, which depend on nothing, and then waits for the vector.
"""

from collections.abc import Callable

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from . import core_parts, cores, kept, slabs
from .parts import act, can_be_early, gate, wide

MOST_COLUMNS = 1 << 16
HELD_COLUMNS = 16384  # of a vector that a program keeps in registers
ONCE = 1 << 30  # one program per group of rows, none persistent
SWEPT = ("NVIDIA H200",)  # cards on which `config` was found, in whole decoder layers
WAYS: dict[str, dict[str, int]] = {
    "rows 1x8": {"BN": 1, "STAGES": 1, "CTAS": ONCE, "num_warps": 8},
    "rows 2x4": {"BN": 2, "STAGES": 1, "CTAS": ONCE, "num_warps": 4},
    "rows 4x4": {"BN": 4, "STAGES": 1, "CTAS": ONCE, "num_warps": 4},
    "persistent 4x8": {"BN": 4, "STAGES": 4, "CTAS": 132, "num_warps": 8},
    "tiles 4x512": {"BN": 4, "BK": 512, "STAGES": 6, "AHEAD": 1024, "num_warps": 2},
    "tiles 16x256": {"BN": 16, "BK": 256, "STAGES": 5, "AHEAD": 0, "num_warps": 4},
}
"""What other cards choose from, by measuring: rows of a program times warps, or rows and columns of a tile."""
CORE_WAYS: dict[str, dict[str, int]] = {
    "cores 4x8": {"CHUNKS": 4, "DEPTH": 2, "CTAS": 132, "num_warps": 8},
    "cores 1x8": {"CHUNKS": 1, "DEPTH": 2, "CTAS": 264, "num_warps": 8},
    "cores 2x4": {"CHUNKS": 2, "DEPTH": 2, "CTAS": 264, "num_warps": 4},
}
"""Of 8-bit rows on tensor cores as well: chunks times warps."""
CHOSEN: dict[kept.Key, kept.Measured] = {}
"""As in `rows`, with one vector."""


@triton.jit
def _prefetch(at):
    """Prefetch the 128 bytes around each address into L2, without waiting."""
    tl.inline_asm_elementwise(
        "prefetch.global.L2 [$1]; mov.b32 $0, 0;", "=r,l", [at.to(tl.int64)], dtype=tl.int32, is_pure=False, pack=1
    )


@triton.jit
def _ask_for(weights, lines, WIDTH: tl.constexpr):
    """Prefetch this program's share of `lines` lines of 128 bytes into L2."""
    share = tl.cdiv(lines, tl.num_programs(0))
    begin = tl.program_id(0) * share
    end = tl.minimum(begin + share, lines)
    for line in tl.range(begin, end, WIDTH):
        at = tl.minimum(line + tl.arange(0, WIDTH), end - 1)
        _prefetch(weights.to(tl.int64) + at.to(tl.int64) * 128)


@triton.jit
def _late(at):
    """Load as float32, now: a plain load could be moved to an earlier iteration of a pipelined loop."""
    if at.dtype.element_ty.primitive_bitwidth == 32:
        found = tl.inline_asm_elementwise(
            "ld.global.b32 $0, [$1];", "=r,l", [at.to(tl.int64)], dtype=tl.int32, is_pure=False, pack=1
        )
    else:
        found = tl.inline_asm_elementwise(
            "ld.global.b16 $0, [$1];", "=h,l", [at.to(tl.int64)], dtype=tl.int16, is_pure=False, pack=1
        )
    return found.to(at.dtype.element_ty, bitcast=True).to(tl.float32)


@triton.jit
def _dot4(words, high, low):
    """float32 of the four signed bytes of each word times four 14-bit integers, given as 128 * high + low.

    The sum is below 2**22, so adding it to the bits of 1.5 * 2**23 converts it to float.
    """
    return tl.inline_asm_elementwise(
        """{
        .reg .b32 h, l, z;
        mov.b32 z, 0;
        mov.b32 l, 0x4B400000;
        dp4a.s32.s32 h, $1, $2, z;
        dp4a.s32.s32 l, $1, $3, l;
        mad.lo.s32 l, h, 128, l;
        add.f32 $0, l, 0fCB400000;
        }""",
        "=f,r,r,r",
        [words, high, low],
        dtype=tl.float32,
        is_pure=True,
        pack=1,
    )


@triton.jit
def _moments(x, K, eps, BK: tl.constexpr):
    """The mean of a vector, and 1 over its standard deviation."""
    columns = tl.arange(0, BK)
    total = tl.zeros((BK,), dtype=tl.float32)
    for k in tl.range(0, K, BK):
        total += tl.load(x + k + columns, mask=k + columns < K, other=0.0).to(tl.float32)
    mean = tl.sum(total, 0) / K
    squares = tl.zeros((BK,), dtype=tl.float32)
    for k in tl.range(0, K, BK):
        here = k + columns < K
        apart = tl.where(here, tl.load(x + k + columns, mask=here, other=0.0).to(tl.float32) - mean, 0.0)
        squares += apart * apart
    return mean, tl.rsqrt(tl.sum(squares, 0) / K + eps)


@triton.jit
def tokendyno_block_product(
    x,
    norm,
    shift,
    w,
    scale,
    bias,
    residual,
    out,
    N,
    K,
    eps,
    NORM: tl.constexpr,
    OFFSET: tl.constexpr,
    CENTRED: tl.constexpr,
    SCALED: tl.constexpr,
    BIAS: tl.constexpr,
    RESIDUAL: tl.constexpr,
    GAIN: tl.constexpr,
    GATED: tl.constexpr,
    ACTED: tl.constexpr,
    GELU: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    STAGES: tl.constexpr,
    AHEAD: tl.constexpr,
    EARLY: tl.constexpr,
):
    """out (N,) = residual + w (N, K) @ norm(x) (K,) + bias; gated: w is (2N, K), out = act(first) * second.

    Many programs with a few rows each, reduced at the end.
    OFFSET  is added to the weights of the norm; CENTRED: it is a LayerNorm, with a bias, `shift`
    ACTED   out = residual + act(...); GELU: the activation, else SiLU
    GAIN    by which all but the residual is multiplied
    AHEAD   elements of each row to load before x is ready; EARLY: launched before its predecessor has ended
    """
    rows = tl.program_id(0) * BN + tl.arange(0, BN)
    columns = tl.arange(0, BK)
    inside = rows < N
    at = w + rows[:, None].to(tl.int64) * K + columns[None, :]
    more = at + tl.cast(N, tl.int64) * K
    if EARLY:
        gdc_launch_dependents()
        if AHEAD > 0:
            line: tl.constexpr = 128 // (w.dtype.element_ty.primitive_bitwidth // 8)
            first = w + rows[:, None].to(tl.int64) * K + (tl.arange(0, AHEAD // line) * line)[None, :]
            _prefetch(first)
            if GATED:
                _prefetch(first + tl.cast(N, tl.int64) * K)
        gdc_wait()
    added = tl.zeros((BN,), tl.float32)
    if RESIDUAL:
        added = tl.load(residual + rows, mask=inside, other=0.0).to(tl.float32)
    total = tl.zeros((BN, BK), dtype=tl.float32)
    second = tl.zeros((BN, BK), dtype=tl.float32)
    squares = tl.zeros((BK,), dtype=tl.float32)
    mean, shrink = 0.0, 1.0
    if CENTRED:
        mean, shrink = _moments(x, K, eps, BK)
    for k in tl.range(0, K, BK, num_stages=STAGES):
        here = k + columns < K
        valid = here[None, :] & inside[:, None]
        weights = tl.load(at + k, mask=valid, other=0.0, eviction_policy="evict_first")
        vector = tl.load(x + k + columns, mask=here, other=0.0).to(tl.float32)
        if CENTRED:
            vector = (vector - mean) * shrink * tl.load(norm + k + columns, mask=here, other=0.0).to(tl.float32)
            vector += tl.load(shift + k + columns, mask=here, other=0.0).to(tl.float32)
        elif NORM:
            squares += vector * vector
            vector *= tl.load(norm + k + columns, mask=here, other=0.0).to(tl.float32) + OFFSET
        total += wide(weights) * vector[None, :]
        if GATED:
            others = tl.load(more + k, mask=valid, other=0.0, eviction_policy="evict_first")
            second += wide(others) * vector[None, :]
    result = tl.sum(total, 1)
    other = tl.sum(second, 1)
    if NORM and not CENTRED:
        shrink = tl.rsqrt(tl.sum(squares, 0) / K + eps)
        result *= shrink
        other *= shrink
    if SCALED:
        result *= tl.load(scale + rows, mask=inside, other=0.0).to(tl.float32)
        if GATED:
            other *= tl.load(scale + N + rows, mask=inside, other=0.0).to(tl.float32)
    if BIAS:
        result += tl.load(bias + rows, mask=inside, other=0.0).to(tl.float32)
        if GATED:
            other += tl.load(bias + N + rows, mask=inside, other=0.0).to(tl.float32)
    if GATED:
        result = gate(result, other, GELU)
    elif ACTED:
        result = act(result, GELU)
    tl.store(out + rows, (result * GAIN + added).to(out.dtype.element_ty), mask=inside)


@triton.jit
def tokendyno_stream_product(
    x,
    norm,
    shift,
    w,
    scale,
    bias,
    residual,
    out,
    ask,
    ask_too,
    N,
    K,
    lines,
    lines_too,
    eps,
    NORM: tl.constexpr,
    OFFSET: tl.constexpr,
    CENTRED: tl.constexpr,
    SCALED: tl.constexpr,
    BIAS: tl.constexpr,
    RESIDUAL: tl.constexpr,
    GAIN: tl.constexpr,
    GATED: tl.constexpr,
    ACTED: tl.constexpr,
    GELU: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    STAGES: tl.constexpr,
    ASKS: tl.constexpr,
    EARLY: tl.constexpr,
):
    """The same with whole rows, loaded before the vector is ready; programs may be persistent.

    SCALED   w is int8 with a scale per row, four elements to a word. Groups of four elements of the vector become
             14-bit integers with a scale each, so that their product with a word is exact and takes two instructions.
             Not with CENTRED
    ask, ask_too  ASKS matrices, given in lines of 128 bytes, that later products read: prefetched into L2 while this
             kernel waits for its vector
    """
    PER: tl.constexpr = 4 if SCALED else 1
    columns = tl.arange(0, BK // PER)
    here = columns < K // PER
    first = tl.program_id(0)
    vector = tl.zeros((BK // PER,), tl.float32)  # or the scale of each group of four
    high = tl.zeros((BK // PER,), tl.int32)
    low = high
    shrink = 1.0
    ahead = tl.zeros((BN,), tl.float32)
    if EARLY:
        gdc_launch_dependents()
    for tile in tl.range(first, tl.cdiv(N, BN), tl.num_programs(0), num_stages=STAGES):
        rows = tile * BN + tl.arange(0, BN)
        inside = rows < N
        valid = here[None, :] & inside[:, None]
        at = w + rows[:, None].to(tl.int64) * (K // PER) + columns[None, :]
        weights = tl.load(at, mask=valid, other=0, eviction_policy="evict_first")
        if GATED:
            others = tl.load(at + tl.cast(N, tl.int64) * (K // PER), mask=valid, other=0, eviction_policy="evict_first")
        if SCALED:
            units = tl.load(scale + rows, mask=inside, other=0.0).to(tl.float32)
            if GATED:
                other_units = tl.load(scale + N + rows, mask=inside, other=0.0).to(tl.float32)
        if BIAS:
            constant = tl.load(bias + rows, mask=inside, other=0.0).to(tl.float32)
            if GATED:
                other_constant = tl.load(bias + N + rows, mask=inside, other=0.0).to(tl.float32)
        added = ahead
        if tile == first:
            if ASKS > 0:
                _ask_for(ask, lines, 128)
            if ASKS > 1:
                _ask_for(ask_too, lines_too, 128)
            if SCALED:
                four = columns[:, None] * 4 + tl.arange(0, 4)[None, :]
                if NORM:
                    learned = tl.load(norm + four, mask=here[:, None], other=0.0).to(tl.float32) + OFFSET
                if EARLY:
                    gdc_wait()
                plain = tl.load(x + four, mask=here[:, None], other=0.0).to(tl.float32)
                if NORM:
                    shrink = tl.rsqrt(tl.sum(tl.sum(plain * plain, 1), 0) / K + eps)
                    plain *= learned
                peak = tl.maximum(tl.max(tl.abs(plain), 1), 1e-30)
                whole = plain * (8190 / peak)[:, None] + 12582912.0  # 1.5 * 2**23: rounds; an integer in its bits
                whole = whole.to(tl.int32, bitcast=True) - 0x4B400000
                places = (tl.arange(0, 4) * 8)[None, :]
                high = tl.sum(((whole >> 7) & 255) << places, 1)
                low = tl.sum((whole & 127) << places, 1)
                vector = peak / 8190
            else:
                if NORM:
                    learned = tl.load(norm + columns, mask=here, other=0.0).to(tl.float32) + OFFSET
                if CENTRED:
                    shifted = tl.load(shift + columns, mask=here, other=0.0).to(tl.float32)
                if EARLY:
                    gdc_wait()
                vector = tl.load(x + columns, mask=here, other=0.0).to(tl.float32)
                if CENTRED:
                    vector = tl.where(here, vector - tl.sum(vector, 0) / K, 0.0)
                    vector = vector * tl.rsqrt(tl.sum(vector * vector, 0) / K + eps) * learned + shifted
                elif NORM:
                    shrink = tl.rsqrt(tl.sum(vector * vector, 0) / K + eps)
                    vector *= learned
            if RESIDUAL:
                added = _late(residual + tl.where(inside, rows, 0))
        if RESIDUAL:  # for the next iteration
            later = rows + tl.num_programs(0) * BN
            ahead = _late(residual + tl.where(later < N, later, 0))
        if SCALED:
            result = tl.sum(_dot4(weights, high[None, :], low[None, :]) * vector[None, :], 1) * shrink * units
        else:
            result = tl.sum(wide(weights) * vector[None, :], 1) * shrink
        if BIAS:
            result += constant
        if GATED:
            if SCALED:
                other = tl.sum(_dot4(others, high[None, :], low[None, :]) * vector[None, :], 1) * shrink * other_units
            else:
                other = tl.sum(wide(others) * vector[None, :], 1) * shrink
            if BIAS:
                other += other_constant
            result = gate(result, other, GELU)
        elif ACTED:
            result = act(result, GELU)
        tl.store(out + rows, (result * GAIN + added).to(out.dtype.element_ty), mask=inside)


@triton.jit
def tokendyno_add_norm(
    x, norm, residual, out, K, eps, OFFSET: tl.constexpr, COLUMNS: tl.constexpr, EARLY: tl.constexpr
):
    """out (K,) = residual + norm(x), by one program, rounded before and after the sum, as in a model's own code."""
    if EARLY:
        gdc_launch_dependents()
    columns = tl.arange(0, COLUMNS)
    here = columns < K
    learned = tl.load(norm + columns, mask=here, other=0.0).to(tl.float32) + OFFSET
    if EARLY:
        gdc_wait()
    vector = tl.load(x + columns, mask=here, other=0.0).to(tl.float32)
    old = tl.load(residual + columns, mask=here, other=0.0).to(tl.float32)
    normed = (vector * tl.rsqrt(tl.sum(vector * vector, 0) / K + eps) * learned).to(out.dtype.element_ty)
    tl.store(out + columns, (old + normed.to(tl.float32)).to(out.dtype.element_ty), mask=here)


def config(rows: int, columns: int, item: int, gated: bool) -> dict[str, int]:
    """Tile sizes and launch settings: the best of sweeps on an H200 in the shapes of Llama 3 8B, Qwen3 0.6B and Gemma
    3 1B, within whole decoder layers, and of Llama 3 8B over two ranks."""
    if not can_be_early():  # before anything was measured, with little shared memory
        return {"BN": 4, "BK": 512, "STAGES": 1, "AHEAD": 0, "num_warps": 4}
    once = ONCE
    if columns > HELD_COLUMNS:
        return {"BN": 4, "BK": 512, "STAGES": 6 if item > 1 else 4, "AHEAD": 1024, "num_warps": 2}
    if item == 1:
        if rows >= 3072 and columns >= 4096:  # enough tiles of 16 rows for all multiprocessors
            how = _on_cores(rows, columns, gated)
            if core_parts.parts(columns, 4, how):
                return how
        if columns > 8192:
            return {"BN": 1 if gated else 2, "STAGES": 4, "CTAS": 132, "num_warps": 8}
        if gated:
            return {"BN": 2, "STAGES": 3, "CTAS": 528, "num_warps": 4}
        if rows > columns:
            return {"BN": 4, "STAGES": 4, "CTAS": 264, "num_warps": 4}
        return {"BN": 4 if columns <= 4096 else 2, "STAGES": 1, "CTAS": once, "num_warps": 4}
    if item == 4:
        return {"BN": 4, "BK": min(512, triton.next_power_of_2(columns)), "STAGES": 1, "AHEAD": 0, "num_warps": 2}
    if 1024 < columns <= 1536:  # Gemma 3 1B: rows of whole programs would be half empty
        if columns % slabs.COLUMNS == 0:
            return {"ROWS": 4 if rows > 1 << 15 else 2, "num_warps": 4 if gated or rows > 1 << 15 else 8}
        if rows > 1 << 15:
            return {"BN": 16, "BK": 128, "STAGES": 5, "AHEAD": 0, "num_warps": 4}
        return {"BN": 8, "BK": 128, "STAGES": 6, "AHEAD": 512, "num_warps": 2}
    if rows <= 1536 and columns in (1024, 2048, 3072) and not gated:  # Gemma 3 1B and Qwen3 0.6B: output projections,
        return {"ROWS": 1, "num_warps": 4 if columns == 1024 else 8}  # and down of the latter
    if rows <= 1536 and 4096 < columns <= 8192:
        if columns % slabs.COLUMNS == 0:
            return {"ROWS": 1, "num_warps": 2}
        return {"BN": 1, "STAGES": 1, "CTAS": once, "num_warps": 8}
    if (rows, columns) in ((3072, 4096), (4096, 2048)) and not gated:  # halves of Llama 3 8B, for two ranks
        return {"BN": 4, "BK": 512, "STAGES": 6, "AHEAD": 1024, "num_warps": 2}
    if 2048 < columns <= 3072 and not gated:
        if rows > 1 << 15:
            return {"BN": 16, "BK": 256, "STAGES": 6, "AHEAD": 0, "num_warps": 4}
        if rows > columns:
            return {"BN": 4, "STAGES": 3, "CTAS": 330, "num_warps": 4}
    if columns <= 3072 and rows > 1 << 15:
        return {"BN": 8 if columns <= 2048 else 4, "STAGES": 1, "CTAS": once, "num_warps": 4}
    if columns == 1024 and (gated or columns < rows <= 1 << 15):  # q, k and v of Qwen3 0.6B, gate and up
        return {"ROWS": 1, "num_warps": 8}
    if columns <= 1024 and gated:  # few registers, so that the next kernel can start beside it
        return {"BN": 2, "STAGES": 1, "CTAS": once, "num_warps": 2, "maxnreg": 80}
    if columns <= 3072:
        if columns <= 1024 and rows > columns:
            return {"BN": 4, "STAGES": 1, "CTAS": once, "num_warps": 2}
        return {"BN": 2 if rows > columns or columns > 2048 else 1, "STAGES": 1, "CTAS": once, "num_warps": 4}
    if rows > 1 << 15:
        return {"BN": 8, "BK": 512, "STAGES": 6, "AHEAD": 0, "num_warps": 4}
    if gated:
        return {"BN": 4, "BK": 512, "STAGES": 6, "AHEAD": 512, "num_warps": 2}
    if columns > 8192:
        return {"BN": 1, "STAGES": 3, "CTAS": 264, "num_warps": 8}
    if rows > columns and columns <= 4096:
        return {"BN": 4, "STAGES": 5, "CTAS": 132, "num_warps": 8}
    if (rows, columns) in ((2880, 4096), (4096, 4096)):  # output projections: all is asked for while attention runs
        return {"ROWS": 2, "num_warps": 4}
    if rows <= 3072 and columns <= 4096:
        return {"BN": 2, "STAGES": 1, "CTAS": once, "num_warps": 4}
    return {"BN": 4, "BK": 512, "STAGES": 6, "AHEAD": 1024, "num_warps": 2}


def _on_cores(rows: int, columns: int, gated: bool) -> dict[str, int]:
    """Settings of `cores` for 8-bit weights, found in the same way."""
    if columns > 8192:
        return {"CHUNKS": 1, "DEPTH": 4 if gated else 8, "CTAS": 132, "num_warps": 8}
    if gated:
        return {"CHUNKS": 1, "DEPTH": 2, "CTAS": 264, "num_warps": 8}
    if rows > columns:
        return {"CHUNKS": 4, "DEPTH": 2, "CTAS": 264, "num_warps": 4}
    return {"CHUNKS": 4, "DEPTH": 1, "CTAS": ONCE, "num_warps": 8}


def _of_floats(how: dict[str, int], columns: int) -> dict[str, int]:
    """Settings for e4m3 in place of those for int8: long rows are faster in larger parts."""
    larger = how | {"CHUNKS": 2, "DEPTH": 4}
    longer = how.get("CHUNKS") == 1 and how["DEPTH"] == 8 and core_parts.parts(columns, 4, larger)
    return larger if longer else how


def reads(w: torch.Tensor) -> bool:
    """Whether there is a kernel for these quantized rows here: int8, and e4m3 where the GPU converts it."""
    return w.dtype == torch.int8 or (w.dtype == torch.float8_e4m3fn and torch.cuda.get_device_capability() >= (8, 9))


def ways(w: torch.Tensor) -> dict[str, dict[str, int]]:
    """What other cards choose from for this matrix: e4m3 and the longest rows are not streamed, and only 8 bits are for
    `cores`."""
    streamed = w.dtype != torch.float8_e4m3fn and w.shape[1] <= HELD_COLUMNS
    found = {way: how for way, how in WAYS.items() if streamed or "CTAS" not in how}
    if w.element_size() > 1:
        return found
    return found | {way: how for way, how in CORE_WAYS.items() if core_parts.parts(w.shape[1], 4, how)}


def product(
    x: torch.Tensor,
    w: torch.Tensor,
    out: torch.Tensor,
    norm: torch.Tensor | None = None,
    eps: float = 0.0,
    scale: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    residual: torch.Tensor | None = None,
    gated: bool = False,
    early: bool | None = None,
    tuned: dict[str, int] | None = None,
    ask: tuple[torch.Tensor, ...] = (),
    offset: float = 0.0,
    gelu: bool = False,
    added: slabs.Added | None = None,
    shift: torch.Tensor | None = None,
    acted: bool = False,
    gain: float = 1.0,
) -> None:
    """Write into `out`, flat. `x`: as many elements as `w` has columns; `w`: contiguous rows; gated: gate above up.

    offset, shift   added to the weights of the norm; the bias of a LayerNorm, else it is an RMSNorm
    acted, gelu   the result is activated, ungated; the activation, else SiLU
    gain   by which the result is multiplied before the residual is added
    ask   up to two matrices to prefetch into L2; ignored by all kernels but the stream kernel
    added   the vector is a sum of which x is a part, see `slabs.Added`: only where `sums`
    """
    rows, columns = w.shape[0] // (2 if gated else 1), w.shape[1]
    early = can_be_early() if early is None else early
    if shift is not None and (norm is None or scale is not None or added is not None):
        raise ValueError("A LayerNorm has weights, and comes before dense matrices only.")

    card = torch.cuda.get_device_name()
    if tuned is None and added is None and card not in SWEPT:

        def run(way: str) -> None:
            product(
                x,
                w,
                out,
                norm,
                eps,
                scale,
                bias,
                residual,
                gated,
                early,
                ways(w)[way],
                ask,
                offset,
                gelu,
                shift=shift,
                acted=acted,
                gain=gain,
            )

        key = key_of(w, gated)
        if key not in CHOSEN and not torch.cuda.is_current_stream_capturing():
            if kept.postponed(key, ways(w), run):
                return
            CHOSEN[key] = kept.fastest(key, ways(w), run)
        tuned = ways(w)[CHOSEN[key][0]] if key in CHOSEN else None
    how = dict(tuned or config(rows, columns, w.element_size(), gated))
    if w.dtype == torch.float8_e4m3fn and "CTAS" in how and "CHUNKS" not in how:  # the stream kernel has int8
        how = {"BN": 4, "BK": 512, "STAGES": 4, "AHEAD": 0, "num_warps": 4}
    elif w.dtype == torch.float8_e4m3fn and tuned is None:
        how = _of_floats(how, columns)
    beside = (
        norm if norm is not None else x,
        shift if shift is not None else x,
        w,
        scale if scale is not None else x,
        bias if bias is not None else x,
        residual if residual is not None else x,
        out,
    )
    flags = {
        "NORM": norm is not None,
        "OFFSET": offset,
        "CENTRED": shift is not None,
        "BIAS": bias is not None,
        "RESIDUAL": residual is not None,
        "GAIN": gain,
        "GATED": gated,
        "ACTED": acted,
        "GELU": gelu,
        "EARLY": early,
        "launch_pdl": early,
    }
    if "ROWS" in how:
        slabs.launch(x, *beside, rows, eps, flags | how, added)
        return
    if added is not None:
        raise ValueError("Only a slab's kernel adds up its vector.")
    if "CHUNKS" in how:
        cores.launch(x, *beside, rows, eps, flags | how)
        return
    flags["SCALED"] = scale is not None
    programs, grid = how.pop("CTAS", 0), triton.cdiv(rows, how["BN"])
    if not programs:
        tokendyno_block_product[(grid,)](x, *beside, rows, columns, eps, **flags, **how)
        return
    if scale is not None:
        beside = (*beside[:2], w.view(torch.int32), *beside[3:])
    asked = [*ask, x, x][:2]
    lines = [one.numel() * one.element_size() // 128 for one in asked]
    tokendyno_stream_product[(min(programs, grid),)](
        x,
        *beside,
        *asked,
        rows,
        columns,
        *lines,
        eps,
        BK=triton.next_power_of_2(columns),
        ASKS=len(ask) if early else 0,
        **flags,
        **how,
    )


def sums(w: torch.Tensor, scale: torch.Tensor | None, gated: bool) -> bool:
    """Whether the product with this matrix can add up its vector (`added` of `product`)."""
    if w.dtype == torch.int32 or scale is not None or torch.cuda.get_device_name() not in SWEPT:
        return False
    return "ROWS" in config(w.shape[0] // (2 if gated else 1), w.shape[1], w.element_size(), gated)


def key_of(w: torch.Tensor, gated: bool, vectors: int = 1) -> kept.Key:
    """What the time of a product with this matrix depends on."""
    rows = w.shape[0] // (2 if gated else 1)
    return torch.cuda.get_device_name(), vectors, rows, w.shape[1], gated, str(w.dtype)


def settle(weights: list[torch.Tensor], gated: bool, run: Callable[[], object]) -> None:
    """See `kept.settle`, on cards that are not in SWEPT. weights, gated: as of `ops.decoder_layer`."""
    if torch.cuda.get_device_name() not in SWEPT:
        four_bits = (torch.int32, torch.uint8)  # other kernels'
        dense = [(place, w) for place, w in enumerate(weights) if w.dtype not in four_bits]
        read = {key_of(w, gated and place == 2): w for place, w in dense}
        kept.settle(read, CHOSEN, WAYS | CORE_WAYS, run)


def add_norm(
    x: torch.Tensor,
    norm: torch.Tensor,
    residual: torch.Tensor,
    out: torch.Tensor,
    eps: float,
    offset: float = 0.0,
    early: bool | None = None,
) -> None:
    """Write residual + norm(x) into `out`; all flat. A norm needs all rows of the product before it, hence a kernel."""
    early = can_be_early() if early is None else early
    columns = triton.next_power_of_2(x.numel())
    tokendyno_add_norm[(1,)](
        x,
        norm,
        residual,
        out,
        x.numel(),
        eps,
        OFFSET=offset,
        COLUMNS=columns,
        EARLY=early,
        launch_pdl=early,
        num_warps=min(16, max(1, columns // 256)),
    )
