"""Matrix-vector products with 4-bit weights in torchao's `tile_packed_to_4d` layout, made for tensor cores.

A tile is 8 rows. For each group of 128 columns, a row has 64 bytes there: 4 quarters of 4 words of 8 elements. Bits
4 * p of word i of quarter j hold column 32 * i + 8 * (p % 4) + 2 * j + p // 4 of the group (PyTorch's int4mm.cu,
matrix_to_m16n8k16_Bint4_layout). Each row has a bfloat16 scale and zero per group: (value - 8) * scale + zero.

Each thread handles one quarter of one group in all rows of its program, so its part of the vector stays in registers.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from . import core_tiles, settings
from .parts import Fused, activated, per_row
from .products import _late
from .settings import Settings

GROUP = 128  # columns with one scale and zero
TILE = 8  # rows


def sizes(qdata: torch.Tensor) -> tuple[int, int]:
    """(rows, columns) of a packed matrix (N / 8, K / 128, 32, 4)."""
    return qdata.shape[0] * TILE, qdata.shape[1] * GROUP


def whole(weight: torch.Tensor) -> bool:
    """Whether an Int4TilePackedTo4dTensor has this layout without padding, judged by the sizes of its parts."""
    rows, columns = weight.shape
    return (
        rows % TILE == columns % GROUP == 0
        and weight.act_pre_scale is None
        and list(weight.block_size) == [1, GROUP]
        and tuple(weight.qdata.shape) == (rows // TILE, columns // GROUP, 32, 4)
        and tuple(weight.scale_and_zero.shape) == (columns // GROUP, rows, 2)
        and weight.scale_and_zero.dtype == torch.bfloat16
        and weight.qdata.is_contiguous()
        and weight.scale_and_zero.is_contiguous()
    )


@triton.jit
def _dot8(words, high, low, high_odd, low_odd):
    """int32 of the eight 4-bit numbers of each word times eight 16-bit integers, given as 256 * high + low, in bytes.

    The first four of the vector belong to bits 0, 8, 16 and 24, the others to bits 4, 12, 20 and 28.
    """
    return tl.inline_asm_elementwise(
        """{
        .reg .b32 even, odd, h, l;
        and.b32 even, $1, 0x0F0F0F0F;
        shr.u32 odd, $1, 4;
        and.b32 odd, odd, 0x0F0F0F0F;
        dp4a.u32.s32 h, even, $2, 0;
        dp4a.u32.u32 l, even, $3, 0;
        dp4a.u32.s32 h, odd, $4, h;
        dp4a.u32.u32 l, odd, $5, l;
        mad.lo.s32 $0, h, 256, l;
        }""",
        "=r,r,r,r,r,r",
        [words, high, low, high_odd, low_odd],
        dtype=tl.int32,
        is_pure=True,
        pack=1,
    )


@triton.jit
def _packed(first, second, third, fourth):
    """Bits 8 to 15 of four words as the bytes of one word, bits 0 to 7 as those of another; the first word lowest."""
    return tl.inline_asm_elementwise(
        """{
        .reg .b32 here, there;
        prmt.b32 here, $2, $3, 0x5410;
        prmt.b32 there, $4, $5, 0x5410;
        prmt.b32 $0, here, there, 0x7531;
        prmt.b32 $1, here, there, 0x6420;
        }""",
        "=r,=r,r,r,r,r",
        [first, second, third, fourth],
        dtype=(tl.int32, tl.int32),
        is_pure=True,
        pack=1,
    )


@triton.jit
def _bytes(numbers):
    """(4, G, 4, 2, 2, 2) of 16 bits -> their high and low bytes, for even and for odd axis 3, (1, G, 4, 4), with groups
    before quarters as in the weights; and their sum, (G, 4)."""
    here, following = tl.split(numbers)
    here, here_later = tl.split(here)
    following, following_later = tl.split(following)
    high, low = _packed(here, here_later, following, following_later)
    high, odd_high = tl.split(high)
    low, odd_low = tl.split(low)
    total = tl.sum(_dot8(tl.full(high.shape, 0x11111111, tl.int32), high, low, odd_high, odd_low), 2)
    return _turned(high), _turned(low), _turned(odd_high), _turned(odd_low), tl.permute(total, (1, 0))


@triton.jit
def _turned(words):
    """(4, G, 4) -> (1, G, 4, 4)."""
    return tl.permute(words, (1, 0, 2))[None, :, :, :]


@triton.jit
def _pairs(scale, rows, group, total, N, K):
    """Scale (low half) and zero of each row and group, (BN, G, 1)."""
    at = scale + group.to(tl.int64)[None, :, None] * total + rows[None, None, :]
    valid = (group < K // 128)[None, :, None] & (rows < N)[None, None, :]
    return tl.permute(tl.load(at, mask=valid, other=0), (2, 1, 0))


@triton.jit
def _product(words, pairs, even_high, even_low, odd_high, odd_low, unit, lump):
    """(BN,) of words (BN, G * 16). unit: value of 1 in the vector's integers; lump: their sum; both (G, 4)."""
    words = tl.reshape(words, (words.shape[0], unit.shape[0], 4, 4))
    exact = tl.sum(_dot8(words, even_high, even_low, odd_high, odd_low), 3).to(tl.float32)
    scale = (pairs << 16).to(tl.float32, bitcast=True)
    zero = (pairs & -65536).to(tl.float32, bitcast=True)
    return tl.sum(tl.sum(exact * unit[None, :, :] * scale + (zero - 8 * scale) * lump[None, :, :], 2), 1)


@triton.jit
def tokendyno_tile_product(
    given, N, K, eps, FUSED: tl.constexpr, BN: tl.constexpr, G: tl.constexpr, STAGES: tl.constexpr
):
    """As `products.tokendyno_stream_product`, with BN rows per iteration.

    w      int32 (rows / 8, K / 128, 32, 4); scale: int32 (K / 128, rows), two bfloat16 each; G: K / 128 or more
    """
    x, norm, w, scale, bias, residual, out = given
    quarter, word, group = tl.arange(0, 4), tl.arange(0, 4), tl.arange(0, G)
    first = tl.program_id(0)
    total = N * 2 if FUSED.GATED else N
    place = tl.arange(0, G * 16)  # index of a word in its row
    unit = tl.zeros((G, 4), tl.float32)
    lump = tl.zeros((G, 4), tl.float32)
    even_high = tl.zeros((1, G, 4, 4), tl.int32)
    even_low = even_high
    odd_high = even_high
    odd_low = even_high
    shrink = 1.0
    ahead = tl.zeros((BN,), tl.float32)
    if FUSED.EARLY:
        gdc_launch_dependents()
    for turn in tl.range(first, tl.cdiv(N, BN), tl.num_programs(0), num_stages=STAGES):
        rows = turn * BN + tl.arange(0, BN)
        inside = rows < N
        begin = (rows // 8).to(tl.int64) * K + rows % 8 * 16
        at = w + begin[:, None] + (place // 16 * 128 + place % 16)[None, :]
        valid = (place // 16 < K // 128)[None, :] & inside[:, None]  # `place < K // 8` would hide 16-byte loads
        words = tl.load(at, mask=valid, other=0, eviction_policy="evict_first")
        pairs = _pairs(scale, rows, group, total, N, K)
        if FUSED.GATED:
            others = tl.load(at + tl.cast(N // 8, tl.int64) * K, mask=valid, other=0, eviction_policy="evict_first")
            other_pairs = _pairs(scale + N, rows, group, total, N, K)
        if FUSED.BIAS:
            constant, other_constant = per_row(bias, rows, inside, N, FUSED)
        added = ahead
        if turn == first:
            two = tl.arange(0, 2)  # axes: quarter, group, word, even or odd 4 bits, 16 columns later, next column
            odd, later, next_one = two[:, None, None], two[None, :, None], two[None, None, :]
            odd, later, next_one = odd[None, None, None], later[None, None, None], next_one[None, None, None]
            column = (group * 128)[None, :, None] + (quarter * 2)[:, None, None] + (word * 32)[None, None, :]
            column = column[:, :, :, None, None, None] + odd * 8 + later * 16 + next_one
            there = (group < K // 128)[None, :, None, None, None, None]
            if FUSED.NORM:
                learned = tl.load(norm + column, mask=there, other=0.0).to(tl.float32) + FUSED.OFFSET
            if FUSED.EARLY:
                gdc_wait()
            plain = tl.load(x + column, mask=there, other=0.0).to(tl.float32)
            if FUSED.NORM:
                squares = tl.sum(tl.sum(tl.sum(tl.sum(plain * plain, 5), 4), 3), 2)
                shrink = tl.rsqrt(tl.sum(tl.sum(squares, 0), 0) / K + eps)
                plain *= learned
            peak = tl.maximum(tl.max(tl.max(tl.max(tl.max(tl.abs(plain), 5), 4), 3), 2), 1e-30)
            near = plain * (32766 / peak)[:, :, None, None, None, None]
            near = (near + 12582912.0).to(tl.int32, bitcast=True)  # 1.5 * 2**23: rounded, in the low 16 bits
            even_high, even_low, odd_high, odd_low, lump_whole = _bytes(near)
            unit = tl.permute(peak / 32766, (1, 0))
            lump = lump_whole.to(tl.float32) * unit
            if FUSED.RESIDUAL:
                added = _late(residual + tl.where(inside, rows, 0))
        if FUSED.RESIDUAL:  # for the next iteration
            coming = rows + tl.num_programs(0) * BN
            ahead = _late(residual + tl.where(coming < N, coming, 0))
        result = _product(words, pairs, even_high, even_low, odd_high, odd_low, unit, lump) * shrink
        if FUSED.BIAS:
            result += constant
        if FUSED.GATED:
            other = _product(others, other_pairs, even_high, even_low, odd_high, odd_low, unit, lump) * shrink
            if FUSED.BIAS:
                other += other_constant
            result = activated(result, other, FUSED)
        tl.store(out + rows, (result * FUSED.GAIN + added).to(out.dtype.element_ty), mask=inside)


def product(
    x: torch.Tensor, w: torch.Tensor, out: torch.Tensor, tuned: Settings | None = None, **fused: object
) -> None:
    """As `products.product`; scale: (K / 128, N, 2), scales and zeros. ValueError for a LayerNorm (`shift`) or an
    activation without a gate (`acted`)."""
    around = Fused(**fused)
    if around.shift is not None or around.acted:
        raise ValueError("4-bit weights have neither a LayerNorm before them nor an activation without a gate after")
    if around.scale is None:
        raise ValueError("4-bit weights need their scales and zeros")
    (total, columns), scale = sizes(w), around.scale
    rows = total // 2 if around.gated else total
    if rows % TILE or scale.shape != (columns // GROUP, total, 2):
        raise ValueError(f"{tuple(w.shape)} and {tuple(scale.shape)} are no matrix of whole tiles and groups")
    how = dict(tuned or settings.for_tiles(rows, columns, around.gated))
    given = (x, *around.tensors(x, "norm"), w, scale.view(torch.int32), *around.tensors(x, "bias", "residual"), out)
    if "CHUNKS" in how:
        core_tiles.launch(given, rows, columns, around, how)
        return
    programs, groups = min(how.pop("CTAS"), triton.cdiv(rows, how["BN"])), triton.next_power_of_2(columns // GROUP)
    tokendyno_tile_product[(programs,)](given, rows, columns, around.eps, G=groups, **around.constants(), **how)
