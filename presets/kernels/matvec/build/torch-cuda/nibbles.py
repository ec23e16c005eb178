"""Matrix-vector products with bitsandbytes' 4-bit weights (nf4, fp4), which are read as they lie in memory.

Two weights a byte, the first in the upper half, row after row. Each stands for one of 16 numbers, times the scale of
its block of 64. Doubly quantized scales are bytes: one of 256 numbers, times the scale of 256 of them, plus an offset.

A byte of weights is looked up in a table of pairs of numbers in shared memory, in the vector's dtype: FACTOR times the
numbers of bitsandbytes, which rounds them less than bitsandbytes rounds its dequantized weights. Pairs go to tensor
cores as they are, a tile of 16 rows at a time, whose columns are dealt out to the warps; sums of a block are scaled in
float32.

A lane hands over 16 bytes of its row as they lie, so columns come in an order of their own, which the vector follows.
Lanes 0 and 1 of a row have one block, 2 and 3 the next: so of the 8 columns of the other operand, all of which are the
vector, the first 4 have zeros where the second block is, and the last 4 where the first is, and each lane finds the sum
of its own block in its first result.

Each warp leaves its sums of a tile in shared memory and goes on with the next, so that no warp waits for another before
the program's last tile.

A norm before the product is rounded to the dtype of the vector, as in a model's own code.
"""

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
STATIC_BYTES = 48 << 10  # of shared memory, with which a kernel is launched as it is
TABLES_BYTES = 33 << 10  # of shared memory: 32 KiB of pairs, and the numbers of scales
FACTOR = gl.constexpr(1.437)
"""Of nf4's numbers, times this, bfloat16 rounds away 0.06% (root mean square), of fp4's as much; of the numbers as they
are 0.11%, and of weights of any size 0.08%."""
_MARGIN_BYTES = 1 << 10  # of that, for what Triton itself needs to add up between warps


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


def assembly(kind: str) -> str:
    """PTX of two sums ($0, $1, before $44, $45) plus four words each of two rows ($4 to $7, $8 to $11), times 16 pairs
    of the vector ($24 to $39: pair j of word i is $(24 + 4 j + i)), times scales $12 and $16. $20: where this lane's
    copy of the table begins; $40: the bits of a pair that this lane hands over, all or none.

    Byte j of a word has columns 2 j and 2 j + 1. Operands a0 and a2 of an mma are pairs of a row, a1 and a3 of the one
    8 below it.
    """
    lines = [".reg .b32 i, a0, a1, a2, a3, b0, b1;", ".reg .f32 c0, c1, c2, c3;"]
    lines += [f"mov.f32 c{result}, 0f00000000;" for result in range(4)]
    for word in range(4):
        for half in (0, 1):
            for operand in range(4):
                row, byte = (4, 8)[operand % 2] + word, 2 * half + operand // 2
                lines += [
                    f"prmt.b32 i, ${row}, 0, 0x444{byte};",
                    "mad.lo.u32 i, i, 128, $20;",
                    f"ld.shared.b32 a{operand}, [i];",
                ]
            lines += [f"and.b32 b{which}, ${24 + 8 * half + 4 * which + word}, $40;" for which in (0, 1)]
            lines.append(
                f"mma.sync.aligned.m16n8k16.row.col.f32.{kind}.{kind}.f32 {{c0, c1, c2, c3}}, {{a0, a1, a2, a3}}, "
                "{b0, b1}, {c0, c1, c2, c3};"
            )
    lines += ["fma.rn.f32 $0, c0, $12, $44;", "fma.rn.f32 $1, c2, $16, $45;", "mov.f32 $2, $46;", "mov.f32 $3, $47;"]
    return "\n".join(["{", *lines, "}"])


ASSEMBLY = {torch.bfloat16: assembly("bf16"), torch.float16: assembly("f16")}


@gluon.jit
def lookup(code, codes, kind: gl.constexpr, W: gl.constexpr, DOUBLE: gl.constexpr):
    """Where in shared memory the two numbers of each byte lie, in 32 copies: each lane has a bank of its own. With
    DOUBLE the numbers of a scale follow, once. The address passes through assembly after the barrier, so that no
    look-up can be moved before it."""
    base = gl.inline_asm_elementwise(
        "{ .shared .align 128 .b8 tokendyno_pairs[33792]; mov.u32 $0, tokendyno_pairs; }",
        "=r",
        [],
        dtype=gl.int32,
        is_pure=False,
        pack=1,
    )
    spread: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [W, 1], [1, 0])
    byte = gl.arange(0, 256, gl.SliceLayout(1, spread))[:, None]
    copy = gl.arange(0, 32, gl.SliceLayout(0, spread))[None, :]
    first, second = gl.load(code + byte // 16 + 0 * copy), gl.load(code + byte % 16 + 0 * copy)
    gl.inline_asm_elementwise(
        "st.shared.b32 [$1], $2; mov.b32 $0, 0;",
        "=r,r,r",
        [base + byte * 128 + copy * 4, paired(first * FACTOR, second * FACTOR, kind)],
        dtype=gl.int32,
        is_pure=False,
        pack=1,
    )
    if DOUBLE:
        each = gl.arange(0, 256, gl.BlockedLayout([1], [32], [W], [0]))
        gl.inline_asm_elementwise(
            "st.shared.f32 [$1 + 32768], $2; mov.b32 $0, 0;",
            "=r,r,f",
            [base + each * 4, gl.load(codes + each)],
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


def room(size: int) -> str:
    """PTX that sets aside bytes of shared memory, for 16 sums of each warp, tile and part, and gives their address.

    It is of the kernel's own, and not Triton's, which would have all warps wait for each other at each tile.
    """
    return f"{{ .shared .align 16 .b8 tokendyno_sums[{size}]; mov.u32 $0, tokendyno_sums; }}"


@gluon.jit
def both(sums):
    """The sums of both blocks of a row, of which lanes 0 and 1 have one, 2 and 3 the other."""
    return gl.inline_asm_elementwise(
        "{ .reg .f32 t; shfl.sync.bfly.b32 t, $1, 2, 31, -1; add.f32 $0, $1, t; }",
        "=f,f",
        [sums],
        dtype=gl.float32,
        is_pure=False,
        pack=1,
    )


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
def collect(sums, tile, row, of_all: gl.constexpr, W: gl.constexpr, PARTS: gl.constexpr):
    """(T,) sums of all warps and parts, of a row of a tile each, without FACTOR; after a barrier."""
    result = 0.0
    for part in gl.static_range(PARTS):
        at = sums + (tile * PARTS + part) * (64 * W) + row * 4
        at = at[:, None] + gl.arange(0, W, gl.SliceLayout(0, of_all))[None, :] * 64
        found = gl.inline_asm_elementwise(
            "ld.shared.f32 $0, [$1];", "=f,r", [at], dtype=gl.float32, is_pure=False, pack=1
        )
        result += gl.sum(found, 1)
    return result / FACTOR


# --- the kernel -----------------------------------------------------------------------------------


@gluon.jit
def _rows(
    w,
    scales,
    begin,
    N,
    lanes,
    place,
    K: gl.constexpr,
    W: gl.constexpr,
    CHUNKS: gl.constexpr,
    DOUBLE: gl.constexpr,
    OFFSETS: gl.constexpr,
):
    """Of eight rows and of the eight that lie `apart`, each of which exists if the row `past` further does: words
    (W, 8, 4, 4) of each chunk in turn; scales (W, 8, 4) of those as they are stored; with DOUBLE a factor for each, and
    offsets (W, 8, 4) of both rows. Nothing here waits for what is loaded here.

    lanes   apart, past, and the row and the word of each lane
    """
    words, stored, factors, offsets = (), (), (), ()
    absmax, units, offset = scales
    apart, past, row, word = lanes
    for half in gl.static_range(2):
        line = begin + half * apart + row
        inside = begin + half * past + row < N
        at = w + line.to(gl.int64) * (K // 8) + place // 8
        for c in gl.static_range(CHUNKS):
            known = inside & (place + c * (W * 128) < K)
            there = (at + c * (W * 16))[:, :, :, None] + word
            words += (gl.load(there, mask=known[:, :, :, None], other=0, eviction_policy="evict_first"),)
        for c in gl.static_range(CHUNKS):
            known = inside & (place + c * (W * 128) < K)
            block = line * (K // 64) + place // 64 + c * (W * 2)
            stored += (gl.load(absmax + block, mask=known, other=0),)
            if DOUBLE:
                factors += (gl.load(units + block // 256, mask=known, other=0.0),)
        if DOUBLE:
            offsets += (gl.load(offset + (line + 0 * place) * OFFSETS, mask=inside & (place < K), other=0.0),)
    return words, stored, factors, offsets


@gluon.jit
def _scales(stored, factors, offsets, tables, CHUNKS: gl.constexpr, DOUBLE: gl.constexpr):
    """float32 (W, 8, 4, 1) of the blocks whose scales `_rows` gives, decoded with DOUBLE."""
    scales = ()
    for i in gl.static_range(2 * CHUNKS):
        scale = stored[i]
        if DOUBLE:
            number = gl.inline_asm_elementwise(
                "ld.shared.f32 $0, [$1 + 32768];",
                "=f,r",
                [tables + scale.to(gl.int32) * 4],
                dtype=gl.float32,
                is_pure=True,
                pack=1,
            )
            scale = number * factors[i] + offsets[i // CHUNKS]
        scales += (scale[:, :, :, None],)
    return scales


@gluon.jit
def _chunk(
    held,
    c,
    K: gl.constexpr,
    W: gl.constexpr,
    SHARED: gl.constexpr,
    wide: gl.constexpr,
    tile: gl.constexpr,
):
    """Of each thread's columns of a chunk four (W, 1, 4, 4): pair j of each word. held: shared memory, or a pointer."""
    of_pairs: gl.constexpr = gl.SliceLayout(1, wide)
    if SHARED:
        found = held.index(c).load(of_pairs)
    else:
        warp = gl.arange(0, W, gl.SliceLayout(1, gl.SliceLayout(2, of_pairs)))[:, None][:, :, None]
        lane = gl.arange(0, 4, gl.SliceLayout(0, gl.SliceLayout(2, of_pairs)))[None, :][:, :, None]
        pair = gl.arange(0, 16, gl.SliceLayout(0, gl.SliceLayout(1, of_pairs)))[None, None, :]
        begin = (c * W + warp) * 64 + lane * 16
        found = gl.load(held + begin + pair, mask=begin + 0 * pair < K // 2, other=0)
    even, odd = gl.split(gl.reshape(found, [W, 1, 4, 4, 2, 2]))  # of the last axis: j % 2
    first, third = gl.split(even)
    second, fourth = gl.split(odd)
    return (
        gl.convert_layout(first, tile),
        gl.convert_layout(second, tile),
        gl.convert_layout(third, tile),
        gl.convert_layout(fourth, tile),
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
    SUMS: gl.constexpr,
    TURNS: gl.constexpr,
    PARTS: gl.constexpr,
    CHUNKS: gl.constexpr,
    ROOM: gl.constexpr,
    KEPT: gl.constexpr,
    AHEAD: gl.constexpr,
    num_warps: gl.constexpr,
):
    """As `products.tokendyno_block_product`, by programs that take one tile after another: 16 rows, or GATED 8 of gate
    and the 8 of up that belong to them.

    TURNS    at least as many tiles as a program takes, a power of two; SUMS: room for their sums
    DOUBLE   scales are bytes; OFFSETS: 1 if each row has an offset, else 0
    PARTS    of the columns of a tile, which a program takes one after another
    CHUNKS   of 128 columns, that each warp has of a part; ROOM: of shared memory for a normalized vector
    KEPT     the vector stays in registers (PARTS is 1), else it is read anew for each tile
    AHEAD    the next tile is asked for before one is multiplied, else after it
    """
    x, norm, w, absmax, code, codes, units, offset, bias, residual, out = given
    W: gl.constexpr = num_warps
    tile: gl.constexpr = gl.BlockedLayout([1, 1, 1, 4], [1, 8, 4, 1], [W, 1, 1, 1], [3, 2, 1, 0])
    wide: gl.constexpr = gl.BlockedLayout([1, 1, 1, 16], [1, 8, 4, 1], [W, 1, 1, 1], [3, 2, 1, 0])
    flat: gl.constexpr = gl.BlockedLayout([2], [32], [W], [0])
    of_all: gl.constexpr = gl.BlockedLayout([1, W], [32, 1], [W, 1], [1, 0])
    of_lanes: gl.constexpr = gl.SliceLayout(3, tile)
    kind: gl.constexpr = x.dtype.element_ty
    if FUSED.EARLY:
        gdc_launch_dependents()
    warp = gl.arange(0, W, gl.SliceLayout(1, gl.SliceLayout(2, of_lanes)))[:, None][:, :, None]
    row = gl.arange(0, 8, gl.SliceLayout(0, gl.SliceLayout(2, of_lanes)))[None, :][:, :, None]
    lane = gl.arange(0, 4, gl.SliceLayout(0, gl.SliceLayout(1, of_lanes)))[None, :][:, None, :]
    word = gl.arange(0, 4, gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(2, tile))))[None, None, None, :]
    place = warp * 128 + lane * 32  # first column
    own = gl.where((row < 4) == (lane < 2), -1, 0)[:, :, :, None]
    EACH: gl.constexpr = 8 if FUSED.GATED else 16
    first = gl.program_id(0)
    step = gl.num_programs(0)
    tiles = (gl.cdiv(N, EACH) - first + step - 1) // step
    apart = N if FUSED.GATED else 8
    past = 0 if FUSED.GATED else 8
    scales, lanes = (absmax, units, offset), (apart, past, row, word)
    held_rows = _rows(w, scales, first * EACH, N, lanes, place, K, W, CHUNKS, DOUBLE, OFFSETS)
    tables = lookup(code, codes, kind, W, DOUBLE)
    table = tables + ((row * 4 + lane + 0 * warp) * 4)[:, :, :, None]
    sums_at = gl.inline_asm_elementwise(SUMS, "=r", [], dtype=gl.int32, is_pure=False, pack=1)
    left = sums_at + warp * 64 + row * 4 + 0 * lane
    each = gl.arange(0, TURNS * EACH, gl.SliceLayout(1, of_all))  # result: of each turn its rows
    rows = (first + each // EACH * step) * EACH + each % EACH
    inside = rows < N
    added = gl.zeros([TURNS * EACH], gl.float32, gl.SliceLayout(1, of_all))
    pair = gl.arange(0, W * 64, flat)
    held = x.to(gl.pointer_type(gl.int32), bitcast=True)
    shrink = 1.0
    if FUSED.NORM:
        learned, plain = (), ()
        norm_pairs = norm.to(gl.pointer_type(gl.int32), bitcast=True)
        for c in gl.static_range(PARTS * CHUNKS):
            here = pair + c * (W * 64)
            learned += (gl.load(norm_pairs + here, mask=here < K // 2, other=0),)
    if FUSED.EARLY:
        gdc_wait()
    if FUSED.RESIDUAL:
        added = gl.load(residual + rows, mask=inside, other=0.0).to(gl.float32)
    if FUSED.NORM:
        for c in gl.static_range(PARTS * CHUNKS):  # all of it is asked for before the first is used
            here = pair + c * (W * 64)
            plain += (gl.load(held + here, mask=here < K // 2, other=0),)
        power = gl.zeros([W * 64], gl.float32, flat)
        for c in gl.static_range(PARTS * CHUNKS):
            one, two = floats(plain[c], kind)
            power += one * one + two * two
        shrink = gl.rsqrt(gl.sum(power, 0) / K + eps)
        held = gl.allocate_shared_memory(gl.int32, [ROOM, W, 4, 16], gl.SwizzledSharedLayout(1, 1, 1, [2, 1, 0]))
        for c in gl.static_range(PARTS * CHUNKS):
            one, two = floats(plain[c], kind)
            of_one, of_two = floats(learned[c], kind)
            pairs = paired(one * shrink * (of_one + FUSED.OFFSET), two * shrink * (of_two + FUSED.OFFSET), kind)
            held.index(c).store(gl.reshape(pairs, [W, 4, 16]))
    kept = ()
    if KEPT:
        for c in gl.static_range(CHUNKS):
            kept += (_chunk(held, c, K, W, FUSED.NORM, wide, tile),)
    zero = gl.zeros([W, 8, 4, 4], gl.float32, tile)
    for turn in range(tiles * PARTS):
        base = turn % PARTS * CHUNKS
        coming = (first + (turn + 1) // PARTS * step) * EACH
        further = place + (turn + 1) % PARTS * (CHUNKS * W * 128)
        if AHEAD:
            next_rows = _rows(w, scales, coming, N, lanes, further, K, W, CHUNKS, DOUBLE, OFFSETS)
        words, stored, factors, offsets = held_rows
        decoded = _scales(stored, factors, offsets, tables, CHUNKS, DOUBLE)
        sums = zero  # of the last axis: a row, the row 8 below it, nothing, nothing
        for c in gl.static_range(CHUNKS):
            vector = kept[c] if KEPT else _chunk(held, base + c, K, W, FUSED.NORM, wide, tile)
            sums = gl.inline_asm_elementwise(
                ASM,
                "=&f,=&f,=&f,=&f,r,r,r,r,r,r,r,r,f,f,f,f,f,f,f,f,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,f,f,f,f",
                [
                    words[c],
                    words[CHUNKS + c],
                    decoded[c],
                    decoded[CHUNKS + c],
                    table,
                    vector[0],
                    vector[1],
                    vector[2],
                    vector[3],
                    own,
                    sums,
                ],
                dtype=gl.float32,
                is_pure=True,
                pack=4,
            )
        above = gl.sum(gl.where(word == 0, sums, 0.0), 3)
        below = gl.sum(gl.where(word == 1, sums, 0.0), 3)
        leave(left + turn * (64 * W), both(above), both(below))
        if not AHEAD:
            next_rows = _rows(w, scales, coming, N, lanes, further, K, W, CHUNKS, DOUBLE, OFFSETS)
        held_rows = next_rows
    barrier()
    tile_of = gl.minimum(each // EACH, tiles - 1)
    result = collect(sums_at, tile_of, each % EACH, of_all, W, PARTS)
    if FUSED.BIAS:
        result += gl.load(bias + rows, mask=inside, other=0.0).to(gl.float32)
    other = result
    if FUSED.GATED:
        other = collect(sums_at, tile_of, each % EACH + 8, of_all, W, PARTS)
        if FUSED.BIAS:
            other += gl.load(bias + N + rows, mask=inside, other=0.0).to(gl.float32)
    result = activated(result, other, FUSED)
    gl.store(out + rows, (result * FUSED.GAIN + added).to(out.dtype.element_ty), mask=inside)


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
    warps, tiles = how["num_warps"], triton.cdiv(rows, 8 if around.gated else 16)
    cut = how.setdefault("PARTS", 1)
    most = (STATIC_BYTES - TABLES_BYTES) // (64 * warps * cut)  # tiles whose sums a program has room for
    programs = min(max(how.pop("CTAS"), triton.cdiv(tiles, most)), tiles)
    turns = triton.cdiv(tiles, programs)
    sums_bytes = 64 * warps * cut * turns
    chunks = triton.cdiv(columns, 128 * warps * cut)
    space = chunks * cut
    vector_bytes = 0 if around.norm is None else space * warps * 256
    if vector_bytes and vector_bytes + sums_bytes + TABLES_BYTES > STATIC_BYTES - _MARGIN_BYTES:
        # past what a kernel is launched with as it is, Triton asks for more only if this part alone is past it
        space = triton.cdiv(STATIC_BYTES + 1, warps * 256)
    vector = x, *around.tensors(x, "norm")
    tokendyno_nibble_product[(programs,)](
        (*vector, w.view(torch.int32), absmax, *tables, *around.tensors(x, "bias", "residual"), out),
        rows,
        around.eps,
        K=columns,
        DOUBLE=absmax.dtype == torch.uint8,
        OFFSETS=int(tables[3].numel() > ALIGNED // 4),
        ASM=ASSEMBLY[x.dtype],
        SUMS=room(sums_bytes),
        TURNS=triton.next_power_of_2(turns),
        CHUNKS=chunks,
        ROOM=space,
        **around.constants(),
        **how,
    )
