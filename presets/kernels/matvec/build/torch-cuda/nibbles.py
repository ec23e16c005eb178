"""Matrix-vector products with bitsandbytes' 4-bit weights (nf4, fp4), which are read as they lie in memory.

Two weights a byte, the first in the upper half, row after row. Each stands for one of 16 numbers, which is multiplied
with the scale of its block of 64 in float32 and rounded to the vector's dtype: to exactly what bitsandbytes'
`dequantize_4bit` gives. Doubly quantized scales are bytes: one of 256 numbers, times the scale of 256 of them, plus an
offset.

A byte is looked up in a table of pairs of numbers in shared memory. What is rounded goes to tensor cores, a tile of 16
rows at a time, whose columns are dealt out to the warps. A lane hands over 16 bytes of its row as they lie, so columns
come in an order of their own, which the vector follows; all columns of the other operand are the vector.

A norm before the product is rounded to the dtype of the vector, as in a model's own code.
"""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from .parts import can_be_early, gate
from .products import MOST_COLUMNS

BLOCK, BLOCKS, CODE = 64, 256, 16  # weights with one scale, scales with one, numbers of 4 bits
ALIGNED = 16  # bytes, where each tensor begins
STATIC_BYTES = 48 << 10  # of shared memory, with which a kernel is launched as it is


def _assembly(kind: str) -> str:
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


ASSEMBLY = {torch.bfloat16: _assembly("bf16"), torch.float16: _assembly("f16")}


@gluon.jit
def _table(code, W: gl.constexpr):
    """Where in shared memory the two numbers of each byte lie, in 16 copies: lanes of half a warp, which are served at
    once, have banks of their own. The address passes through assembly after the barrier, so that no look-up can be
    moved before it."""
    base = gl.inline_asm_elementwise(
        "{ .shared .align 128 .b8 tokendyno_pairs[32768]; mov.u32 $0, tokendyno_pairs; }", "=r", [], dtype=gl.int32,
        is_pure=False, pack=1,
    )  # fmt: skip
    spread: gl.constexpr = gl.BlockedLayout([1, 1], [2, 16], [W, 1], [1, 0])
    byte = gl.arange(0, 256, gl.SliceLayout(1, spread))[:, None]
    copy = gl.arange(0, 16, gl.SliceLayout(0, spread))[None, :]
    first, second = gl.load(code + byte // 16 + 0 * copy), gl.load(code + byte % 16 + 0 * copy)
    gl.inline_asm_elementwise(
        "st.shared.v2.f32 [$1], {$2, $3}; mov.b32 $0, 0;", "=r,r,f,f", [base + byte * 128 + copy * 8, first, second],
        dtype=gl.int32, is_pure=False, pack=1,
    )  # fmt: skip
    gl.thread_barrier()
    return gl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [base], dtype=gl.int32, is_pure=False, pack=1)


@gluon.jit
def _scale(absmax, codes, units, offset, line, block, known, DOUBLE: gl.constexpr, OFFSETS: gl.constexpr):
    """float32 of a block; with DOUBLE decoded, rounded twice as bitsandbytes does: never as one fma."""
    found = gl.load(absmax + block, mask=known, other=0)
    if DOUBLE:
        number = gl.load(codes + found.to(gl.int32), mask=known, other=0.0)
        unit = gl.load(units + block // 256, mask=known, other=0.0)
        plus = gl.load(offset + (line + 0 * block) * OFFSETS, mask=known, other=0.0)
        found = gl.inline_asm_elementwise(
            "{ .reg .f32 t; mul.rn.f32 t, $1, $2; add.rn.f32 $0, t, $3; }", "=f,f,f,f", [number, unit, plus],
            dtype=gl.float32, is_pure=True, pack=1,
        )  # fmt: skip
    return found


@gluon.jit
def _rows(
    w, scales, begin, apart, past, N, row, place, word, K: gl.constexpr, W: gl.constexpr, CHUNKS: gl.constexpr,
    DOUBLE: gl.constexpr, OFFSETS: gl.constexpr,
):  # fmt: skip
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
        of_top += (_scale(*scales, line, near, inside & known, DOUBLE, OFFSETS)[:, :, :, None],)
        near += apart * (K // 64)
        of_bottom += (_scale(*scales, line + apart, near, beside & known, DOUBLE, OFFSETS)[:, :, :, None],)
    return top, bottom, of_top, of_bottom


@gluon.jit
def _floats(pair, kind: gl.constexpr):
    """Both halves of each word as float32."""
    if kind == gl.bfloat16:
        one, two = (pair << 16).to(gl.float32, bitcast=True), (pair & -65536).to(gl.float32, bitcast=True)
    else:
        one = pair.to(gl.int16).to(kind, bitcast=True).to(gl.float32)
        two = (pair >> 16).to(gl.int16).to(kind, bitcast=True).to(gl.float32)
    return one, two


@gluon.jit
def _paired(one, two, kind: gl.constexpr):
    """The reverse, rounded."""
    low = one.to(kind).to(gl.int16, bitcast=True).to(gl.int32) & 0xFFFF
    return low | (two.to(kind).to(gl.int16, bitcast=True).to(gl.int32) << 16)


@gluon.jit
def _chunk(
    held, c: gl.constexpr, K: gl.constexpr, W: gl.constexpr, SHARED: gl.constexpr, wide: gl.constexpr,
    tile: gl.constexpr,
):  # fmt: skip
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
        gl.convert_layout(first, tile), gl.convert_layout(second, tile), gl.convert_layout(third, tile),
        gl.convert_layout(fourth, tile),
    )  # fmt: skip


@gluon.jit
def tokendyno_nibble_product(
    x, norm, w, absmax, code, codes, units, offset, bias, residual, out, N, eps, K: gl.constexpr, DOUBLE: gl.constexpr,
    OFFSETS: gl.constexpr, NORM: gl.constexpr, OFFSET: gl.constexpr, BIAS: gl.constexpr, RESIDUAL: gl.constexpr,
    GATED: gl.constexpr, GELU: gl.constexpr, ASM: gl.constexpr, CHUNKS: gl.constexpr, ROOM: gl.constexpr,
    KEPT: gl.constexpr, AHEAD: gl.constexpr, EARLY: gl.constexpr, num_warps: gl.constexpr,
):  # fmt: skip
    """As `products.tokendyno_block_product`, by programs that take one tile after another: 16 rows, or GATED 8 of gate
    and the 8 of up that belong to them.

    DOUBLE   scales are bytes; OFFSETS: 1 if each row has an offset, else 0
    CHUNKS   of 128 columns, that each warp has; ROOM: of shared memory for a normalized vector, at least as many
    KEPT     the vector stays in registers, else it is read anew for each tile
    AHEAD    the next tile is asked for before one is multiplied, else after it
    """
    W: gl.constexpr = num_warps
    tile: gl.constexpr = gl.BlockedLayout([1, 1, 1, 4], [1, 8, 4, 1], [W, 1, 1, 1], [3, 2, 1, 0])
    wide: gl.constexpr = gl.BlockedLayout([1, 1, 1, 16], [1, 8, 4, 1], [W, 1, 1, 1], [3, 2, 1, 0])
    flat: gl.constexpr = gl.BlockedLayout([2], [32], [W], [0])
    of_lanes: gl.constexpr = gl.SliceLayout(3, tile)
    kind: gl.constexpr = x.dtype.element_ty
    if EARLY:
        gdc_launch_dependents()
    warp = gl.arange(0, W, gl.SliceLayout(1, gl.SliceLayout(2, of_lanes)))[:, None][:, :, None]
    row = gl.arange(0, 8, gl.SliceLayout(0, gl.SliceLayout(2, of_lanes)))[None, :][:, :, None]
    lane = gl.arange(0, 4, gl.SliceLayout(0, gl.SliceLayout(1, of_lanes)))[None, :][:, None, :]
    word = gl.arange(0, 4, gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(2, tile))))[None, None, None, :]
    place = warp * 128 + lane * 32  # first column
    EACH: gl.constexpr = 8 if GATED else 16
    apart = N if GATED else 8
    past = 0 if GATED else 8
    scales = (absmax, codes, units, offset)
    top, bottom, of_top, of_bottom = _rows(
        w, scales, gl.program_id(0) * EACH, apart, past, N, row, place, word, K, W, CHUNKS, DOUBLE, OFFSETS
    )
    table = _table(code, W) + ((row * 4 + lane + 0 * warp) % 16 * 8)[:, :, :, None]
    pair = gl.arange(0, W * 64, flat)
    held = x.to(gl.pointer_type(gl.int32), bitcast=True)
    shrink = 1.0
    if NORM:
        learned, plain = (), ()
        norm_pairs = norm.to(gl.pointer_type(gl.int32), bitcast=True)
        for c in gl.static_range(CHUNKS):
            here = pair + c * (W * 64)
            learned += (gl.load(norm_pairs + here, mask=here < K // 2, other=0),)
    if EARLY:
        gdc_wait()
    if NORM:
        for c in gl.static_range(CHUNKS):  # all of it is asked for before the first is used
            here = pair + c * (W * 64)
            plain += (gl.load(held + here, mask=here < K // 2, other=0),)
        power = gl.zeros([W * 64], gl.float32, flat)
        for c in gl.static_range(CHUNKS):
            one, two = _floats(plain[c], kind)
            power += one * one + two * two
        shrink = gl.rsqrt(gl.sum(power, 0) / K + eps)
        held = gl.allocate_shared_memory(gl.int32, [ROOM, W, 4, 16], gl.SwizzledSharedLayout(1, 1, 1, [2, 1, 0]))
        for c in gl.static_range(CHUNKS):
            one, two = _floats(plain[c], kind)
            of_one, of_two = _floats(learned[c], kind)
            pairs = _paired(one * shrink * (of_one + OFFSET), two * shrink * (of_two + OFFSET), kind)
            held.index(c).store(gl.reshape(pairs, [W, 4, 16]))
    kept = ()
    if KEPT:
        for c in gl.static_range(CHUNKS):
            kept += (_chunk(held, c, K, W, NORM, wide, tile),)
    zero = gl.zeros([W, 8, 4, 4], gl.float32, tile)
    for turn in range(gl.program_id(0), gl.cdiv(N, EACH), gl.num_programs(0)):
        begin = turn * EACH
        coming = begin + gl.num_programs(0) * EACH
        if AHEAD:
            next_top, next_bottom, next_of_top, next_of_bottom = _rows(
                w, scales, coming, apart, past, N, row, place, word, K, W, CHUNKS, DOUBLE, OFFSETS
            )
        sums = (zero, zero, zero, zero)
        for c in gl.static_range(CHUNKS):
            if KEPT:  # noqa: SIM108
                vector = kept[c]
            else:
                vector = _chunk(held, c, K, W, NORM, wide, tile)
            sums = gl.inline_asm_elementwise(
                ASM, "=f,=f,=f,=f,r,r,f,f,r,r,r,r,r,f,f,f,f",
                [top[c], bottom[c], of_top[c], of_bottom[c], table, vector[0], vector[1], vector[2], vector[3],
                 sums[0], sums[1], sums[2], sums[3]],
                dtype=(gl.float32, gl.float32, gl.float32, gl.float32), is_pure=True, pack=1,
            )  # fmt: skip
        result = gl.sum(gl.max(gl.sum(sums[0], 3), 2), 0)  # four lanes have the same: two columns of a row each
        other = gl.sum(gl.max(gl.sum(sums[2], 3), 2), 0)
        rows = begin + gl.arange(0, 8, result.type.layout)
        inside, beside = rows < N, rows + past < N
        if BIAS:
            result += gl.load(bias + rows, mask=inside, other=0.0).to(gl.float32)
            other += gl.load(bias + rows + apart, mask=beside, other=0.0).to(gl.float32)
        if GATED:
            result = gate(result, other, GELU)
        if RESIDUAL:
            result += gl.load(residual + rows, mask=inside, other=0.0).to(gl.float32)
        gl.store(out + rows, result.to(out.dtype.element_ty), mask=inside)
        if not GATED:
            if RESIDUAL:
                other += gl.load(residual + rows + 8, mask=beside, other=0.0).to(gl.float32)
            gl.store(out + rows + 8, other.to(out.dtype.element_ty), mask=beside)
        if AHEAD:
            top, bottom, of_top, of_bottom = next_top, next_bottom, next_of_top, next_of_bottom
        else:
            top, bottom, of_top, of_bottom = _rows(
                w, scales, coming, apart, past, N, row, place, word, K, W, CHUNKS, DOUBLE, OFFSETS
            )


def config(rows: int, columns: int, gated: bool) -> dict[str, int | bool]:
    """Warps, programs and launch settings: not yet swept. By products alone, in the shapes of Llama 3 8B on an H200, of
    a kernel that looked numbers up in other lanes."""
    warps = 16 if columns > 4096 else 8 if columns > 1024 else 4
    if not can_be_early() or warps != 8:  # with more columns a thread has no registers for both the vector and rows
        return {"num_warps": warps, "CTAS": 132 if warps == 16 else 264, "KEPT": False, "AHEAD": False}
    if gated or rows > columns:
        return {"num_warps": 8, "CTAS": 132, "KEPT": True, "AHEAD": True}
    return {"num_warps": 8, "CTAS": 264, "KEPT": False, "AHEAD": True, "maxnreg": 128}


def matrix(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
    """(rows, columns / 2) uint8, and what `parts` takes apart, float32 or uint8; None for a `Params4bit` that no kernel
    reads: in other blocks, in float32, or whose scales do not lie together (backend/worker/patch/four_bits.py)."""
    state = weight.quant_state
    if torch.compiler.is_compiling() or state is None or weight.dtype != torch.uint8:
        return None
    if torch.cuda.get_device_capability() < (8, 0):  # whose tensor cores have no such product
        return None
    if state.blocksize != BLOCK or state.dtype not in ASSEMBLY or (state.nested and state.state2.blocksize != BLOCKS):
        return None
    rows, columns = state.shape
    if columns % BLOCK or columns > MOST_COLUMNS:
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


def product(
    x: torch.Tensor, w: torch.Tensor, out: torch.Tensor, norm: torch.Tensor | None = None, eps: float = 0.0,
    scale: torch.Tensor | None = None, bias: torch.Tensor | None = None, residual: torch.Tensor | None = None,
    gated: bool = False, early: bool | None = None, tuned: dict[str, int] | None = None, offset: float = 0.0,
    gelu: bool = False, shift: torch.Tensor | None = None, acted: bool = False,
) -> None:  # fmt: skip
    """Write into `out`, flat. `x`: as many elements as `w` has columns; w, scale: as of `matrix`; gated: gate above up.
    ValueError for a LayerNorm (`shift`), an activation without a gate (`acted`), or a vector in float32."""
    if shift is not None or acted:
        raise ValueError("4-bit weights have neither a LayerNorm before them nor an activation without a gate after")
    if scale is None or x.dtype not in ASSEMBLY:
        raise ValueError("bitsandbytes' 4-bit weights need their scales, and a vector in bfloat16 or float16")
    total, columns = w.shape[0], 2 * w.shape[1]
    rows = total // 2 if gated else total
    early = can_be_early() if early is None else early
    how = dict(tuned or config(rows, columns, gated))
    absmax, *tables = parts(scale, total * columns // BLOCK)
    chunks = triton.cdiv(columns, 128 * how["num_warps"])
    room = (
        chunks  # past what a kernel is launched with as it is, Triton asks for more only if this part alone is past it
    )
    if norm is not None and chunks * how["num_warps"] * 256 > STATIC_BYTES // 4:
        room = triton.cdiv(STATIC_BYTES + 1, how["num_warps"] * 256)
    tokendyno_nibble_product[(min(how.pop("CTAS"), triton.cdiv(rows, 8 if gated else 16)),)](
        x, norm if norm is not None else x, w.view(torch.int32), absmax, *tables, bias if bias is not None else x,
        residual if residual is not None else x, out, rows, eps, K=columns, DOUBLE=absmax.dtype == torch.uint8,
        OFFSETS=int(tables[3].numel() > ALIGNED // 4), NORM=norm is not None, OFFSET=offset, BIAS=bias is not None,
        RESIDUAL=residual is not None, GATED=gated, GELU=gelu, ASM=ASSEMBLY[x.dtype], CHUNKS=chunks, ROOM=room,
        EARLY=early, launch_pdl=early, **how,
    )  # fmt: skip
