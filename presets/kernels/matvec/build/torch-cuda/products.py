"""Matrix-vector products near memory bandwidth: the matrix is read once, and nothing else matters.

The operations around the product in a decoder layer are fused: an RMSNorm or LayerNorm of the vector before it; a bias,
a residual, an activation or a gate after it. Arithmetic is in float32.

Each kernel may be launched before the one it depends on has ended (programmatic dependent launch): it loads its first
weights, which depend on nothing, and then waits for the vector.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from . import cores, settings, slabs
from .parts import Fused, activated, can_be_early, per_row, wide
from .settings import Settings


def reads(w: torch.Tensor) -> bool:
    """Whether there is a kernel for these quantized rows here: int8, and e4m3 where the GPU converts it."""
    return w.dtype == torch.int8 or (w.dtype == torch.float8_e4m3fn and torch.cuda.get_device_capability() >= (8, 9))


@triton.jit
def prefetch(at):
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
        prefetch(weights.to(tl.int64) + at.to(tl.int64) * 128)


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
    given, N, K, eps, FUSED: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr, AHEAD: tl.constexpr
):
    """out (N,) of w (N, K) and x (K,), as `Fused` says: many programs of BN rows each, which are summed up at the end.

    BK     columns that a program reads at once, STAGES times ahead
    AHEAD  elements of each row to prefetch before x is ready
    """
    x, norm, shift, w, scale, bias, residual, out = given
    rows = tl.program_id(0) * BN + tl.arange(0, BN)
    columns = tl.arange(0, BK)
    inside = rows < N
    at = w + rows[:, None].to(tl.int64) * K + columns[None, :]
    more = at + tl.cast(N, tl.int64) * K
    if FUSED.EARLY:
        gdc_launch_dependents()
        if AHEAD > 0:
            line: tl.constexpr = 128 // (w.dtype.element_ty.primitive_bitwidth // 8)
            first = w + rows[:, None].to(tl.int64) * K + (tl.arange(0, AHEAD // line) * line)[None, :]
            prefetch(first)
            if FUSED.GATED:
                prefetch(first + tl.cast(N, tl.int64) * K)
        gdc_wait()
    added = tl.zeros((BN,), tl.float32)
    if FUSED.RESIDUAL:
        added = tl.load(residual + rows, mask=inside, other=0.0).to(tl.float32)
    total = tl.zeros((BN, BK), dtype=tl.float32)
    second = tl.zeros((BN, BK), dtype=tl.float32)
    squares = tl.zeros((BK,), dtype=tl.float32)
    mean, shrink = 0.0, 1.0
    if FUSED.CENTRED:
        mean, shrink = _moments(x, K, eps, BK)
    for k in tl.range(0, K, BK, num_stages=STAGES):
        here = k + columns < K
        valid = here[None, :] & inside[:, None]
        weights = tl.load(at + k, mask=valid, other=0.0, eviction_policy="evict_first")
        vector = tl.load(x + k + columns, mask=here, other=0.0).to(tl.float32)
        if FUSED.CENTRED:
            vector = (vector - mean) * shrink * tl.load(norm + k + columns, mask=here, other=0.0).to(tl.float32)
            vector += tl.load(shift + k + columns, mask=here, other=0.0).to(tl.float32)
        elif FUSED.NORM:
            squares += vector * vector
            vector *= tl.load(norm + k + columns, mask=here, other=0.0).to(tl.float32) + FUSED.OFFSET
        total += wide(weights) * vector[None, :]
        if FUSED.GATED:
            others = tl.load(more + k, mask=valid, other=0.0, eviction_policy="evict_first")
            second += wide(others) * vector[None, :]
    result = tl.sum(total, 1)
    other = tl.sum(second, 1)
    if FUSED.NORM and not FUSED.CENTRED:
        shrink = tl.rsqrt(tl.sum(squares, 0) / K + eps)
        result *= shrink
        other *= shrink
    if FUSED.SCALED:
        unit, other_unit = per_row(scale, rows, inside, N, FUSED)
        result *= unit
        other *= other_unit
    if FUSED.BIAS:
        constant, other_constant = per_row(bias, rows, inside, N, FUSED)
        result += constant
        other += other_constant
    result = activated(result, other, FUSED)
    tl.store(out + rows, (result * FUSED.GAIN + added).to(out.dtype.element_ty), mask=inside)


@triton.jit
def tokendyno_stream_product(
    given,
    asked,
    N,
    K,
    lines,
    eps,
    FUSED: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    STAGES: tl.constexpr,
    ASKS: tl.constexpr,
):
    """The same with whole rows, loaded before the vector is ready; a program may take BN rows after another.

    SCALED   w is int8, four elements to a word. Groups of four elements of the vector become 14-bit integers with a
             scale each, so that their product with a word is exact and takes two instructions. Not with CENTRED
    asked, lines  ASKS of two matrices that later products read, and how many lines of 128 bytes each has: prefetched
             into L2 while this kernel waits for its vector
    """
    x, norm, shift, w, scale, bias, residual, out = given
    PER: tl.constexpr = 4 if FUSED.SCALED else 1
    columns = tl.arange(0, BK // PER)
    here = columns < K // PER
    first = tl.program_id(0)
    vector = tl.zeros((BK // PER,), tl.float32)  # or the scale of each group of four
    high = tl.zeros((BK // PER,), tl.int32)
    low = high
    shrink = 1.0
    ahead = tl.zeros((BN,), tl.float32)
    if FUSED.EARLY:
        gdc_launch_dependents()
    for tile in tl.range(first, tl.cdiv(N, BN), tl.num_programs(0), num_stages=STAGES):
        rows = tile * BN + tl.arange(0, BN)
        inside = rows < N
        valid = here[None, :] & inside[:, None]
        at = w + rows[:, None].to(tl.int64) * (K // PER) + columns[None, :]
        weights = tl.load(at, mask=valid, other=0, eviction_policy="evict_first")
        if FUSED.GATED:
            others = tl.load(at + tl.cast(N, tl.int64) * (K // PER), mask=valid, other=0, eviction_policy="evict_first")
        if FUSED.SCALED:
            units, other_units = per_row(scale, rows, inside, N, FUSED)
        if FUSED.BIAS:
            constant, other_constant = per_row(bias, rows, inside, N, FUSED)
        added = ahead
        if tile == first:
            if ASKS > 0:
                _ask_for(asked[0], lines[0], 128)
            if ASKS > 1:
                _ask_for(asked[1], lines[1], 128)
            if FUSED.SCALED:
                four = columns[:, None] * 4 + tl.arange(0, 4)[None, :]
                if FUSED.NORM:
                    learned = tl.load(norm + four, mask=here[:, None], other=0.0).to(tl.float32) + FUSED.OFFSET
                if FUSED.EARLY:
                    gdc_wait()
                plain = tl.load(x + four, mask=here[:, None], other=0.0).to(tl.float32)
                if FUSED.NORM:
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
                if FUSED.NORM:
                    learned = tl.load(norm + columns, mask=here, other=0.0).to(tl.float32) + FUSED.OFFSET
                if FUSED.CENTRED:
                    shifted = tl.load(shift + columns, mask=here, other=0.0).to(tl.float32)
                if FUSED.EARLY:
                    gdc_wait()
                vector = tl.load(x + columns, mask=here, other=0.0).to(tl.float32)
                if FUSED.CENTRED:
                    vector = tl.where(here, vector - tl.sum(vector, 0) / K, 0.0)
                    vector = vector * tl.rsqrt(tl.sum(vector * vector, 0) / K + eps) * learned + shifted
                elif FUSED.NORM:
                    shrink = tl.rsqrt(tl.sum(vector * vector, 0) / K + eps)
                    vector *= learned
            if FUSED.RESIDUAL:
                added = _late(residual + tl.where(inside, rows, 0))
        if FUSED.RESIDUAL:  # for the next iteration
            later = rows + tl.num_programs(0) * BN
            ahead = _late(residual + tl.where(later < N, later, 0))
        if FUSED.SCALED:
            result = tl.sum(_dot4(weights, high[None, :], low[None, :]) * vector[None, :], 1) * shrink * units
        else:
            result = tl.sum(wide(weights) * vector[None, :], 1) * shrink
        if FUSED.BIAS:
            result += constant
        other = result
        if FUSED.GATED:
            if FUSED.SCALED:
                other = tl.sum(_dot4(others, high[None, :], low[None, :]) * vector[None, :], 1) * shrink * other_units
            else:
                other = tl.sum(wide(others) * vector[None, :], 1) * shrink
            if FUSED.BIAS:
                other += other_constant
        result = activated(result, other, FUSED)
        tl.store(out + rows, (result * FUSED.GAIN + added).to(out.dtype.element_ty), mask=inside)


def product(
    x: torch.Tensor,
    w: torch.Tensor,
    out: torch.Tensor,
    ask: tuple[torch.Tensor, ...] = (),
    added: slabs.Added | None = None,
    tuned: Settings | None = None,
    **fused: object,
) -> None:
    """Write into `out`, flat. `x`: as many elements as `w` has columns; `w`: contiguous rows; fused: fields of `Fused`.

    ask    up to two matrices to prefetch into L2; ignored by all kernels but the stream kernel
    added  the vector is a sum of which x is a part, see `slabs.Added`: only where `sums`
    tuned  settings in place of those that are best here
    """
    around = Fused(**fused)
    if around.shift is not None and (around.norm is None or around.scale is not None or added is not None):
        raise ValueError("A LayerNorm has weights, and comes before dense matrices only.")
    if tuned is None and added is None and not settings.swept():

        def run(way: str) -> None:
            product(x, w, out, ask, tuned=settings.ways(w)[way], **fused)

        key, ways = settings.key_of(w, around.gated), settings.ways(w)
        if settings.collects(key, ways, run):
            return
        tuned = ways.get(settings.choose(key, ways, run))
    rows, columns = w.shape[0] // (2 if around.gated else 1), w.shape[1]
    how = dict(tuned or settings.for_products(rows, columns, w.element_size(), around.gated))
    if w.dtype == torch.float8_e4m3fn:
        how = settings.for_floats(how, columns, tuned is None)
    if "ROWS" in how:
        slabs.launch(x, w, out, around, how, added)
    elif added is not None:
        raise ValueError("Only a slab's kernel adds up its vector.")
    elif "CHUNKS" in how:
        cores.launch(x, w, out, around, how)
    else:
        _launch(x, w, out, around, how, ask)


def _launch(x: torch.Tensor, w: torch.Tensor, out: torch.Tensor, fused: Fused, how: Settings, ask: tuple) -> None:
    rows, columns = w.shape[0] // (2 if fused.gated else 1), w.shape[1]
    programs, grid = how.pop("CTAS", 0), triton.cdiv(rows, how["BN"])
    words = w if fused.scale is None or not programs else w.view(torch.int32)
    given = (x, *fused.tensors(x, "norm", "shift"), words, *fused.tensors(x, "scale", "bias", "residual"), out)
    more = {**fused.constants(), **how}
    if not programs:
        tokendyno_block_product[(grid,)](given, rows, columns, fused.eps, **more)
        return
    asked = (*ask, x, x)[:2]
    lines = tuple(one.numel() * one.element_size() // 128 for one in asked)
    asks, width = len(ask) if can_be_early() else 0, triton.next_power_of_2(columns)
    programs = min(programs, grid)
    tokendyno_stream_product[(programs,)](given, asked, rows, columns, lines, fused.eps, BK=width, ASKS=asks, **more)


def sums(w: torch.Tensor, scale: torch.Tensor | None, gated: bool) -> bool:
    """Whether the product with this matrix can add up its vector (`added` of `product`)."""
    if w.dtype == torch.int32 or scale is not None or not settings.swept():
        return False
    return "ROWS" in settings.for_products(w.shape[0] // (2 if gated else 1), w.shape[1], w.element_size(), gated)
