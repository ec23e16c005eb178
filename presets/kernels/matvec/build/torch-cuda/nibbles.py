"""Matrix-vector products with bitsandbytes' 4-bit weights (nf4, fp4), which are read as they lie in memory.

Two weights a byte, the first in the upper half, row after row. Each stands for one of 16 numbers, which is multiplied
with the scale of its block of 64 in float32 and rounded to the vector's dtype: to exactly what bitsandbytes'
`dequantize_4bit` gives. Doubly quantized scales are bytes: one of 256 numbers, times the scale of 256 of them, plus an
offset.

A byte is looked up in a table of pairs of numbers in shared memory. What is rounded goes to tensor cores, a tile of 16
rows at a time, whose columns are dealt out to the warps. A lane hands over 16 bytes of its row as they lie, so columns
come in an order of their own, which the vector follows; all columns of the other operand are the vector.

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
TABLE_BYTES = 32 << 10
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
    """PTX of four sums ($0 to $3, before $13 to $16) plus a word each of two rows ($4, $5), with scales $6 and $7,
    times four pairs of the vector ($9 to $12). $8: where this lane's copy of the table begins.

    Byte j of a word has columns 2 j and 2 j + 1. Operands a0 and a2 of an mma are pairs of a row, a1 and a3 of the one
    8 below it.
    """
    lines = [".reg .b32 i, a0, a1, a2, a3;", ".reg .f32 p, q, s0, s1, s2, s3;"]
    for half in (0, 1):
        for operand in range(4):
            word, scale, byte = 4 + operand % 2, 6 + operand % 2, 2 * half + operand // 2
            lines += [
                f"prmt.b32 i, ${word}, 0, 0x444{byte};",
                "mad.lo.u32 i, i, 128, $8;",
                "ld.shared.v2.f32 {p, q}, [i];",
                f"mul.rn.f32 p, p, ${scale};",
                f"mul.rn.f32 q, q, ${scale};",
                f"cvt.rn.{kind}x2.f32 a{operand}, q, p;",
            ]
        old, new = (("$13, $14, $15, $16", "s0, s1, s2, s3"), ("s0, s1, s2, s3", "$0, $1, $2, $3"))[half]
        lines.append(
            f"mma.sync.aligned.m16n8k16.row.col.f32.{kind}.{kind}.f32 {{{new}}}, {{a0, a1, a2, a3}}, "
            f"{{${9 + 2 * half}, ${10 + 2 * half}}}, {{{old}}};"
        )
    return "\n".join(["{", *lines, "}"])


ASSEMBLY = {torch.bfloat16: assembly("bf16"), torch.float16: assembly("f16")}


@gluon.jit
def lookup(code, W: gl.constexpr):
    """Where in shared memory the two numbers of each byte lie, in 16 copies: lanes of half a warp, which are served at
    once, have banks of their own. The address passes through assembly after the barrier, so that no look-up can be
    moved before it."""
    base = gl.inline_asm_elementwise(
        "{ .shared .align 128 .b8 tokendyno_pairs[32768]; mov.u32 $0, tokendyno_pairs; }",
        "=r",
        [],
        dtype=gl.int32,
        is_pure=False,
        pack=1,
    )
    spread: gl.constexpr = gl.BlockedLayout([1, 1], [2, 16], [W, 1], [1, 0])
    byte = gl.arange(0, 256, gl.SliceLayout(1, spread))[:, None]
    copy = gl.arange(0, 16, gl.SliceLayout(0, spread))[None, :]
    first, second = gl.load(code + byte // 16 + 0 * copy), gl.load(code + byte % 16 + 0 * copy)
    gl.inline_asm_elementwise(
        "st.shared.v2.f32 [$1], {$2, $3}; mov.b32 $0, 0;",
        "=r,r,f,f",
        [base + byte * 128 + copy * 8, first, second],
        dtype=gl.int32,
        is_pure=False,
        pack=1,
    )
    barrier()
    return gl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [base], dtype=gl.int32, is_pure=False, pack=1)


@gluon.jit
def scale_of(absmax, codes, units, offset, line, block, known, DOUBLE: gl.constexpr, OFFSETS: gl.constexpr):
    """float32 of a block; with DOUBLE decoded, rounded twice as bitsandbytes does: never as one fma."""
    found = gl.load(absmax + block, mask=known, other=0)
    if DOUBLE:
        number = gl.load(codes + found.to(gl.int32), mask=known, other=0.0)
        unit = gl.load(units + block // 256, mask=known, other=0.0)
        plus = gl.load(offset + (line + 0 * block) * OFFSETS, mask=known, other=0.0)
        found = gl.inline_asm_elementwise(
            "{ .reg .f32 t; mul.rn.f32 t, $1, $2; add.rn.f32 $0, t, $3; }",
            "=f,f,f,f",
            [number, unit, plus],
            dtype=gl.float32,
            is_pure=True,
            pack=1,
        )
    return found


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


def room(turns: int, warps: int) -> str:
    """PTX that sets aside shared memory for the sums of so many tiles, 16 numbers of each warp, and gives its address.

    It is of the kernel's own, and not Triton's, which would have all warps wait for each other at each tile.
    """
    return f"{{ .shared .align 16 .b8 tokendyno_sums[{64 * turns * warps}]; mov.u32 $0, tokendyno_sums; }}"


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
def collect(sums, turn, row, of_all: gl.constexpr, W: gl.constexpr):
    """(T,) sums of all warps, of a row of a tile each; after a barrier."""
    at = (sums + turn * (64 * W) + row * 4)[:, None] + gl.arange(0, W, gl.SliceLayout(0, of_all))[None, :] * 64
    found = gl.inline_asm_elementwise("ld.shared.f32 $0, [$1];", "=f,r", [at], dtype=gl.float32, is_pure=False, pack=1)
    return gl.sum(found, 1)


# --- the kernel -----------------------------------------------------------------------------------


@gluon.jit
def _rows(
    w,
    scales,
    begin,
    apart,
    past,
    N,
    row,
    place,
    word,
    K: gl.constexpr,
    W: gl.constexpr,
    CHUNKS: gl.constexpr,
    DOUBLE: gl.constexpr,
    OFFSETS: gl.constexpr,
):
    """Words (W, 8, 4, 4) and scales (W, 8, 4, 1), for each chunk, of eight rows and of the eight that lie `apart`, each
    of which exists if the row `past` further does."""
    top, bottom, of_top, of_bottom = (), (), (), ()
    line = begin + row
    inside, beside = line < N, line + past < N
    at = w + line.to(gl.int64) * (K // 8) + place // 8
    below = at + gl.to_tensor(apart).to(gl.int64) * (K // 8)
    block = line * (K // 64) + place // 64
    for c in gl.static_range(CHUNKS):
        known = place + c * (W * 128) < K
        there = (at + c * (W * 16))[:, :, :, None] + word
        top += (gl.load(there, mask=(inside & known)[:, :, :, None], other=0, eviction_policy="evict_first"),)
        there = (below + c * (W * 16))[:, :, :, None] + word
        bottom += (gl.load(there, mask=(beside & known)[:, :, :, None], other=0, eviction_policy="evict_first"),)
        near = block + c * (W * 2)
        of_top += (scale_of(*scales, line, near, inside & known, DOUBLE, OFFSETS)[:, :, :, None],)
        near += apart * (K // 64)
        of_bottom += (scale_of(*scales, line + apart, near, beside & known, DOUBLE, OFFSETS)[:, :, :, None],)
    return top, bottom, of_top, of_bottom


@gluon.jit
def _chunk(
    held,
    c: gl.constexpr,
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
    x,
    norm,
    w,
    absmax,
    code,
    codes,
    units,
    offset,
    bias,
    residual,
    out,
    N,
    eps,
    K: gl.constexpr,
    DOUBLE: gl.constexpr,
    OFFSETS: gl.constexpr,
    FUSED: gl.constexpr,
    ASM: gl.constexpr,
    SUMS: gl.constexpr,
    TURNS: gl.constexpr,
    CHUNKS: gl.constexpr,
    ROOM: gl.constexpr,
    KEPT: gl.constexpr,
    AHEAD: gl.constexpr,
    num_warps: gl.constexpr,
):
    """As `products.tokendyno_block_product`, by programs that take one tile after another: 16 rows, or GATED 8 of gate
    and the 8 of up that belong to them.

    TURNS    tiles that a program has room for the sums of (SUMS); a power of two, at least as many as it takes
    DOUBLE   scales are bytes; OFFSETS: 1 if each row has an offset, else 0
    CHUNKS   of 128 columns, that each warp has; ROOM: of shared memory for a normalized vector, at least as many
    KEPT     the vector stays in registers, else it is read anew for each tile
    AHEAD    the next tile is asked for before one is multiplied, else after it
    """
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
    EACH: gl.constexpr = 8 if FUSED.GATED else 16
    first = gl.program_id(0)
    step = gl.num_programs(0)
    turns = (gl.cdiv(N, EACH) - first + step - 1) // step
    apart = N if FUSED.GATED else 8
    past = 0 if FUSED.GATED else 8
    scales = (absmax, codes, units, offset)
    top, bottom, of_top, of_bottom = _rows(
        w, scales, first * EACH, apart, past, N, row, place, word, K, W, CHUNKS, DOUBLE, OFFSETS
    )
    table = lookup(code, W) + ((row * 4 + lane + 0 * warp) % 16 * 8)[:, :, :, None]
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
        for c in gl.static_range(CHUNKS):
            here = pair + c * (W * 64)
            learned += (gl.load(norm_pairs + here, mask=here < K // 2, other=0),)
    if FUSED.EARLY:
        gdc_wait()
    if FUSED.RESIDUAL:
        added = gl.load(residual + rows, mask=inside, other=0.0).to(gl.float32)
    if FUSED.NORM:
        for c in gl.static_range(CHUNKS):  # all of it is asked for before the first is used
            here = pair + c * (W * 64)
            plain += (gl.load(held + here, mask=here < K // 2, other=0),)
        power = gl.zeros([W * 64], gl.float32, flat)
        for c in gl.static_range(CHUNKS):
            one, two = floats(plain[c], kind)
            power += one * one + two * two
        shrink = gl.rsqrt(gl.sum(power, 0) / K + eps)
        held = gl.allocate_shared_memory(gl.int32, [ROOM, W, 4, 16], gl.SwizzledSharedLayout(1, 1, 1, [2, 1, 0]))
        for c in gl.static_range(CHUNKS):
            one, two = floats(plain[c], kind)
            of_one, of_two = floats(learned[c], kind)
            pairs = paired(one * shrink * (of_one + FUSED.OFFSET), two * shrink * (of_two + FUSED.OFFSET), kind)
            held.index(c).store(gl.reshape(pairs, [W, 4, 16]))
    kept = ()
    if KEPT:
        for c in gl.static_range(CHUNKS):
            kept += (_chunk(held, c, K, W, FUSED.NORM, wide, tile),)
    zero = gl.zeros([W, 8, 4, 4], gl.float32, tile)
    for turn in range(turns):
        coming = (first + (turn + 1) * step) * EACH
        if AHEAD:
            next_top, next_bottom, next_of_top, next_of_bottom = _rows(
                w, scales, coming, apart, past, N, row, place, word, K, W, CHUNKS, DOUBLE, OFFSETS
            )
        sums = (zero, zero, zero, zero)
        for c in gl.static_range(CHUNKS):
            vector = kept[c] if KEPT else _chunk(held, c, K, W, FUSED.NORM, wide, tile)
            sums = gl.inline_asm_elementwise(
                ASM,
                "=f,=f,=f,=f,r,r,f,f,r,r,r,r,r,f,f,f,f",
                [
                    top[c],
                    bottom[c],
                    of_top[c],
                    of_bottom[c],
                    table,
                    vector[0],
                    vector[1],
                    vector[2],
                    vector[3],
                    sums[0],
                    sums[1],
                    sums[2],
                    sums[3],
                ],
                dtype=(gl.float32, gl.float32, gl.float32, gl.float32),
                is_pure=True,
                pack=1,
            )
        leave(left + turn * (64 * W), gl.sum(sums[0], 3), gl.sum(sums[2], 3))
        if AHEAD:
            top, bottom, of_top, of_bottom = next_top, next_bottom, next_of_top, next_of_bottom
        else:
            top, bottom, of_top, of_bottom = _rows(
                w, scales, coming, apart, past, N, row, place, word, K, W, CHUNKS, DOUBLE, OFFSETS
            )
    barrier()
    result = collect(sums_at, each // EACH, each % EACH, of_all, W)
    if FUSED.BIAS:
        result += gl.load(bias + rows, mask=inside, other=0.0).to(gl.float32)
    other = result
    if FUSED.GATED:
        other = collect(sums_at, each // EACH, each % EACH + 8, of_all, W)
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
    most = (STATIC_BYTES - TABLE_BYTES) // (64 * warps)  # tiles whose sums a program has room for
    programs = min(max(how.pop("CTAS"), triton.cdiv(tiles, most)), tiles)
    turns = triton.next_power_of_2(triton.cdiv(tiles, programs))
    chunks = space = triton.cdiv(columns, 128 * warps)
    vector_bytes = 0 if around.norm is None else chunks * warps * 256
    if vector_bytes and vector_bytes + turns * warps * 64 + TABLE_BYTES > STATIC_BYTES - _MARGIN_BYTES:
        # past what a kernel is launched with as it is, Triton asks for more only if this part alone is past it
        space = triton.cdiv(STATIC_BYTES + 1, warps * 256)
    flags = around.flags()
    tokendyno_nibble_product[(programs,)](
        x,
        *around.tensors(x, "norm"),
        w.view(torch.int32),
        absmax,
        *tables,
        *around.tensors(x, "bias", "residual"),
        out,
        rows,
        around.eps,
        K=columns,
        DOUBLE=absmax.dtype == torch.uint8,
        OFFSETS=int(tables[3].numel() > ALIGNED // 4),
        ASM=ASSEMBLY[x.dtype],
        SUMS=room(turns, warps),
        TURNS=turns,
        CHUNKS=chunks,
        ROOM=space,
        FUSED=flags,
        launch_pdl=flags.EARLY,
        **how,
    )
