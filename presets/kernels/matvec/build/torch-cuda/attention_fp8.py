"""Attention of one new token to keys and values in 8 bits, float8_e4m3fn with a scale for each token and head.

As `attention_long`, with half of the bytes. Tensor cores before Blackwell multiply no such number with float16, so each
becomes one in registers, by an instruction for two. Bytes are copied and loaded in pairs, as 16-bit words, which
`ldmatrix` hands out as an operand wants them: of keys a pair are two dimensions of a token, so that the query is dealt
out likewise; of values they belong to different columns of the result, which are sorted at the end. Scales are
multiplied with scores and weights, of which there are far fewer.
"""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy, mma_v2
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from .attention_long import fits
from .attention_parts import ask, attended, finish, part_of, rotated, slots_of
from .parts import capability

LARGEST: gl.constexpr = gl.constexpr(448.0)  # number of float8_e4m3fn
LEAST: gl.constexpr = gl.constexpr(1e-12)  # that a vector is scaled by
MOST_PROGRAMS = 128
BLOCK, STAGES, WARPS, REGISTERS = 128, 3, 8, 255  # slots of a block of heads of 128, see `attention_long`


@gluon.jit
def _halves(pairs):
    """Words (.., j, ..) of four bytes a register -> float16 of the first two and of the last two."""
    return gl.inline_asm_elementwise(
        """{
        .reg .b16 x, y;
        mov.b32 {x, y}, $2;
        cvt.rn.f16x2.e4m3x2 $0, x;
        cvt.rn.f16x2.e4m3x2 $1, y;
        }""",
        "=r,=r,r",
        [pairs],
        dtype=(gl.float16, gl.float16),
        is_pure=True,
        pack=2,
    )


@gluon.jit
def _sides(pairs):
    """The same of the lower bytes of both words, and of the upper."""
    return gl.inline_asm_elementwise(
        """{
        .reg .b16 x, y;
        .reg .b32 both;
        prmt.b32 both, $2, 0, 0x3120;
        mov.b32 {x, y}, both;
        cvt.rn.f16x2.e4m3x2 $0, x;
        cvt.rn.f16x2.e4m3x2 $1, y;
        }""",
        "=&r,=r,r",
        [pairs],
        dtype=(gl.float16, gl.float16),
        is_pure=True,
        pack=2,
    )


@gluon.jit
def _scales(scales, places, end):
    return gl.load(scales + places, mask=places < end, other=0.0, cache_modifier=".cg")


@gluon.jit
def _unit(vector):
    """What a vector is divided by, so that its largest number is that of the format."""
    return gl.maximum(gl.max(gl.abs(vector), 0), LEAST) / LARGEST


@gluon.jit
def _rounded(vector):
    """Numbers up to 448 as float8_e4m3fn has them, in float32.

    Not by conversions of the language: a compiler (ptxas of CUDA 12.8) that joins them with those that are stored took
    half of the numbers from registers that were not yet written.
    """
    return gl.inline_asm_elementwise(
        """{
        .reg .b16 code, x, y;
        .reg .b32 both;
        .reg .f32 none;
        mov.b32 none, 0f00000000;
        cvt.rn.satfinite.e4m3x2.f32 code, none, $1;
        cvt.rn.f16x2.e4m3x2 both, code;
        mov.b32 {x, y}, both;
        cvt.f32.f16 $0, x;
        }""",
        "=f,f",
        [vector],
        dtype=gl.float32,
        is_pure=True,
        pack=1,
    )


@gluon.jit
def tokendyno_attention_rounded(
    qkv,
    cos,
    sin,
    q_norm,
    k_norm,
    sinks,
    keys,
    values,
    slot,
    filled,
    parts,
    tops,
    sums,
    out,
    turns,
    L,
    eps,
    scaling,
    key_scales,
    value_scales,
    H: gl.constexpr,
    STAGES: gl.constexpr,
    num_warps: gl.constexpr,
):
    """As `attention_long.tokendyno_attention_long`; keys and values: float8_e4m3fn.

    key_scales, value_scales  (HKV, L) float32, read and written
    """
    G: gl.constexpr = H.G
    HKV: gl.constexpr = H.HKV
    D: gl.constexpr = H.D
    BT: gl.constexpr = H.BT
    SLOTS: gl.constexpr = BT // num_warps
    AHEAD: gl.constexpr = STAGES * BT
    HALF: gl.constexpr = D // 2  # words of a vector
    kind: gl.constexpr = keys.dtype.element_ty
    mma: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [num_warps, 1, 1], [1, 16, 8])
    first: gl.constexpr = gl.DotOperandLayout(0, mma, 2)  # operand of a product
    second: gl.constexpr = gl.DotOperandLayout(1, mma, 2)
    tile: gl.constexpr = gl.BlockedLayout([1, 1, 8], [1, 256 // HALF, HALF // 8], [num_warps, 1, 1], [2, 1, 0])
    rows_apart: gl.constexpr = gl.BlockedLayout([1, 1, 8], [1, 256 // D, D // 8], [1, num_warps, 1], [2, 1, 0])
    flat: gl.constexpr = gl.SliceLayout(0, rows_apart)
    rooms: gl.constexpr = gl.SwizzledSharedLayout(8, 1, min(8, HALF // 8), [2, 1, 0])
    of_slots: gl.constexpr = gl.SliceLayout(2, tile)
    of_scores: gl.constexpr = gl.SliceLayout(1, mma)
    met: gl.constexpr = gl.BlockedLayout([num_warps, 1, D // 32], [1, 1, 32], [1, num_warps, 1], [2, 1, 0])
    whole: gl.constexpr = gl.SliceLayout(0, met)
    of_rows: gl.constexpr = gl.SliceLayout(1, whole)
    head, split, text = gl.program_id(0), gl.program_id(1), gl.program_id(2)
    lane = text * HKV + head
    base = lane.to(gl.int64) * L * D
    keys += base
    values += base
    key_scales += lane.to(gl.int64) * L
    value_scales += lane.to(gl.int64) * L
    key_words = keys.to(gl.pointer_type(gl.int16), bitcast=True)
    value_words = values.to(gl.pointer_type(gl.int16), bitcast=True)
    qkv += text * (G + 2) * HKV * D
    out += text * G * HKV * D
    cos += text * H.ANGLES
    sin += text * H.ANGLES
    filled += text * L
    if H.EARLY:
        gdc_launch_dependents()
    here, begin, end = part_of(slot, filled, L, split, H)
    key_rooms = gl.allocate_shared_memory(gl.int16, [STAGES, num_warps, SLOTS, HALF], rooms)
    value_rooms = gl.allocate_shared_memory(gl.int16, [STAGES, num_warps, SLOTS, HALF], rooms)
    lines = slots_of(begin, of_slots, SLOTS, num_warps)
    words = gl.arange(0, HALF, gl.SliceLayout(0, gl.SliceLayout(1, tile)))
    for stage in gl.static_range(STAGES):
        ask(
            key_rooms,
            value_rooms,
            stage,
            key_words,
            value_words,
            lines + stage * BT,
            begin + stage * BT,
            end,
            words,
            HALF,
        )
    places = slots_of(begin, of_scores, SLOTS, num_warps)
    seen = attended(filled, places, here, end)
    key_scale, value_scale = _scales(key_scales, places, end), _scales(value_scales, places, end)
    if H.EARLY:
        gdc_wait()
    columns = gl.arange(0, D, gl.SliceLayout(0, flat))
    ours = qkv + (HKV * G + HKV + head) * D
    new_value = gl.load(ours + columns).to(gl.float32)
    also = gl.load(ours + gl.arange(0, D, gl.SliceLayout(0, whole))).to(gl.float32)
    turned = rotated(qkv, cos, sin, q_norm, k_norm, head, eps, flat, H)
    is_key = (gl.arange(0, 16, gl.SliceLayout(1, flat)) == 15)[:, None]
    new_key = gl.sum(gl.where(is_key, turned, 0.0), 0)
    mine = (here >= begin) & (here < end)  # the new token is in this part
    stored = columns < gl.where(mine, D, 0)
    key_unit, value_unit = _unit(new_key), _unit(new_value)
    new_key = new_key / key_unit
    gl.store(keys + here.to(gl.int64) * D + columns, new_key.to(kind), mask=stored)
    gl.store(values + here.to(gl.int64) * D + columns, (new_value / value_unit).to(kind), mask=stored)
    if mine:
        gl.store(key_scales + here, key_unit)
        gl.store(value_scales + here, value_unit)
    also = _rounded(also / value_unit) * value_unit
    score = gl.sum(turned * _rounded(new_key)[None, :], 1) * (scaling * key_unit)
    score = gl.convert_layout(gl.where(mine, score, float("-inf")), of_rows)
    dealt = gl.permute(gl.reshape(turned.to(gl.float16), [16, D // 4, 2, 2]), (0, 1, 3, 2))
    dealt, dealt_too = gl.split(gl.reshape(dealt, [16, HALF, 2]))
    none = gl.zeros([num_warps, 16, HALF], gl.float16, first)
    room = gl.allocate_shared_memory(gl.float16, [1, 16, HALF], rooms, gl.reshape(dealt, [1, 16, HALF]))
    room_too = gl.allocate_shared_memory(gl.float16, [1, 16, HALF], rooms, gl.reshape(dealt_too, [1, 16, HALF]))
    query, _ = gl.broadcast(room.load(first), none)
    query_too, _ = gl.broadcast(room_too.load(first), none)
    top = gl.full([num_warps, 16], float("-inf"), gl.float32, gl.SliceLayout(2, mma))
    total = gl.zeros([num_warps, 16], gl.float32, gl.SliceLayout(2, mma))
    mixed = gl.zeros([num_warps, 16, HALF], gl.float32, mma)
    mixed_too = gl.zeros([num_warps, 16, HALF], gl.float32, mma)
    stage = 0
    for t in range(begin, end, BT):
        async_copy.wait_group(STAGES - 1)
        key, key_too = _halves(key_rooms.index(stage).permute([0, 2, 1]).load(second))
        value, value_too = _sides(value_rooms.index(stage).load(second))
        following = attended(filled, places + (t - begin + BT), here, end)
        next_key = _scales(key_scales, places + (t - begin + BT), end)
        next_value = _scales(value_scales, places + (t - begin + BT), end)
        scores = mma_v2(query, key, gl.zeros([num_warps, 16, SLOTS], gl.float32, mma))
        scores = mma_v2(query_too, key_too, scores) * (key_scale * scaling)[:, None, :]
        scores = gl.where(seen[:, None, :], scores, float("-inf"))
        best = gl.maximum(top, gl.max(scores, 2))
        safe = gl.where(best == float("-inf"), 0.0, best)
        shrink = gl.exp(top - safe)
        weights = gl.exp(scores - safe[:, :, None])
        total = total * shrink + gl.sum(weights, 2)
        weights *= (value_scale * LARGEST)[:, None, :]  # as large as values, so that float16 has all digits
        weights = gl.convert_layout(weights.to(gl.float16), first)
        mixed = mma_v2(weights, value, mixed * shrink[:, :, None])
        mixed_too = mma_v2(weights, value_too, mixed_too * shrink[:, :, None])
        top = best
        ask(
            key_rooms,
            value_rooms,
            stage,
            key_words,
            value_words,
            lines + (t - begin + AHEAD),
            t + AHEAD,
            end,
            words,
            HALF,
        )
        seen, key_scale, value_scale = following, next_key, next_value
        stage = gl.where(stage == STAGES - 1, 0, stage + 1)
    async_copy.wait_group(0)
    mixed = gl.reshape(gl.join(mixed, mixed_too), [num_warps, 16, D])
    results = parts, tops, sums, out, turns
    finish(top, total, mixed, score, also, sinks, results, lane, head, split, met, H, num_warps, LARGEST)


KERNEL = tokendyno_attention_rounded


def reads(attention: object, norm: torch.Tensor | None, dtype: torch.dtype) -> bool:
    """Whether the kernel is for this attention, whose queries have such a norm: from Ada Lovelace on."""
    group, size = getattr(attention, "num_key_value_groups", 1), attention.head_dim
    return fits(group, size, dtype, norm is not None and norm.numel() != size) and capability() >= (8, 9)
