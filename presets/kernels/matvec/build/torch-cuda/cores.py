"""Products of one vector with 8-bit weights on tensor cores, which take the bytes as they are.

A warp has 16 rows and a part of the columns. The vector becomes whole numbers of 22 bits and a sign, and each of
their three bytes is a column of the other operand, so that the sums are exact and no weight is ever converted. Those of
8-bit floats become float16, as does the vector, in two parts. Rows are copied into shared memory (cp.async) while the
program waits for the vector, and ahead of the tensor cores after it. Written in Gluon, Triton's lower level, since the
lanes that hold a word of an operand are prescribed.
"""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from . import core_parts
from .core_parts import MOST, MOST_HALF, WORDS, cut, prepared, sums
from .parts import Fused, activated, barrier, per_row
from .settings import Settings


@gluon.jit
def _multiplied(
    rows,
    digits,
    total,
    c: gl.constexpr,
    half: gl.constexpr,
    operand: gl.constexpr,
    BAND: gl.constexpr,
    FLOAT: gl.constexpr,
):
    """total + a chunk of 16 rows times the vector; half: of which eight rows, of both sides, it has the first."""
    top = rows.slice(half * BAND, BAND, 0).load(operand)
    bottom = rows.slice((half + 1) * BAND, BAND, 0).load(operand)
    if FLOAT:
        first = digits.slice(c * 4, 2, 0).load(operand)
        second = digits.slice(c * 4 + 2, 2, 0).load(operand)
        total = core_parts.multiplied_floats(top, bottom, first, second, total)
    else:
        total = core_parts.multiplied(top, bottom, digits.slice(c * 4, 4, 0).load(operand), total)
    return total


@gluon.jit
def _ask(ring, at, row, turn, N, K: gl.constexpr, PARTS: gl.constexpr, PART: gl.constexpr, FULL: gl.constexpr):
    """Ask for a part of the columns of 16 rows, or of 16 and the 16 that they gate. at: where it is in the first."""
    down = (gl.program_id(0) + turn // PARTS * gl.num_programs(0)) * 16
    here = at + (gl.to_tensor(down).to(gl.int64) * (K // 4) + turn % PARTS * PART)
    if FULL:
        async_copy.async_copy_global_to_shared(ring, here, eviction_policy="evict_first")
    else:
        async_copy.async_copy_global_to_shared(ring, here, (row + down < N)[:, :, None], eviction_policy="evict_first")


@gluon.jit
def tokendyno_core_product(
    given,
    N,
    eps,
    K: gl.constexpr,
    FUSED: gl.constexpr,
    FLOAT: gl.constexpr,
    FULL: gl.constexpr,
    PARTS: gl.constexpr,
    CHUNKS: gl.constexpr,
    DEPTH: gl.constexpr,
    num_warps: gl.constexpr,
):
    """As `products.tokendyno_stream_product`, with 8-bit weights in words of four, (N, K / 4), and a scale a row.

    FLOAT  they are e4m3, else int8; FULL: N is a multiple of 16
    PARTS  in which the columns of a tile are copied; CHUNKS of each; DEPTH: parts under way
    """
    x, norm, w, scale, bias, residual, out = given
    W: gl.constexpr = num_warps * WORDS
    HALVES: gl.constexpr = 4 if FUSED.GATED else 2
    BAND: gl.constexpr = 2 if FLOAT else 4  # lanes of a column have as many digits of the vector
    operand: gl.constexpr = gl.BlockedLayout([1, 1, 4], [BAND, 8 // BAND, 4], [1, 1, num_warps], [2, 1, 0])
    fours: gl.constexpr = gl.BlockedLayout([1, 4], [32, 1], [num_warps, 1], [1, 0])
    tile: gl.constexpr = gl.SliceLayout(1, gl.BlockedLayout([1, 1, 2], [8, 4, 1], [1, num_warps, 1], [2, 1, 0]))
    shared: gl.constexpr = gl.SwizzledSharedLayout(16, 1, 2, [2, 1, 0])
    if FUSED.EARLY:
        gdc_launch_dependents()
    ring = gl.allocate_shared_memory(gl.int32, [DEPTH, CHUNKS * HALVES * BAND, 8 // BAND, W], shared)
    held = gl.allocate_shared_memory(gl.int32, [PARTS, CHUNKS * 4, 1, W], shared)
    first = gl.program_id(0)
    step = gl.num_programs(0)
    turns = (gl.cdiv(N, 16) - first + step - 1) // step * PARTS

    DEEP: gl.constexpr = 8 // BAND
    by_rows: gl.constexpr = gl.BlockedLayout(
        [1, 1, 4], [1, 1, 32], [num_warps // min(num_warps, DEEP), min(num_warps, DEEP), 1], [2, 1, 0]
    )
    of_rows: gl.constexpr = gl.SliceLayout(2, by_rows)
    band = gl.arange(0, CHUNKS * HALVES * BAND, gl.SliceLayout(1, of_rows))
    half = band // BAND % HALVES
    row = (half % 2 * 8 + band % BAND * DEEP)[:, None] + gl.arange(0, DEEP, gl.SliceLayout(0, of_rows))[None, :]
    at = (row + (half // 2 * N)[:, None]).to(gl.int64) * (K // 4) + (band // (BAND * HALVES) * W)[:, None]
    at = w + (at[:, :, None] + gl.arange(0, W, gl.SliceLayout(0, gl.SliceLayout(1, by_rows)))[None, None, :])
    for d in gl.static_range(DEPTH):
        if d < turns:
            _ask(ring.index(d), at, row, d, N, K, PARTS, CHUNKS * W, FULL)
        async_copy.commit_group()

    below = gl.arange(0, 2, gl.SliceLayout(0, tile))[None, :] * 8
    rows = first * 16 + gl.arange(0, 8, gl.SliceLayout(1, tile))[:, None] + below
    units, other_units = per_row(scale, rows, rows < N, N, FUSED)
    constant = gl.zeros([8, 2], gl.float32, tile)
    other_constant = constant
    added = constant
    if FUSED.BIAS:
        constant, other_constant = per_row(bias, rows, rows < N, N, FUSED)
    columns = gl.arange(0, CHUNKS * W, gl.SliceLayout(1, fours))[:, None] * 4
    columns += gl.arange(0, 4, gl.SliceLayout(0, fours))[None, :]
    learned = ()
    if FUSED.NORM:
        for c in gl.static_range(PARTS):
            learned += (gl.load(norm + c * (CHUNKS * 4 * W) + columns),)
    if FUSED.EARLY:
        gdc_wait()
    plain = ()
    for c in gl.static_range(PARTS):
        plain += (gl.load(x + c * (CHUNKS * 4 * W) + columns),)
    if FUSED.RESIDUAL:
        added = gl.load(residual + rows, mask=rows < N, other=0.0).to(gl.float32)
    vectors, most, shrink = prepared(plain, learned, eps, K, PARTS, FUSED.NORM, FUSED.OFFSET)
    for c in gl.static_range(PARTS):
        if FLOAT:
            codes = core_parts.halves(vectors[c] * (MOST_HALF / most))
        else:
            codes = core_parts.digits(vectors[c] * (MOST / most) + 12582912.0)
        codes = gl.permute(gl.reshape(codes, [CHUNKS, W, 4]), (0, 2, 1))
        held.index(c).store(gl.reshape(codes, [CHUNKS * 4, 1, W]))
    lane = gl.arange(0, W, gl.SliceLayout(0, gl.SliceLayout(1, operand)))[None, None, :] // 4 % 4
    if FLOAT:  # lanes 0 and 1 have the same, and 2 and 3
        weight = gl.where(lane == 0, 1.0, gl.where(lane == 2, 1 / 2048, 0.0)) * (most * shrink / MOST_HALF)
    else:
        weight = gl.where(lane == 0, 65536.0, gl.where(lane == 1, 256.0, gl.where(lane == 2, 1.0, 0.0)))
        weight *= most * shrink / MOST
    total = gl.zeros([BAND, DEEP, W], gl.float32 if FLOAT else gl.int32, operand)
    other = gl.zeros([BAND, DEEP, W], gl.float32 if FLOAT else gl.int32, operand)
    for turn in range(turns):
        part = turn % PARTS
        async_copy.wait_group(DEPTH - 1)
        barrier()
        if part == 0:
            total = gl.zeros([BAND, DEEP, W], gl.float32 if FLOAT else gl.int32, operand)
            other = gl.zeros([BAND, DEEP, W], gl.float32 if FLOAT else gl.int32, operand)
        here = ring.index(turn % DEPTH)
        held_here = held.index(part)
        for c in gl.static_range(CHUNKS):
            total = _multiplied(here, held_here, total, c, c * HALVES, operand, BAND, FLOAT)
            if FUSED.GATED:
                other = _multiplied(here, held_here, other, c, c * HALVES + 2, operand, BAND, FLOAT)
        if turn + DEPTH < turns:
            _ask(here, at, row, turn + DEPTH, N, K, PARTS, CHUNKS * W, FULL)
        async_copy.commit_group()
        if part == PARTS - 1:
            if FUSED.GATED:
                both = gl.sum(gl.join(sums(total, weight, num_warps), sums(other, weight, num_warps)), 1)
                result, second = gl.split(both)
                result = gl.convert_layout(result, tile, assert_trivial=True) * units + constant
                second = gl.convert_layout(second, tile, assert_trivial=True) * other_units + other_constant
            else:
                result = gl.sum(sums(total, weight, num_warps), 1) * units + constant
                second = result
            result = activated(result, second, FUSED)
            gl.store(out + rows, (result * FUSED.GAIN + added).to(out.dtype.element_ty), mask=rows < N)
            rows += step * 16
            units, other_units = per_row(scale, rows, rows < N, N, FUSED)
            if FUSED.BIAS:
                constant, other_constant = per_row(bias, rows, rows < N, N, FUSED)
            if FUSED.RESIDUAL:
                added = gl.load(residual + rows, mask=rows < N, other=0.0).to(gl.float32)


def launch(x: torch.Tensor, w: torch.Tensor, out: torch.Tensor, fused: Fused, how: Settings) -> None:
    """`how`: as of `cut`; not for LayerNorms."""
    rows, columns = w.shape[0] // (2 if fused.gated else 1), w.shape[1]
    programs, more = cut(rows, columns, 4, how)
    tokendyno_core_product[(programs,)](
        (x, *fused.tensors(x, "norm"), w.view(torch.int32), *fused.tensors(x, "scale", "bias", "residual"), out),
        rows,
        fused.eps,
        K=columns,
        FLOAT=w.dtype == torch.float8_e4m3fn,
        **fused.constants(),
        **more,
    )
