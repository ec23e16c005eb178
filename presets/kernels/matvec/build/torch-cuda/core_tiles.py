"""Products of one vector with 4-bit weights in torchao's tiles (`tiles`) on tensor cores, for which they are packed.

As in `cores`: a warp has 16 rows, and the vector's three bytes are columns of the other operand. A word of eight
weights becomes two of four bytes, 16 * (value - 8), by three instructions. Sums of 128 columns are exact, and become
floats when their scale is applied.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from .core_parts import MOST, WORDS, cut, digits, prepared
from .parts import Fused, activated, barrier, per_row
from .settings import Settings


def _fours() -> str:
    """PTX of `_multiplied`: a word of each row becomes two of four bytes, 16 * (value - 8), and is multiplied."""
    lines = [".reg .b32 a, b, c, d, e, f, o, p;", "mov.b32 a, 0;"]
    for word in range(4):
        rows = f"${4 + word}", f"${8 + word}"
        lines += [f"shl.b32 {to}, {row}, 4;" for to, row in zip("ef", rows, strict=True)]
        for to, row in zip("efop", ("e", "f", *rows), strict=True):
            lines.append(f"lop3.b32 {to}, {row}, 0xF0F0F0F0, 0x80808080, 0x6A;")
        before = "a, a, a, a" if word == 0 else "a, b, c, d"
        after = "$0, $1, $2, $3" if word == 3 else "a, b, c, d"
        lines.append(
            f"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {{{after}}}, {{e, f, o, p}}, "
            f"{{${12 + 2 * word}, ${13 + 2 * word}}}, {{{before}}};"
        )
    return "\n".join(["{", *lines, "}"])


FOURS: gl.constexpr = gl.constexpr(_fours())


@gluon.jit
def _multiplied(top, bottom, low, high):
    """16 times (rows - 8) times vector: of a lane four words of a row and of the row 8 below it; low, high: a digit of
    the vector for the even and odd four bits of the first word, of the second; of the third, of the fourth."""
    return gl.inline_asm_elementwise(
        FOURS,
        "=r,=r,=r,=r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r",
        [top, bottom, low, high],
        dtype=gl.int32,
        is_pure=False,
        pack=4,
    )


@gluon.jit
def _ask(
    ring,
    scales,
    places,
    turn,
    N,
    K: gl.constexpr,
    PARTS: gl.constexpr,
    GROUPS: gl.constexpr,
    SIDES: gl.constexpr,
    FULL: gl.constexpr,
):
    """Ask for a part of the columns, GROUPS of 128, of 16 rows, or of 16 and the 16 that they gate, with their scales
    and zeros. places: where these are in the first tile, and in which rows."""
    at, from_here, row, group_row = places
    tile = gl.program_id(0) + turn // PARTS * gl.num_programs(0)
    part = turn % PARTS
    here = at + (gl.to_tensor(tile * 2).to(gl.int64) * K + part * (GROUPS * 128))
    there = from_here + (tile * 16 + part * GROUPS * (N * SIDES))
    if FULL:
        async_copy.async_copy_global_to_shared(ring, here, eviction_policy="evict_first")
        async_copy.async_copy_global_to_shared(scales, there, eviction_policy="evict_first")
    else:
        inside = (row + tile * 16 < N)[:, :, None]
        async_copy.async_copy_global_to_shared(ring, here, inside, eviction_policy="evict_first")
        inside = (group_row + tile * 16 < N)[None, :]
        async_copy.async_copy_global_to_shared(scales, there, inside, eviction_policy="evict_first")


@gluon.jit
def _scaled(exact, pairs, lump, total, summed: gl.constexpr, GROUPS: gl.constexpr):
    """total (8, G, 4, 2) + the sums of a chunk with their scales and zeros, pairs (G, 16)."""
    found, _ = gl.split(gl.reshape(exact, [8, GROUPS, 4, 2, 2]))
    found = gl.convert_layout(found, summed, assert_trivial=True).to(gl.float32)
    pair = gl.reshape(gl.permute(gl.reshape(pairs, [GROUPS, 2, 8]), (2, 0, 1)), [8, GROUPS, 1, 2])
    pair = gl.convert_layout(pair, summed)
    units = (pair << 16).to(gl.float32, bitcast=True)
    zeros = (pair & -65536).to(gl.float32, bitcast=True)
    return total + found * units + zeros * lump


@gluon.jit
def tokendyno_core_tile_product(
    given,
    N,
    eps,
    K: gl.constexpr,
    FUSED: gl.constexpr,
    FULL: gl.constexpr,
    PARTS: gl.constexpr,
    CHUNKS: gl.constexpr,
    DEPTH: gl.constexpr,
    PAIRS: gl.constexpr,
    num_warps: gl.constexpr,
):
    """As `tiles.tokendyno_tile_product`.

    FULL   N is a multiple of 16; PAIRS: which lanes have which scales and zeros
    PARTS  in which the columns of a tile are copied; CHUNKS of each; DEPTH: parts under way
    """
    x, norm, w, scale, bias, residual, out = given
    W: gl.constexpr = num_warps * WORDS
    GROUPS: gl.constexpr = W // 16  # of a chunk
    HALVES: gl.constexpr = 4 if FUSED.GATED else 2
    SIDES: gl.constexpr = HALVES // 2
    operand: gl.constexpr = gl.BlockedLayout([1, 1, 4], [4, 2, 4], [1, 1, num_warps], [2, 1, 0])
    summed: gl.constexpr = gl.BlockedLayout([1, 1, 1, 2], [8, 1, 4, 1], [1, num_warps, 1, 1], [3, 2, 1, 0])
    fours: gl.constexpr = gl.BlockedLayout([1, 4], [32, 1], [num_warps, 1], [1, 0])
    by_groups: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [num_warps, 1], [1, 0])
    tile: gl.constexpr = gl.SliceLayout(1, gl.SliceLayout(2, summed))
    shared: gl.constexpr = gl.SwizzledSharedLayout(16, 1, 2, [2, 1, 0])
    plainly: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    if FUSED.EARLY:
        gdc_launch_dependents()
    ring = gl.allocate_shared_memory(gl.int32, [DEPTH, CHUNKS * HALVES * 4, 2, W], shared)
    scales = gl.allocate_shared_memory(gl.int32, [DEPTH, CHUNKS * SIDES * GROUPS, 16], plainly)
    held = gl.allocate_shared_memory(gl.int32, [PARTS, CHUNKS * 8, 1, W], shared)
    lumps = gl.allocate_shared_memory(gl.float32, [PARTS, CHUNKS * GROUPS], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    first = gl.program_id(0)
    step = gl.num_programs(0)
    turns = (gl.cdiv(N, 16) - first + step - 1) // step * PARTS

    of_rows: gl.constexpr = gl.SliceLayout(2, operand)
    band = gl.arange(0, CHUNKS * HALVES * 4, gl.SliceLayout(1, of_rows))  # two rows of a chunk: half, then chunk
    half = band // 4 % HALVES
    row = (half % 2 * 8 + band % 4 * 2)[:, None] + gl.arange(0, 2, gl.SliceLayout(0, of_rows))[None, :]
    at = (half % 2 + half // 2 * (N // 8)).to(gl.int64) * K + band // (4 * HALVES) * (GROUPS * 128)
    at = at[:, None] + row % 8 * 16
    word = gl.arange(0, W, gl.SliceLayout(0, gl.SliceLayout(1, operand)))
    at = w + (at[:, :, None] + (word // 16 * 128 + word % 16)[None, None, :])
    group = gl.arange(0, CHUNKS * SIDES * GROUPS, gl.SliceLayout(1, by_groups))  # side, then chunk
    group_row = gl.arange(0, 16, gl.SliceLayout(0, by_groups))
    from_here = group // GROUPS % SIDES * N + (group // (GROUPS * SIDES) * GROUPS + group % GROUPS) * (N * SIDES)
    from_here = scale + (from_here[:, None] + group_row[None, :])
    places = at, from_here, row, group_row
    for d in gl.static_range(DEPTH):
        if d < turns:
            _ask(ring.index(d), scales.index(d), places, d, N, K, PARTS, CHUNKS * GROUPS, SIDES, FULL)
        async_copy.commit_group()

    below = gl.arange(0, 2, gl.SliceLayout(0, tile))[None, :] * 8
    rows = first * 16 + gl.arange(0, 8, gl.SliceLayout(1, tile))[:, None] + below
    constant = gl.zeros([8, 2], gl.float32, tile)
    other_constant = constant
    added = constant
    if FUSED.BIAS:
        constant, other_constant = per_row(bias, rows, rows < N, N, FUSED)
    place = gl.arange(0, CHUNKS * W, gl.SliceLayout(1, fours))
    four = gl.arange(0, 4, gl.SliceLayout(0, fours))
    columns = (place // 16 * 128 + place % 4 * 32 + place % 16 // 4 * 2)[:, None] + (four // 2 * 16 + four % 2)[None, :]
    learned = ()
    if FUSED.NORM:
        for c in gl.static_range(PARTS):
            learned += (gl.load(norm + c * (CHUNKS * 8 * W) + columns),)
            learned += (gl.load(norm + c * (CHUNKS * 8 * W) + 8 + columns),)
    if FUSED.EARLY:
        gdc_wait()
    plain = ()
    for c in gl.static_range(PARTS):
        plain += (gl.load(x + c * (CHUNKS * 8 * W) + columns),)
        plain += (gl.load(x + c * (CHUNKS * 8 * W) + 8 + columns),)
    if FUSED.RESIDUAL:
        added = gl.load(residual + rows, mask=rows < N, other=0.0).to(gl.float32)
    vectors, most, shrink = prepared(plain, learned, eps, K, 2 * PARTS, FUSED.NORM, FUSED.OFFSET)
    for c in gl.static_range(PARTS):
        codes = ()
        for odd in gl.static_range(2):
            near = gl.permute(gl.reshape(vectors[2 * c + odd], [CHUNKS * W, 2, 2]), (0, 2, 1))
            near = gl.convert_layout(gl.reshape(near, [CHUNKS * W, 4]), fours)  # columns 0, 16, 1 and 17
            codes += (digits(near * (MOST / most) + 12582912.0),)
        both = gl.reshape(gl.join(codes[0], codes[1]), [CHUNKS, W // 4, 2, 2, 4, 2])  # .., word of four, digit, odd
        held.index(c).store(gl.reshape(gl.permute(both, (2, 0, 4, 1, 3, 5)), [CHUNKS * 8, 1, W]))
        lump = gl.sum(gl.reshape(gl.sum(vectors[2 * c] + vectors[2 * c + 1], 1), [CHUNKS * GROUPS, 16]), 1)
        lumps.index(c).store(lump * (MOST / 4096 / most))  # in units of the first byte of 16 times a weight
    lane = gl.arange(0, 4, gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(3, summed))))[None, None, :, None]
    weight = gl.where(lane == 0, 65536.0, gl.where(lane == 1, 256.0, gl.where(lane == 2, 1.0, 0.0)))
    weight *= most * shrink / (16 * MOST)
    of_group: gl.constexpr = gl.SliceLayout(0, gl.SliceLayout(2, gl.SliceLayout(3, summed)))
    total = gl.zeros([8, GROUPS, 4, 2], gl.float32, summed)
    other = gl.zeros([8, GROUPS, 4, 2], gl.float32, summed)
    for turn in range(turns):
        part = turn % PARTS
        async_copy.wait_group(DEPTH - 1)
        barrier()
        if part == 0:
            total = gl.zeros([8, GROUPS, 4, 2], gl.float32, summed)
            other = gl.zeros([8, GROUPS, 4, 2], gl.float32, summed)
        here = ring.index(turn % DEPTH)
        scales_here = scales.index(turn % DEPTH)
        for c in gl.static_range(CHUNKS):
            low = held.index(part).slice(c * 4, 4, 0).load(operand)
            high = held.index(part).slice((CHUNKS + c) * 4, 4, 0).load(operand)
            of_part = lumps.index(part).slice(c * GROUPS, GROUPS, 0).load(of_group)[None, :, None, None]
            of_part = gl.where(lane == 0, of_part, 0.0)
            top = here.slice(c * HALVES * 4, 4, 0).load(operand)
            bottom = here.slice(c * HALVES * 4 + 4, 4, 0).load(operand)
            pairs = scales_here.slice(c * SIDES * GROUPS, GROUPS, 0).load(PAIRS)
            total = _scaled(_multiplied(top, bottom, low, high), pairs, of_part, total, summed, GROUPS)
            if FUSED.GATED:
                top = here.slice(c * HALVES * 4 + 8, 4, 0).load(operand)
                bottom = here.slice(c * HALVES * 4 + 12, 4, 0).load(operand)
                pairs = scales_here.slice((c * SIDES + 1) * GROUPS, GROUPS, 0).load(PAIRS)
                other = _scaled(_multiplied(top, bottom, low, high), pairs, of_part, other, summed, GROUPS)
        if turn + DEPTH < turns:
            _ask(here, scales_here, places, turn + DEPTH, N, K, PARTS, CHUNKS * GROUPS, SIDES, FULL)
        async_copy.commit_group()
        if part == PARTS - 1:
            if FUSED.GATED:
                result, second = gl.split(gl.sum(gl.sum(gl.join(total * weight, other * weight), 2), 1))
                result = gl.convert_layout(result, tile, assert_trivial=True) + constant
                second = gl.convert_layout(second, tile, assert_trivial=True) + other_constant
            else:
                result = gl.sum(gl.sum(total * weight, 2), 1) + constant
                second = result
            result = activated(result, second, FUSED)
            gl.store(out + rows, (result * FUSED.GAIN + added).to(out.dtype.element_ty), mask=rows < N)
            rows += step * 16
            if FUSED.BIAS:
                constant, other_constant = per_row(bias, rows, rows < N, N, FUSED)
            if FUSED.RESIDUAL:
                added = gl.load(residual + rows, mask=rows < N, other=0.0).to(gl.float32)


def pairs_layout(warps: int) -> gl.DistributedLinearLayout:
    """Of (2 * warps groups, 16 rows): each lane has the rows of its words, of which four lanes have parts."""
    return gl.DistributedLinearLayout(
        reg_bases=[[0, 8], [warps, 0]],
        lane_bases=[[0, 0], [0, 0], [0, 1], [0, 2], [0, 4]],
        warp_bases=[[1 << bit, 0] for bit in range(warps.bit_length() - 1)],
        block_bases=[],
        shape=[2 * warps, 16],
    )


def launch(given: tuple, rows: int, columns: int, fused: Fused, how: Settings) -> None:
    """`given`: as of `tiles.tokendyno_tile_product`, up to `out`; how: as of `cut`."""
    programs, more = cut(rows, columns, 8, how)
    pairs = pairs_layout(how["num_warps"])
    tokendyno_core_tile_product[(programs,)](
        given, rows, fused.eps, K=columns, PAIRS=pairs, **fused.constants(), **more
    )
