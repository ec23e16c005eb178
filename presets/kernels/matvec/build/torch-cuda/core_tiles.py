"""Products of one vector with 4-bit weights in torchao's tiles (`tiles`) on tensor cores, for which they are packed.

As in `cores`: a warp has 16 rows, and the vector's three bytes are columns of the other operand. A word of eight
weights becomes two of four bytes, 16 * (value - 8), by three instructions. Sums of 128 columns are exact, and become
floats when their scale is applied.
"""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from .core_parts import MOST, WORDS, cut, digits, most_and_sum
from .parts import gate


@gluon.jit
def _multiplied(top, bottom, even, odd):
    """1.5 * 2**23 plus 16 times (rows - 8) times vector, a float's bits: of a lane four words of a row and of the row 8
    below it, and of a digit of the vector, in the order of their even and odd four bits."""
    return gl.inline_asm_elementwise(
        """{
        .reg .b32 a, b, c, d, e, f, o, p;
        mov.b32 a, 0x4B400000;
        shl.b32 e, $4, 4;
        shl.b32 f, $8, 4;
        lop3.b32 e, e, 0xF0F0F0F0, 0x80808080, 0x6A;
        lop3.b32 f, f, 0xF0F0F0F0, 0x80808080, 0x6A;
        lop3.b32 o, $4, 0xF0F0F0F0, 0x80808080, 0x6A;
        lop3.b32 p, $8, 0xF0F0F0F0, 0x80808080, 0x6A;
        mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {a, b, c, d}, {e, f, o, p}, {$12, $16}, {a, a, a, a};
        shl.b32 e, $5, 4;
        shl.b32 f, $9, 4;
        lop3.b32 e, e, 0xF0F0F0F0, 0x80808080, 0x6A;
        lop3.b32 f, f, 0xF0F0F0F0, 0x80808080, 0x6A;
        lop3.b32 o, $5, 0xF0F0F0F0, 0x80808080, 0x6A;
        lop3.b32 p, $9, 0xF0F0F0F0, 0x80808080, 0x6A;
        mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {a, b, c, d}, {e, f, o, p}, {$13, $17}, {a, b, c, d};
        shl.b32 e, $6, 4;
        shl.b32 f, $10, 4;
        lop3.b32 e, e, 0xF0F0F0F0, 0x80808080, 0x6A;
        lop3.b32 f, f, 0xF0F0F0F0, 0x80808080, 0x6A;
        lop3.b32 o, $6, 0xF0F0F0F0, 0x80808080, 0x6A;
        lop3.b32 p, $10, 0xF0F0F0F0, 0x80808080, 0x6A;
        mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {a, b, c, d}, {e, f, o, p}, {$14, $18}, {a, b, c, d};
        shl.b32 e, $7, 4;
        shl.b32 f, $11, 4;
        lop3.b32 e, e, 0xF0F0F0F0, 0x80808080, 0x6A;
        lop3.b32 f, f, 0xF0F0F0F0, 0x80808080, 0x6A;
        lop3.b32 o, $7, 0xF0F0F0F0, 0x80808080, 0x6A;
        lop3.b32 p, $11, 0xF0F0F0F0, 0x80808080, 0x6A;
        mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {$0, $1, $2, $3}, {e, f, o, p}, {$15, $19}, {a, b, c, d};
        }""",
        "=r,=r,=r,=r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r", [top, bottom, even, odd], dtype=gl.int32, is_pure=False, pack=4,
    )  # fmt: skip


@gluon.jit
def _ask(
    ring, scales, w, scale, turn, N, K: gl.constexpr, PARTS: gl.constexpr, CHUNKS: gl.constexpr, HALVES: gl.constexpr,
    num_warps: gl.constexpr,
):  # fmt: skip
    """Ask for a part of the columns of 16 rows, or of 16 and the 16 that they gate, and their scales and zeros."""
    W: gl.constexpr = num_warps * WORDS
    GROUPS: gl.constexpr = W // 16
    operand: gl.constexpr = gl.BlockedLayout([1, 1, 4], [2, 4, 4], [1, 1, num_warps], [2, 1, 0])
    by_groups: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [num_warps, 1], [1, 0])
    tile = gl.program_id(0) + turn // PARTS * gl.num_programs(0)
    part = turn % PARTS
    of_rows: gl.constexpr = gl.SliceLayout(2, operand)
    eighth = gl.arange(0, CHUNKS * HALVES * 2, gl.SliceLayout(1, of_rows))  # 4 rows of a chunk: half, then chunk
    half = eighth // 2 % HALVES
    of_tile = tile * 2 + half % 2
    begin = (of_tile + half // 2 * (N // 8)).to(gl.int64) * K + eighth % 2 * 64
    begin += (part * CHUNKS + eighth // (2 * HALVES)) * (GROUPS * 128)
    at = begin[:, None] + (gl.arange(0, 4, gl.SliceLayout(0, of_rows)) * 16)[None, :]
    word = gl.arange(0, W, gl.SliceLayout(0, gl.SliceLayout(1, operand)))
    word = word // 16 * 128 + word % 16
    inside = (of_tile * 8 < N)[:, None] & (gl.arange(0, 4, gl.SliceLayout(0, of_rows)) < 4)[None, :]
    async_copy.async_copy_global_to_shared(
        ring, w + at[:, :, None] + word[None, None, :], inside[:, :, None], eviction_policy="evict_first"
    )
    SIDES: gl.constexpr = HALVES // 2
    group = gl.arange(0, CHUNKS * SIDES * GROUPS, gl.SliceLayout(1, by_groups))  # side, then chunk
    row = tile * 16 + gl.arange(0, 16, gl.SliceLayout(0, by_groups))
    side = group // GROUPS % SIDES
    group = (part * CHUNKS + group // (GROUPS * SIDES)) * GROUPS + group % GROUPS
    from_here = scale + side * N + group * (N * SIDES)
    async_copy.async_copy_global_to_shared(
        scales, from_here[:, None] + row[None, :], (row < N)[None, :] & (group >= 0)[:, None],
        eviction_policy="evict_first",
    )  # fmt: skip


@gluon.jit
def _scaled(exact, weight, pairs, lump, total, summed: gl.constexpr, GROUPS: gl.constexpr):
    """total (2, 4, G, 4, 2) + the sums of a chunk with their scales and zeros, pairs (G, 16)."""
    found = (exact.to(gl.float32, bitcast=True) - 12582912.0) * weight
    found = gl.convert_layout(gl.sum(gl.reshape(found, [2, 4, GROUPS, 4, 2, 2]), 5), summed, assert_trivial=True)
    of_rows = gl.permute(gl.reshape(pairs, [GROUPS, 2, 2, 4]), (2, 3, 0, 1))
    pair = gl.convert_layout(gl.reshape(of_rows, [2, 4, GROUPS, 1, 2]), summed)
    units = (pair << 16).to(gl.float32, bitcast=True)
    zeros = (pair & -65536).to(gl.float32, bitcast=True)
    return total + found * units + zeros * lump


@gluon.jit
def _row_sums(total, out: gl.constexpr):
    """(16,) float32 of the sums of all lanes."""
    found = gl.sum(gl.sum(total, 3), 2)  # (2, 4, 2)
    return gl.convert_layout(gl.reshape(gl.permute(found, (2, 0, 1)), [16]), out)


@gluon.jit
def tokendyno_core_tile_product(
    x, norm, w, scale, bias, residual, out, N, eps, K: gl.constexpr, NORM: gl.constexpr,
    OFFSET: gl.constexpr, BIAS: gl.constexpr, RESIDUAL: gl.constexpr, GATED: gl.constexpr, GELU: gl.constexpr,
    PARTS: gl.constexpr, CHUNKS: gl.constexpr, DEPTH: gl.constexpr, EARLY: gl.constexpr, PAIRS: gl.constexpr,
    num_warps: gl.constexpr,
):  # fmt: skip
    """As `tiles.tokendyno_tile_product`.

    PARTS  in which the columns of a tile are copied; DEPTH: parts under way; PAIRS: where lanes have scales and zeros
    """
    W: gl.constexpr = num_warps * WORDS
    GROUPS: gl.constexpr = W // 16
    HALVES: gl.constexpr = 4 if GATED else 2
    SIDES: gl.constexpr = HALVES // 2
    operand: gl.constexpr = gl.BlockedLayout([1, 1, 4], [2, 4, 4], [1, 1, num_warps], [2, 1, 0])
    summed: gl.constexpr = gl.BlockedLayout([1, 1, 1, 1, 2], [2, 4, 1, 4, 1], [1, 1, num_warps, 1, 1], [4, 3, 2, 1, 0])
    fours: gl.constexpr = gl.BlockedLayout([1, 4], [32, 1], [num_warps, 1], [1, 0])
    line: gl.constexpr = gl.BlockedLayout([1], [32], [num_warps], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(16, 1, 2, [2, 1, 0])
    if EARLY:
        gdc_launch_dependents()
    ring = gl.allocate_shared_memory(gl.int32, [DEPTH, CHUNKS * HALVES * 2, 4, W], shared)
    scales = gl.allocate_shared_memory(
        gl.int32, [DEPTH, CHUNKS * SIDES * GROUPS, 16], gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    )
    even_held = gl.allocate_shared_memory(gl.int32, [PARTS, CHUNKS, 4, W], shared)
    odd_held = gl.allocate_shared_memory(gl.int32, [PARTS, CHUNKS, 4, W], shared)
    lumps = gl.allocate_shared_memory(gl.float32, [PARTS, CHUNKS * GROUPS], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    first = gl.program_id(0)
    step = gl.num_programs(0)
    turns = (gl.cdiv(N, 16) - first + step - 1) // step * PARTS
    for d in gl.static_range(DEPTH):
        if d < turns:
            _ask(ring.index(d), scales.index(d), w, scale, d, N, K, PARTS, CHUNKS, HALVES, num_warps)
        async_copy.commit_group()
    rows = first * 16 + gl.arange(0, 16, line)
    constant = gl.zeros([16], gl.float32, line)
    other_constant = constant
    added = constant
    if BIAS:
        constant = gl.load(bias + rows, mask=rows < N, other=0.0).to(gl.float32)
        if GATED:
            other_constant = gl.load(bias + N + rows, mask=rows < N, other=0.0).to(gl.float32)
    word = gl.arange(0, CHUNKS * W, gl.SliceLayout(1, fours))
    four = gl.arange(0, 4, gl.SliceLayout(0, fours))
    columns = (word // 16 * 128 + word % 4 * 32 + word % 16 // 4 * 2)[:, None] + (four // 2 * 16 + four % 2)[None, :]
    learned = ()
    if NORM:
        for c in gl.static_range(PARTS):
            learned += (gl.load(norm + c * (CHUNKS * 8 * W) + columns),)
            learned += (gl.load(norm + c * (CHUNKS * 8 * W) + 8 + columns),)
    if EARLY:
        gdc_wait()
    plain = ()
    for c in gl.static_range(PARTS):
        plain += (gl.load(x + c * (CHUNKS * 8 * W) + columns),)
        plain += (gl.load(x + c * (CHUNKS * 8 * W) + 8 + columns),)
    if RESIDUAL:
        added = gl.load(residual + rows, mask=rows < N, other=0.0).to(gl.float32)
    vectors = ()
    peak = gl.full([CHUNKS * W, 4], 1e-30, gl.float32, fours)
    power = gl.zeros([CHUNKS * W, 4], gl.float32, fours)
    for c in gl.static_range(2 * PARTS):
        vector = plain[c].to(gl.float32)
        if NORM:
            power += vector * vector
            vector *= learned[c].to(gl.float32) + OFFSET
        peak = gl.maximum(peak, gl.abs(vector))
        vectors += (vector,)
    if NORM:
        most, powers = gl.reduce((gl.max(peak, 1), gl.sum(power, 1)), 0, most_and_sum)
        shrink = gl.rsqrt(powers / K + eps)
    else:
        most = gl.max(gl.max(peak, 1), 0)
        shrink = 1.0
    for c in gl.static_range(PARTS):
        for odd in gl.static_range(2):
            near = gl.permute(gl.reshape(vectors[2 * c + odd], [CHUNKS * W, 2, 2]), (0, 2, 1))
            near = gl.convert_layout(gl.reshape(near, [CHUNKS * W, 4]), fours)  # columns 0, 16, 1 and 17
            codes = digits(near * (MOST / most) + 12582912.0)
            codes = gl.permute(gl.reshape(codes, [CHUNKS, W, 4]), (0, 2, 1))
            if odd == 0:
                even_held.index(c).store(codes)
            else:
                odd_held.index(c).store(codes)
        lump = gl.sum(gl.reshape(gl.sum(vectors[2 * c] + vectors[2 * c + 1], 1), [CHUNKS * GROUPS, 16]), 1)
        lumps.index(c).store(lump)
    at = gl.arange(0, W, gl.SliceLayout(0, gl.SliceLayout(1, operand)))[None, None, :]
    digit = at // 4 % 4 * 2 + at % 2
    weight = gl.where(digit == 0, 65536.0, gl.where(digit == 1, 256.0, gl.where(digit == 2, 1.0, 0.0)))
    weight *= most / (16 * MOST)
    of_group: gl.constexpr = gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(3, gl.SliceLayout(4, summed))))
    quarter = gl.arange(0, 4, gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(2, gl.SliceLayout(4, summed)))))
    once = (quarter == 0)[None, None, None, :, None]
    total = gl.zeros([2, 4, GROUPS, 4, 2], gl.float32, summed)
    other = gl.zeros([2, 4, GROUPS, 4, 2], gl.float32, summed)
    for turn in range(turns):
        part = turn % PARTS
        async_copy.wait_group(DEPTH - 1)
        gl.thread_barrier()
        if part == 0:
            total = gl.zeros([2, 4, GROUPS, 4, 2], gl.float32, summed)
            other = gl.zeros([2, 4, GROUPS, 4, 2], gl.float32, summed)
        rows_here = ring.index(turn % DEPTH)
        scales_here = scales.index(turn % DEPTH)
        for c in gl.static_range(CHUNKS):
            evens = even_held.index(part).slice(c, 1, 0).load(operand)
            odds = odd_held.index(part).slice(c, 1, 0).load(operand)
            of_part = lumps.index(part).slice(c * GROUPS, GROUPS, 0).load(of_group)[None, None, :, None, None]
            of_part = gl.where(once, of_part, 0.0)
            top = rows_here.slice(c * HALVES * 2, 2, 0).load(operand)
            bottom = rows_here.slice(c * HALVES * 2 + 2, 2, 0).load(operand)
            pairs = scales_here.slice(c * SIDES * GROUPS, GROUPS, 0).load(PAIRS)
            exact = _multiplied(top, bottom, evens, odds)
            total = _scaled(exact, weight, pairs, of_part, total, summed, GROUPS)
            if GATED:
                top = rows_here.slice(c * HALVES * 2 + 4, 2, 0).load(operand)
                bottom = rows_here.slice(c * HALVES * 2 + 6, 2, 0).load(operand)
                pairs = scales_here.slice((c * SIDES + 1) * GROUPS, GROUPS, 0).load(PAIRS)
                exact = _multiplied(top, bottom, evens, odds)
                other = _scaled(exact, weight, pairs, of_part, other, summed, GROUPS)
        if turn + DEPTH < turns:
            _ask(rows_here, scales_here, w, scale, turn + DEPTH, N, K, PARTS, CHUNKS, HALVES, num_warps)
        async_copy.commit_group()
        if part == PARTS - 1:
            result = _row_sums(total, line) * shrink + constant
            if GATED:
                result = gate(result, _row_sums(other, line) * shrink + other_constant, GELU)
            gl.store(out + rows, (result + added).to(out.dtype.element_ty), mask=rows < N)
            rows += step * 16
            if BIAS:
                constant = gl.load(bias + rows, mask=rows < N, other=0.0).to(gl.float32)
                if GATED:
                    other_constant = gl.load(bias + N + rows, mask=rows < N, other=0.0).to(gl.float32)
            if RESIDUAL:
                added = gl.load(residual + rows, mask=rows < N, other=0.0).to(gl.float32)


def pairs_layout(warps: int) -> gl.DistributedLinearLayout:
    """Of (2 * warps groups, 16 rows): each lane has the rows of its words, of which four lanes have parts."""
    return gl.DistributedLinearLayout(
        reg_bases=[[0, 8], [warps, 0]], lane_bases=[[0, 0], [0, 0], [0, 1], [0, 2], [0, 4]],
        warp_bases=[[1 << bit, 0] for bit in range(warps.bit_length() - 1)], block_bases=[], shape=[2 * warps, 16],
    )  # fmt: skip


def launch(
    x: torch.Tensor, norm: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor,
    residual: torch.Tensor, out: torch.Tensor, rows: int, columns: int, eps: float, how: dict[str, object],
) -> None:  # fmt: skip
    """`how`: as of `cut`; scale: int32 (K / 128, rows)."""
    programs, flags = cut(rows, columns, 8, how)
    tokendyno_core_tile_product[(programs,)](
        x, norm, w, scale, bias, residual, out, rows, eps, K=columns, PAIRS=pairs_layout(flags["num_warps"]), **flags
    )
