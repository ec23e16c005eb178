"""Matrix-vector products with 4-bit weights of bitsandbytes (nf4, fp4) and torchao (`tiles`), as they lie in memory.

bitsandbytes keeps two weights a byte, the first in the upper half, row after row. Each stands for one of 16 numbers,
times the scale of its block of 64. Doubly quantized scales are bytes: one of 256 numbers, times the scale of 256 of
them, plus an offset. A byte of weights is looked up in a table of pairs of numbers in shared memory, in the vector's
dtype: FACTOR times the numbers of bitsandbytes, which rounds them less than bitsandbytes rounds its dequantized
weights. torchao's four bits are the last of a number's, to which BIASED is added.

Pairs go to tensor cores as they are, a tile of 16 rows at a time, whose columns are dealt out to the warps in chunks of
128; sums of a block are scaled in float32. A lane hands over 16 bytes of its row as they lie, so columns come in an
order of their own, which the vector follows. The other operand of a tensor core has 8 columns for one vector: they hold
the parts of the vector that belong to 8 chunks, or to the two blocks each of 4, so that a warp has all of a vector in
few registers. What a chunk gives with the parts of another is not looked at.

Each lane copies its words into shared memory ahead of their use. Each warp leaves its sums of a tile there and goes on
with the next, so that no warp waits for another before the program's last tile.

A norm before the product is rounded to the dtype of the vector, as in a model's own code.
"""

import functools
from collections.abc import Callable

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from . import settings
from .parts import Fused, activated, barrier
from .settings import Settings

BLOCK, BLOCKS, CODE = 64, 256, 16  # weights with one scale, scales with one, numbers of 4 bits
ALIGNED = 16  # bytes, where each tensor begins
TABLES_BYTES = 33 << 10  # of shared memory: 32 KiB of pairs, and the 256 numbers of scales
MARGIN_BYTES = 1 << 10  # of shared memory, for what Triton itself needs to add up between warps
FACTOR = gl.constexpr(1.437)
"""Of nf4's numbers, times this, bfloat16 rounds away 0.06% (root mean square), of fp4's as much; of the numbers as they
are 0.11%, and of weights of any size 0.08%."""


# --- what bitsandbytes keeps ----------------------------------------------------------------------


def matrix(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
    """(rows, columns / 2) uint8, and what `parts` takes apart, float32 or uint8; None for a `Params4bit` that no kernel
    reads: in other blocks, in float32, or whose scales do not lie together (backend/worker/patch/quantized.py)."""
    state = weight.quant_state
    if torch.compiler.is_compiling() or state is None or weight.dtype != torch.uint8:
        return None
    if torch.cuda.get_device_capability() < (8, 0):  # whose tensor cores have no such product
        return None
    if state.blocksize != BLOCK or state.dtype not in ASSEMBLY or (state.nested and state.state2.blocksize != BLOCKS):
        return None
    rows, columns = state.shape
    if columns % BLOCK or columns > settings.HELD_COLUMNS:
        return None
    nested = [state.state2.code, state.offset, state.state2.absmax] if state.nested else []
    begin = at = state.code.data_ptr()
    for one in (state.code, *nested, state.absmax):
        if one.data_ptr() != at or not one.is_contiguous():
            return None
        at += one.nbytes + -one.nbytes % ALIGNED
    whole = state.code.as_strided(((at - begin) // 4,), (1,))
    return weight.view(rows, columns // 2), whole.view(torch.uint8) if nested else whole


def parts(scale: torch.Tensor, blocks: int) -> tuple[torch.Tensor, ...]:
    """What lies together, in the order of the kernel: scales of the blocks, float32 or uint8; the 16 numbers; and of
    double quantization, which is told by the dtype, 256 numbers, their scales, and offsets, one for all or one a row.

    Each begins ALIGNED, so up to three numbers of no meaning are at the end of each.
    """
    if scale.dtype != torch.uint8:
        return (scale[CODE:], *[scale] * 4)
    words, codes = scale.view(torch.float32), CODE + 256
    last = words.numel() - _padded(blocks)
    units = last - _padded(4 * -(-blocks // BLOCKS))
    return words[last:].view(torch.uint8), words, words[CODE:codes], words[units:last], words[codes:units]


def _padded(size: int) -> int:
    """Words of a tensor of as many bytes."""
    return (size + -size % ALIGNED) // 4


# --- instructions, the table, and sums of the warps -----------------------------------------------


def looked_up(to: str, row: str, byte: int, kind: str) -> list[str]:
    """PTX of the pair of numbers of a byte of bitsandbytes' words, which has columns 2 * byte and 2 * byte + 1. $12:
    where this lane's copy of the table begins."""
    return [f"prmt.b32 i, {row}, 0, 0x444{byte};", "mad.lo.u32 i, i, 128, $12;", f"ld.shared.b32 {to}, [i];"]


def biased(to: str, row: str, part: int, kind: str) -> list[str]:
    """PTX of a pair of numbers of `tiles`' words, bits 4 * part and 4 * part + 16 on: BIASED, of which four bits become
    a number by one instruction."""
    one = {"bf16": "0x43004300", "f16": "0x64006400"}[kind]
    return [f"shr.u32 {to}, {row}, {4 * part};", f"lop3.b32 {to}, {to}, 0x000F000F, {one}, 0xEA;"]


def assembly(kind: str, pair_of: Callable[[str, str, int, str], list[str]]) -> str:
    """PTX of four words each of a row ($4 to $7) and of the row 8 below it ($8 to $11), times 16 pairs of the vector
    ($16 to $31: pair j of word i is $(16 + 4 j + i)). $0 and $1, $2 and $3: two columns of the result for each row.

    Of bitsandbytes' words of chunk c, lane c of each row has the sums of both blocks; of `tiles`' words lane c // 2 has
    the sum, in the first of the two if c is even. Operands a0 and a2 of an mma are pairs of a row, a1 and a3 of the one
    8 below it.
    """
    lines = [".reg .b32 i, a0, a1, a2, a3;", *[f"mov.f32 ${result}, 0f00000000;" for result in range(4)]]
    for word in range(4):
        for half in (0, 1):
            for operand in range(4):
                row = (4, 8)[operand % 2] + word
                lines += pair_of(f"a{operand}", f"${row}", 2 * half + operand // 2, kind)
            pair = 16 + 8 * half + word
            lines.append(
                f"mma.sync.aligned.m16n8k16.row.col.f32.{kind}.{kind}.f32 {{$0, $1, $2, $3}}, {{a0, a1, a2, a3}}, "
                f"{{${pair}, ${pair + 4}}}, {{$0, $1, $2, $3}};"
            )
    return "\n".join(["{", *lines, "}"])


ASSEMBLY, TILED_ASSEMBLY = (
    {torch.bfloat16: assembly("bf16", pair_of), torch.float16: assembly("f16", pair_of)}
    for pair_of in (looked_up, biased)
)
BIASED = {torch.bfloat16: 128, torch.float16: 1024}  # whose last four bits are those of the weight


@gluon.jit
def lookup(base, code, codes, kind: gl.constexpr, W: gl.constexpr, DOUBLE: gl.constexpr):
    """Put the two numbers of each byte into shared memory, in 32 copies: each lane has a bank of its own. With DOUBLE
    the numbers of a scale follow, once. Gives `base` again, the address passing through assembly after the barrier, so
    that no look-up can be moved before it."""
    spread: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [W, 1], [1, 0])  # of four copies, those of a lane
    byte = gl.arange(0, 256, gl.SliceLayout(1, spread))
    first, second = gl.load(code + byte // 16), gl.load(code + byte % 16)
    pair = paired(first * FACTOR, second * FACTOR, kind)[:, None]
    copy = gl.arange(0, 32, gl.SliceLayout(0, spread))[None, :]
    gl.inline_asm_elementwise(
        "st.shared.v4.b32 [$4], {$8, $8, $8, $8}; mov.b32 $0, 0; mov.b32 $1, 0; mov.b32 $2, 0; mov.b32 $3, 0;",
        "=r,=r,=r,=r,r,r,r,r,r,r,r,r",
        [base + byte[:, None] * 128 + copy * 4, pair + 0 * copy],
        dtype=gl.int32,
        is_pure=False,
        pack=4,
    )
    if DOUBLE:
        each = gl.arange(0, 256, gl.BlockedLayout([1], [32], [W], [0]))
        gl.inline_asm_elementwise(
            "st.shared.f32 [$1], $2; mov.b32 $0, 0;",
            "=r,r,f",
            [base + (32768 + each * 4), gl.load(codes + each)],
            dtype=gl.int32,
            is_pure=False,
            pack=1,
        )
    barrier()
    return gl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [base], dtype=gl.int32, is_pure=False, pack=1)


@gluon.jit
def floats(pair, kind: gl.constexpr):
    """Both halves of each word as float32."""
    if kind == gl.bfloat16:
        one, two = (pair << 16).to(gl.float32, bitcast=True), (pair & -65536).to(gl.float32, bitcast=True)
    else:
        one = pair.to(gl.int16).to(kind, bitcast=True).to(gl.float32)
        two = (pair >> 16).to(gl.int16).to(kind, bitcast=True).to(gl.float32)
    return one, two


@gluon.jit
def paired(one, two, kind: gl.constexpr):
    """The reverse, rounded."""
    low = one.to(kind).to(gl.int16, bitcast=True).to(gl.int32) & 0xFFFF
    return low | (two.to(kind).to(gl.int16, bitcast=True).to(gl.int32) << 16)


@functools.cache
def copies(warps: int) -> str:
    """PTX that copies 16 bytes of a row ($2) to shared memory ($1), and of another ($3) to where the lanes of all warps
    leave off; zeros in place of them where $4 and $5 are 0 and not 16."""
    copy = "cp.async.cg.shared.global.L2::128B"
    return (
        f"{copy} [$1], [$2], 16, $4; {copy} [$1 + {512 * warps}], [$3], 16, $5; cp.async.commit_group; mov.b32 $0, 0;"
    )


@functools.cache
def words(warps: int, depth: int) -> tuple[str, str]:
    """PTX that reads what the oldest of `depth` copies brought: words of the row, and of the other."""
    read = "ld.shared.v4.b32 {$0, $1, $2, $3}"
    return f"cp.async.wait_group {depth - 1}; {read}, [$4];", f"{read}, [$4 + {512 * warps}];"


@gluon.jit
def leave(at, top, bottom):
    """Leave a warp's sums of eight rows, where `at` says, and of the eight that follow there; all of one shape."""
    gl.inline_asm_elementwise(
        "st.shared.f32 [$1], $2; st.shared.f32 [$1 + 32], $3; mov.b32 $0, 0;",
        "=r,r,f,f",
        [at, top, bottom],
        dtype=gl.int32,
        is_pure=False,
        pack=1,
    )


@gluon.jit
def collect(sums, tile, row, of_all: gl.constexpr, W: gl.constexpr):
    """(T,) sums of all warps, of a row of a tile each; after a barrier."""
    at = (sums + tile * (64 * W) + row * 4)[:, None] + gl.arange(0, W, gl.SliceLayout(0, of_all))[None, :] * 64
    found = gl.inline_asm_elementwise("ld.shared.f32 $0, [$1];", "=f,r", [at], dtype=gl.float32, is_pure=False, pack=1)
    return gl.sum(found, 1)


# --- the kernel -----------------------------------------------------------------------------------


@gluon.jit
def _axes(layout: gl.constexpr, W: gl.constexpr, LAST: gl.constexpr):
    """Warp, row and lane of a row (W, 8, 4), and the last axis, of a tensor (W, 8, 4, LAST)."""
    of_three: gl.constexpr = gl.SliceLayout(3, layout)
    of_two: gl.constexpr = gl.SliceLayout(2, of_three)
    warp = gl.arange(0, W, gl.SliceLayout(1, of_two))[:, None][:, :, None]
    row = gl.arange(0, 8, gl.SliceLayout(0, of_two))[None, :][:, :, None]
    lane = gl.arange(0, 4, gl.SliceLayout(0, gl.SliceLayout(1, of_three)))[None, :][:, None, :]
    last = gl.arange(0, LAST, gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(2, layout))))[None, None, None, :]
    return warp, row, lane, last


@gluon.jit
def _ask(
    w,
    at,
    begin,
    N,
    lanes,
    chunk: gl.constexpr,
    K: gl.constexpr,
    W: gl.constexpr,
    COPIES: gl.constexpr,
    BIASED: gl.constexpr,
):
    """Ask for the words of a chunk, of eight rows and of the eight that lie `apart`, each of which exists if the row
    `past` further does; `at`: where in shared memory they go. lanes: apart, past, and what `_axes` says."""
    apart, past, warp, row, lane = lanes
    place = warp * 128 + lane * 32 + chunk * (W * 128)  # first column
    line = begin + row
    if BIASED:
        words = w + place // 128 * 128 + row * 16 + lane * 4
        above, below = words + begin.to(gl.int64) * (K // 8), words + (begin + apart).to(gl.int64) * (K // 8)
    else:
        above = w + line.to(gl.int64) * (K // 8) + place // 8
        below = w + (line + apart).to(gl.int64) * (K // 8) + place // 8
    known = place < K
    gl.inline_asm_elementwise(
        COPIES,
        "=r,r,l,l,r,r",
        [
            at,
            above.to(gl.int64),
            below.to(gl.int64),
            gl.where(known & (line < N), 16, 0),
            gl.where(known & (line + past < N), 16, 0),
        ],
        dtype=gl.int32,
        is_pure=False,
        pack=1,
    )


@gluon.jit
def _blocks(begin, N, lanes, last, c: gl.constexpr, K: gl.constexpr, W: gl.constexpr, TOTAL: gl.constexpr):
    """Where the scales are of the sums that each lane has of chunks c and following (W, 8, 4, 4), and whether they
    exist. TOTAL: tiles have a scale for 128 columns, all rows of a group in a row, else 0."""
    apart, past, warp, row, lane = lanes
    line = begin + row[:, :, :, None] + last // 2 * apart
    exists = begin + row[:, :, :, None] + last // 2 * past < N
    if TOTAL:
        block = (c + lane[:, :, :, None] * 2 + last % 2) * W + warp[:, :, :, None]
        exists &= block < K // 128
        at = block * TOTAL + line
    else:
        block = ((c + lane) * W + warp)[:, :, :, None] * 2 + last % 2
        exists &= block < K // 64
        at = line * (K // 64) + block
    return at, exists


@gluon.jit
def _stored(scales, begin, N, lanes, last, K: gl.constexpr, W: gl.constexpr, CHUNKS: gl.constexpr, TOTAL: gl.constexpr):
    """Those scales, of each set of chunks, as they are stored. Nothing here waits for what is loaded here."""
    stored = ()
    for c in gl.static_range(0, CHUNKS, 8 if TOTAL else 4):
        block, exists = _blocks(begin, N, lanes, last, c, K, W, TOTAL)
        stored += (gl.load(scales + block, mask=exists, other=0),)
    return stored


@gluon.jit
def _multiplied(top, bottom, table, vector, ASM: gl.constexpr):
    """What `assembly` says of words (W, 8, 4, 4) of a row and of the row 8 below it, and of the vector."""
    return gl.inline_asm_elementwise(
        ASM,
        "=&f,=&f,=&f,=&f,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r",
        [top, bottom, table, vector[0], vector[1], vector[2], vector[3]],
        dtype=gl.float32,
        is_pure=True,
        pack=4,
    )


@gluon.jit
def tokendyno_nibble_product(
    given,
    N,
    eps,
    K: gl.constexpr,
    DOUBLE: gl.constexpr,
    OFFSETS: gl.constexpr,
    FUSED: gl.constexpr,
    ASM: gl.constexpr,
    COPIES: gl.constexpr,
    WORDS: gl.constexpr,
    TURNS: gl.constexpr,
    CHUNKS: gl.constexpr,
    DEPTH: gl.constexpr,
    ROOM: gl.constexpr,
    TABLES: gl.constexpr,
    TOTAL: gl.constexpr,
    BIASED: gl.constexpr,
    num_warps: gl.constexpr,
):
    """As `products.tokendyno_block_product`, by programs that take one tile after another: 16 rows, or GATED 8 of gate
    and the 8 of up that belong to them.

    COPIES, WORDS   what `copies` and `words` say
    TURNS    as many tiles as a program takes or more, a power of two
    DOUBLE   scales are bytes; OFFSETS: 1 if each row has an offset, else 0
    CHUNKS   of 128 columns, that each warp has of a row; DEPTH: of those, copies that are under way
    ROOM     times 128 bytes of shared memory: tables, sums, copies, and 128 bytes which keep it this program's own
    """
    x, norm, w, absmax, code, codes, units, offset, bias, residual, out = given
    W: gl.constexpr = num_warps
    tile: gl.constexpr = gl.BlockedLayout([1, 1, 1, 4], [1, 8, 4, 1], [W, 1, 1, 1], [3, 2, 1, 0])
    wide: gl.constexpr = gl.BlockedLayout([1, 1, 1, 16], [1, 8, 4, 1], [W, 1, 1, 1], [3, 2, 1, 0])
    of_all: gl.constexpr = gl.BlockedLayout([1, W], [32, 1], [W, 1], [1, 0])
    kind: gl.constexpr = x.dtype.element_ty
    SET: gl.constexpr = 8 if BIASED else 4  # chunks that one operand of the tensor cores has of the vector
    SETS: gl.constexpr = (CHUNKS + SET - 1) // SET
    EACH: gl.constexpr = 8 if FUSED.GATED else 16
    STAGE: gl.constexpr = W * 1024
    if FUSED.EARLY:
        gdc_launch_dependents()
    warp, row, lane, last = _axes(tile, W, 4)
    first = gl.program_id(0)
    step = gl.num_programs(0)
    tiles = (gl.cdiv(N, EACH) - first + step - 1) // step
    room = gl.allocate_shared_memory(gl.int32, [ROOM, 32], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    once: gl.constexpr = gl.BlockedLayout([1], [32], [W], [0])
    room.index(ROOM - 1).store(gl.zeros([32], gl.int32, once))  # Triton gives it away if nothing is stored and loaded
    base = gl.inline_asm_elementwise("mov.u32 $0, global_smem;", "=r", [], dtype=gl.int32, is_pure=False, pack=1)
    sums_at = base + TABLES
    stages = sums_at + TURNS * (64 * W) + ((warp * 8 + row) * 4 + lane) * 16
    lanes = (N if FUSED.GATED else 8, 0 if FUSED.GATED else 8, warp, row, lane)
    for piece in gl.static_range(DEPTH):
        coming = (first + piece // CHUNKS * step) * EACH
        _ask(w, stages + piece * STAGE, coming, N, lanes, piece % CHUNKS, K, W, COPIES, BIASED)
    held = _stored(absmax, first * EACH, N, lanes, last, K, W, CHUNKS, TOTAL)
    tables = base
    if not BIASED:
        tables = lookup(base, code, codes, kind, W, DOUBLE)
    table = (tables + (row * 4 + lane) * 4 + 0 * warp)[:, :, :, None] + 0 * last
    each = gl.arange(0, TURNS * EACH, gl.SliceLayout(1, of_all))  # result: of each turn its rows
    rows = (first + each // EACH * step) * EACH + each % EACH
    inside = rows < N
    added = gl.zeros([TURNS * EACH], gl.float32, gl.SliceLayout(1, of_all))
    of_warp, of_row, of_lane, pair = _axes(wide, W, 16)
    of_warp, of_row, of_lane = of_warp[:, :, :, None], of_row[:, :, :, None], of_lane[:, :, :, None]
    if BIASED:  # of the first set of chunks, in pairs: each row has a chunk
        place = (of_row * W + of_warp) * 64 + pair * 4 + of_lane
        own = of_row >= 0
    else:  # each row has a block of a chunk, and zeros where the other is
        place = ((of_row // 2) * W + of_warp) * 64 + of_lane * 16 + pair
        own = of_row % 2 == of_lane // 2
    pairs = x.to(gl.pointer_type(gl.int32), bitcast=True)
    learned, plain, vector = (), (), ()
    if FUSED.NORM:
        norm_pairs = norm.to(gl.pointer_type(gl.int32), bitcast=True)
        for c in gl.static_range(SETS):
            here = place + c * (SET * W * 64)
            learned += (gl.load(norm_pairs + here, mask=own & (here < K // 2), other=0),)
    if FUSED.EARLY:
        gdc_wait()
    if FUSED.RESIDUAL:
        added = gl.load(residual + rows, mask=inside, other=0.0).to(gl.float32)
    for c in gl.static_range(SETS):  # all of it is asked for before the first is used
        here = place + c * (SET * W * 64)
        plain += (gl.load(pairs + here, mask=own & (here < K // 2), other=0),)
    shrink = 1.0
    if FUSED.NORM:
        power = gl.zeros([W, 8, 4, 16], gl.float32, wide)
        for c in gl.static_range(SETS):
            one, two = floats(plain[c], kind)
            power += one * one + two * two
        shrink = gl.rsqrt(gl.sum(gl.sum(gl.sum(gl.sum(power, 3), 2), 1), 0) / K + eps)
    for c in gl.static_range(SETS):
        here = plain[c]
        if FUSED.NORM:
            one, two = floats(here, kind)
            of_one, of_two = floats(learned[c], kind)
            here = paired(one * shrink * (of_one + FUSED.OFFSET), two * shrink * (of_two + FUSED.OFFSET), kind)
        vector += (_by_pair(here, W, tile),)
    lump = ()
    if BIASED:
        for c in gl.static_range(SETS):
            nothing = gl.zeros([W, 8, 4, 4], gl.int32, tile)
            lump += (_multiplied(nothing, nothing, table, vector[c], ASM),)
    for turn in range(tiles):
        begin = (first + turn * step) * EACH
        following = _stored(absmax, begin + step * EACH, N, lanes, last, K, W, CHUNKS, TOTAL)
        factors = ()
        if DOUBLE:
            for c in gl.static_range(0, CHUNKS, 4):
                block, exists = _blocks(begin, N, lanes, last, c, K, W, TOTAL)
                factors += (gl.load(units + block // 256, mask=exists, other=0.0),)
            if OFFSETS:
                line = begin + row[:, :, :, None] + last // 2 * lanes[0]
                plus = gl.load(offset + line, mask=line - last // 2 * (lanes[0] - lanes[1]) < N, other=0.0)
            else:
                plus = gl.load(offset)
        sums = gl.zeros([W, 8, 4, 4], gl.float32, tile)
        for c in gl.static_range(CHUNKS):
            if c % SET == 0:
                found = gl.zeros([W, 8, 4, 4], gl.float32, tile)
            at = stages + (turn * CHUNKS + c) % DEPTH * STAGE
            top = gl.inline_asm_elementwise(
                WORDS[0],
                "=r,=r,=r,=r,r,r,r,r",
                [at[:, :, :, None] + 0 * last],
                dtype=gl.int32,
                is_pure=False,
                pack=4,
            )
            bottom = gl.inline_asm_elementwise(
                WORDS[1],
                "=r,=r,=r,=r,r,r,r,r",
                [at[:, :, :, None] + 0 * last],
                dtype=gl.int32,
                is_pure=False,
                pack=4,
            )
            coming = begin + (c + DEPTH) // CHUNKS * step * EACH
            _ask(w, at, coming, N, lanes, (c + DEPTH) % CHUNKS, K, W, COPIES, BIASED)
            made = _multiplied(top, bottom, table, vector[c // SET], ASM)
            scale = held[c // SET]
            if BIASED:
                mine = (lane[:, :, :, None] == c % SET // 2) & (last % 2 == c % 2)
                found = gl.where(mine, made, found)
                if c % SET == SET - 1 or c == CHUNKS - 1:
                    unit, zero = floats(scale, gl.bfloat16)
                    whole = lump[c // SET]
                    sums += (found - whole * (1 + 8 / BIASED)) * unit + whole * zero * (1 / BIASED)
            else:
                found = gl.where(lane[:, :, :, None] == c % SET, made, found)
                if c % SET == SET - 1 or c == CHUNKS - 1:
                    if DOUBLE:
                        number = gl.inline_asm_elementwise(
                            "ld.shared.f32 $0, [$1];",
                            "=f,r",
                            [tables + (32768 + scale.to(gl.int32) * 4)],
                            dtype=gl.float32,
                            is_pure=True,
                            pack=1,
                        )
                        scale = number * factors[c // SET] + plus
                    sums += found * (scale / FACTOR)
        held = following
        above = gl.sum(gl.sum(gl.where(last < 2, sums, 0.0), 3), 2)
        below = gl.sum(gl.sum(gl.where(last < 2, 0.0, sums), 3), 2)
        of_rows: gl.constexpr = gl.SliceLayout(2, gl.SliceLayout(3, tile))
        left = gl.arange(0, W, gl.SliceLayout(1, of_rows))[:, None] * 64
        left += gl.arange(0, 8, gl.SliceLayout(0, of_rows))[None, :] * 4
        leave(sums_at + turn * (64 * W) + left, above, below)
    kept = room.index(ROOM - 1).load(once)
    done: gl.constexpr = "cp.async.wait_all; mov.b32 $0, $1;"
    gl.inline_asm_elementwise(done, "=r,r", [kept], dtype=gl.int32, is_pure=False, pack=1)
    barrier()
    tile_of = gl.minimum(each // EACH, tiles - 1)
    result = collect(sums_at, tile_of, each % EACH, of_all, W)
    if FUSED.BIAS:
        result += gl.load(bias + rows, mask=inside, other=0.0).to(gl.float32)
    other = result
    if FUSED.GATED:
        other = collect(sums_at, tile_of, each % EACH + 8, of_all, W)
        if FUSED.BIAS:
            other += gl.load(bias + N + rows, mask=inside, other=0.0).to(gl.float32)
    result = activated(result, other, FUSED)
    gl.store(out + rows, (result * FUSED.GAIN + added).to(out.dtype.element_ty), mask=inside)


@gluon.jit
def _by_pair(pairs, W: gl.constexpr, tile: gl.constexpr):
    """(W, 8, 4, 16) as four (W, 8, 4, 4): pair j of each word."""
    even, odd = gl.split(gl.reshape(pairs, [W, 8, 4, 4, 2, 2]))  # of the last axis: j % 2
    first, third = gl.split(even)
    second, fourth = gl.split(odd)
    return (
        gl.convert_layout(first, tile),
        gl.convert_layout(second, tile),
        gl.convert_layout(third, tile),
        gl.convert_layout(fourth, tile),
    )


# --- calls ----------------------------------------------------------------------------------------


def product(
    x: torch.Tensor, w: torch.Tensor, out: torch.Tensor, tuned: Settings | None = None, **fused: object
) -> None:
    """As `products.product`; w, scale: as of `matrix`. ValueError for a LayerNorm (`shift`), an activation without a
    gate (`acted`), or a vector in float32."""
    around = Fused(**fused)
    if around.shift is not None or around.acted:
        raise ValueError("4-bit weights have neither a LayerNorm before them nor an activation without a gate after")
    if around.scale is None or x.dtype not in ASSEMBLY:
        raise ValueError("bitsandbytes' 4-bit weights need their scales, and a vector in bfloat16 or float16")
    total, columns = w.shape[0], 2 * w.shape[1]
    rows = total // 2 if around.gated else total
    how = dict(tuned or settings.for_nibbles(rows, columns, around.gated))
    absmax, *tables = parts(around.scale, total * columns // BLOCK)
    offsets, double = int(tables[3].numel() > ALIGNED // 4), absmax.dtype == torch.uint8
    constants = {"ASM": ASSEMBLY[x.dtype], "DOUBLE": double, "OFFSETS": offsets, "TOTAL": 0, "BIASED": 0}
    _launch(x, (w.view(torch.int32), absmax, *tables), out, rows, columns, around, how, TABLES_BYTES, constants)


def tiled_product(
    x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, out: torch.Tensor, columns: int, around: Fused, how: Settings
) -> None:
    """Of w int32 and scale int32 (K / 128, all rows) in `tiles`; `how`: as of `settings.for_nibbles`."""
    total = scale.shape[1]
    kind = x.dtype
    constants = {"ASM": TILED_ASSEMBLY[kind], "DOUBLE": False, "OFFSETS": 0, "TOTAL": total, "BIASED": BIASED[kind]}
    rows = total // 2 if around.gated else total
    _launch(x, (w, *[scale] * 5), out, rows, columns, around, dict(how), 0, constants)


def _launch(
    x: torch.Tensor,
    matrix: tuple[torch.Tensor, ...],
    out: torch.Tensor,
    rows: int,
    columns: int,
    around: Fused,
    how: Settings,
    tables_bytes: int,
    constants: dict[str, object],
) -> None:
    warps, tiles = how["num_warps"], triton.cdiv(rows, 8 if around.gated else 16)
    most = torch.cuda.get_device_properties(x.device).shared_memory_per_block_optin - tables_bytes - MARGIN_BYTES
    while how["DEPTH"] > 1 and most < (how["DEPTH"] * 1024 + 64) * warps:
        how["DEPTH"] //= 2
    most_turns = (most // warps - how["DEPTH"] * 1024) // 64  # whose sums a program has room for
    programs = min(max(how.pop("CTAS"), triton.cdiv(tiles, 1 << most_turns.bit_length() - 1)), tiles)
    turns = triton.next_power_of_2(triton.cdiv(tiles, programs))
    space = tables_bytes + (how["DEPTH"] * 1024 + turns * 64) * warps
    tokendyno_nibble_product[(programs,)](
        (x, *around.tensors(x, "norm"), *matrix, *around.tensors(x, "bias", "residual"), out),
        rows,
        around.eps,
        K=columns,
        COPIES=copies(warps),
        WORDS=words(warps, how["DEPTH"]),
        TURNS=turns,
        ROOM=triton.cdiv(space, 128) + 1,
        TABLES=tables_bytes,
        CHUNKS=triton.cdiv(columns, 128 * warps),
        **constants,
        **around.constants(),
        **how,
    )
