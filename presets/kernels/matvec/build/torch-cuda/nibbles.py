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

from .nibble_blocks import ALIGNED, BLOCK, matrix, parts
from .nibble_parts import ASSEMBLY, collect, floats, leave, lookup, paired, room, scale_of
from .parts import can_be_early, gate

__all__ = ["matrix", "parts", "product"]

STATIC_BYTES = 48 << 10  # of shared memory, with which a kernel is launched as it is
TABLE_BYTES = 32 << 10
_MARGIN_BYTES = 1 << 10  # of that, for what Triton itself needs to add up between warps


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
    NORM: gl.constexpr,
    OFFSET: gl.constexpr,
    BIAS: gl.constexpr,
    RESIDUAL: gl.constexpr,
    GAIN: gl.constexpr,
    GATED: gl.constexpr,
    GELU: gl.constexpr,
    ASM: gl.constexpr,
    SUMS: gl.constexpr,
    TURNS: gl.constexpr,
    CHUNKS: gl.constexpr,
    ROOM: gl.constexpr,
    KEPT: gl.constexpr,
    AHEAD: gl.constexpr,
    EARLY: gl.constexpr,
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
    if EARLY:
        gdc_launch_dependents()
    warp = gl.arange(0, W, gl.SliceLayout(1, gl.SliceLayout(2, of_lanes)))[:, None][:, :, None]
    row = gl.arange(0, 8, gl.SliceLayout(0, gl.SliceLayout(2, of_lanes)))[None, :][:, :, None]
    lane = gl.arange(0, 4, gl.SliceLayout(0, gl.SliceLayout(1, of_lanes)))[None, :][:, None, :]
    word = gl.arange(0, 4, gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(2, tile))))[None, None, None, :]
    place = warp * 128 + lane * 32  # first column
    EACH: gl.constexpr = 8 if GATED else 16
    first = gl.program_id(0)
    step = gl.num_programs(0)
    turns = (gl.cdiv(N, EACH) - first + step - 1) // step
    apart = N if GATED else 8
    past = 0 if GATED else 8
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
    if NORM:
        learned, plain = (), ()
        norm_pairs = norm.to(gl.pointer_type(gl.int32), bitcast=True)
        for c in gl.static_range(CHUNKS):
            here = pair + c * (W * 64)
            learned += (gl.load(norm_pairs + here, mask=here < K // 2, other=0),)
    if EARLY:
        gdc_wait()
    if RESIDUAL:
        added = gl.load(residual + rows, mask=inside, other=0.0).to(gl.float32)
    if NORM:
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
            pairs = paired(one * shrink * (of_one + OFFSET), two * shrink * (of_two + OFFSET), kind)
            held.index(c).store(gl.reshape(pairs, [W, 4, 16]))
    kept = ()
    if KEPT:
        for c in gl.static_range(CHUNKS):
            kept += (_chunk(held, c, K, W, NORM, wide, tile),)
    zero = gl.zeros([W, 8, 4, 4], gl.float32, tile)
    for turn in range(turns):
        coming = (first + (turn + 1) * step) * EACH
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
    gl.thread_barrier()
    result = collect(sums_at, each // EACH, each % EACH, of_all, W)
    if BIAS:
        result += gl.load(bias + rows, mask=inside, other=0.0).to(gl.float32)
    if GATED:
        other = collect(sums_at, each // EACH, each % EACH + 8, of_all, W)
        if BIAS:
            other += gl.load(bias + N + rows, mask=inside, other=0.0).to(gl.float32)
        result = gate(result, other, GELU)
    gl.store(out + rows, (result * GAIN + added).to(out.dtype.element_ty), mask=inside)


def config(rows: int, columns: int, gated: bool) -> dict[str, int | bool]:
    """Warps, programs and launch settings: the fastest of a search in the shapes of Llama 3 8B, within its step on an
    H200."""
    warps = 16 if columns > 4096 else 8 if columns > 1024 else 4
    if not can_be_early() or warps != 8:  # with more columns a thread has no registers for both the vector and rows
        return {"num_warps": warps, "CTAS": 132 if warps == 16 else 264, "KEPT": False, "AHEAD": False}
    if gated:
        return {"num_warps": 8, "CTAS": 264, "KEPT": True, "AHEAD": True, "maxnreg": 128}
    return {"num_warps": 8 if rows > columns else 16, "CTAS": 132, "KEPT": True, "AHEAD": True}


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
    offset: float = 0.0,
    gelu: bool = False,
    shift: torch.Tensor | None = None,
    acted: bool = False,
    gain: float = 1.0,
) -> None:
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
    warps, tiles = how["num_warps"], triton.cdiv(rows, 8 if gated else 16)
    most = (STATIC_BYTES - TABLE_BYTES) // (64 * warps)  # tiles whose sums a program has room for
    programs = min(max(how.pop("CTAS"), triton.cdiv(tiles, most)), tiles)
    turns = triton.next_power_of_2(triton.cdiv(tiles, programs))
    chunks = space = triton.cdiv(columns, 128 * warps)
    if norm is not None and chunks * warps * 256 + turns * warps * 64 + TABLE_BYTES > STATIC_BYTES - _MARGIN_BYTES:
        # past what a kernel is launched with as it is, Triton asks for more only if this part alone is past it
        space = triton.cdiv(STATIC_BYTES + 1, warps * 256)
    tokendyno_nibble_product[(programs,)](
        x,
        norm if norm is not None else x,
        w.view(torch.int32),
        absmax,
        *tables,
        bias if bias is not None else x,
        residual if residual is not None else x,
        out,
        rows,
        eps,
        K=columns,
        DOUBLE=absmax.dtype == torch.uint8,
        OFFSETS=int(tables[3].numel() > ALIGNED // 4),
        NORM=norm is not None,
        OFFSET=offset,
        BIAS=bias is not None,
        RESIDUAL=residual is not None,
        GAIN=gain,
        GATED=gated,
        GELU=gelu,
        ASM=ASSEMBLY[x.dtype],
        SUMS=room(turns, warps),
        TURNS=turns,
        CHUNKS=chunks,
        ROOM=space,
        EARLY=early,
        launch_pdl=early,
        **how,
    )
