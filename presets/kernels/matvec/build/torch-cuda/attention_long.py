"""Attention of one new token on tensor cores: each program goes through its slots of the cache in blocks.

Memory must always have enough requests, from before the query is ready. So the first blocks are copied into shared
memory (cp.async) before the wait for the predecessor, and each block that has been multiplied makes room for another.
Each warp attends to slots of its own in each block, and warps meet once, to add up. Written in Gluon, Triton's lower
level, since Triton itself copies ahead in loops only, and has its loops behind the wait.

Keys and values may be in 8 bits: half of the bytes, see `attention_fp8`.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy, mma_v2
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from .attention_fp8 import LARGEST, halves, rounded, scales_of, sides, unit
from .attention_parts import ask, attended, finish, part_of, rotated, slots_of

BLOCK, STAGES, WARPS = 64, 4, 4  # slots of a block of heads of 128, blocks that a program has room for, and its warps
MOST_PROGRAMS = 128  # about one for each multiprocessor
REGISTERS = 160  # of a thread at most: more, and a program begins later, beside fewer of its predecessor's


@gluon.jit
def _operands(turned, rooms: gl.constexpr, first: gl.constexpr, num_warps: gl.constexpr, D: gl.constexpr):
    """Queries (16, D) of float16 as two operands for each warp: what pairs of 8-bit keys are multiplied with."""
    dealt = gl.permute(gl.reshape(turned.to(gl.float16), [16, D // 4, 2, 2]), (0, 1, 3, 2))
    dealt, dealt_too = gl.split(gl.reshape(dealt, [16, D // 2, 2]))
    none = gl.zeros([num_warps, 16, D // 2], gl.float16, first)
    room = gl.allocate_shared_memory(gl.float16, [1, 16, D // 2], rooms, gl.reshape(dealt, [1, 16, D // 2]))
    room_too = gl.allocate_shared_memory(gl.float16, [1, 16, D // 2], rooms, gl.reshape(dealt_too, [1, 16, D // 2]))
    query, _ = gl.broadcast(room.load(first), none)
    query_too, _ = gl.broadcast(room_too.load(first), none)
    return query, query_too


@gluon.jit
def _new_token(turned, new_value, also, cache, begin, end, columns, scaling, flat: gl.constexpr, D: gl.constexpr):
    """Write the new key, which is the last row of `turned` (16, D), and value (D,) into their slot if this part has it.
    The scores (16,) of the new token, -inf in other parts; and its value, in another layout `also`, as it is kept."""
    keys, values, key_scales, value_scales, here = cache
    kind: gl.constexpr = keys.dtype.element_ty
    is_key = (gl.arange(0, 16, gl.SliceLayout(1, flat)) == 15)[:, None]
    new_key = gl.sum(gl.where(is_key, turned, 0.0), 0)
    mine = (here >= begin) & (here < end)  # the new token is in this part
    stored = columns < gl.where(mine, D, 0)
    if kind == gl.float8e4nv:
        key_unit, value_unit = unit(new_key), unit(new_value)
        new_key = new_key / key_unit
        gl.store(keys + here.to(gl.int64) * D + columns, new_key.to(kind), mask=stored)
        gl.store(values + here.to(gl.int64) * D + columns, (new_value / value_unit).to(kind), mask=stored)
        if mine:
            gl.store(key_scales + here, key_unit)
            gl.store(value_scales + here, value_unit)
        also = rounded(also / value_unit) * value_unit
        score = gl.sum(turned * rounded(new_key)[None, :], 1) * (scaling * key_unit)
    else:
        new_key = new_key.to(kind)
        gl.store(keys + here.to(gl.int64) * D + columns, new_key, mask=stored)
        gl.store(values + here.to(gl.int64) * D + columns, new_value.to(kind), mask=stored)
        score = gl.sum(turned * new_key.to(gl.float32)[None, :], 1) * scaling
    return gl.where(mine, score, float("-inf")), also


@gluon.jit
def tokendyno_attention_long(
    qkv,
    angles,
    norms,
    sinks,
    cache,
    results,
    L,
    eps,
    scaling,
    key_scales,
    value_scales,
    H: gl.constexpr,
    STAGES: gl.constexpr,
    num_warps: gl.constexpr,
):
    """As `attention.tokendyno_attention`, for fewer than 16 queries a KV head. If any slot behind `slot` is filled, the
    last one is.

    key_scales, value_scales  (HKV, L) float32, read and written, where keys and values are float8_e4m3fn, or None
    STAGES  blocks of BT slots that are under way or in use
    """
    cos, sin = angles
    q_norm, k_norm = norms
    keys, values, slot, filled = cache
    parts, tops, sums, out, turns = results
    G: gl.constexpr = H.G
    HKV: gl.constexpr = H.HKV
    D: gl.constexpr = H.D
    BT: gl.constexpr = H.BT
    SLOTS: gl.constexpr = BT // num_warps
    AHEAD: gl.constexpr = STAGES * BT
    kind: gl.constexpr = keys.dtype.element_ty
    ROUNDED: gl.constexpr = kind == gl.float8e4nv
    WIDTH: gl.constexpr = D // 2 if ROUNDED else D  # words of a vector
    word: gl.constexpr = gl.int16 if ROUNDED else kind
    mma: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [num_warps, 1, 1], [1, 16, 8])
    first: gl.constexpr = gl.DotOperandLayout(0, mma, 2)  # operand of a product
    second: gl.constexpr = gl.DotOperandLayout(1, mma, 2)
    tile: gl.constexpr = gl.BlockedLayout([1, 1, 8], [1, 256 // WIDTH, WIDTH // 8], [num_warps, 1, 1], [2, 1, 0])
    rows_apart: gl.constexpr = gl.BlockedLayout([1, 1, 8], [1, 256 // D, D // 8], [1, num_warps, 1], [2, 1, 0])
    flat: gl.constexpr = gl.SliceLayout(0, rows_apart)
    rooms: gl.constexpr = gl.SwizzledSharedLayout(8, 1, min(8, WIDTH // 8) if ROUNDED else 8, [2, 1, 0])
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
    key_words, value_words = keys, values
    if ROUNDED:
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
    key_rooms = gl.allocate_shared_memory(word, [STAGES, num_warps, SLOTS, WIDTH], rooms)
    value_rooms = gl.allocate_shared_memory(word, [STAGES, num_warps, SLOTS, WIDTH], rooms)
    both_words = key_words, value_words
    lines = slots_of(begin, of_slots, SLOTS, num_warps)
    words = gl.arange(0, WIDTH, gl.SliceLayout(0, gl.SliceLayout(1, tile)))
    for stage in gl.static_range(STAGES):
        ask(key_rooms, value_rooms, stage, both_words, lines + stage * BT, begin + stage * BT, end, words, WIDTH)
    places = slots_of(begin, of_scores, SLOTS, num_warps)
    seen = attended(filled, places, here, end)
    if ROUNDED:
        key_scale, value_scale = scales_of(key_scales, places, end), scales_of(value_scales, places, end)
    if H.EARLY:
        gdc_wait()
    columns = gl.arange(0, D, gl.SliceLayout(0, flat))
    ours = qkv + (HKV * G + HKV + head) * D
    new_value = gl.load(ours + columns).to(gl.float32)
    also = gl.load(ours + gl.arange(0, D, gl.SliceLayout(0, whole))).to(gl.float32)
    turned = rotated(qkv, cos, sin, q_norm, k_norm, head, eps, flat, H)
    cache = keys, values, key_scales, value_scales, here
    score, also = _new_token(turned, new_value, also, cache, begin, end, columns, scaling, flat, D)
    score = gl.convert_layout(score, of_rows)
    if ROUNDED:
        query, query_too = _operands(turned, rooms, first, num_warps, D)
    else:
        room = gl.allocate_shared_memory(kind, [1, 16, D], rooms, gl.expand_dims(turned.to(kind), 0))
        query, _ = gl.broadcast(room.load(first), gl.zeros([num_warps, 16, D], kind, first))
    top = gl.full([num_warps, 16], float("-inf"), gl.float32, gl.SliceLayout(2, mma))
    total = gl.zeros([num_warps, 16], gl.float32, gl.SliceLayout(2, mma))
    mixed = gl.zeros([num_warps, 16, WIDTH], gl.float32, mma)
    if ROUNDED:
        mixed_too = gl.zeros([num_warps, 16, WIDTH], gl.float32, mma)
    stage = 0
    for t in range(begin, end, BT):
        async_copy.wait_group(STAGES - 1)
        key = key_rooms.index(stage).permute([0, 2, 1]).load(second)
        if ROUNDED:
            key, key_too = halves(key)
        value = value_rooms.index(stage).load(second)
        if ROUNDED:
            value, value_too = sides(value)
        following = attended(filled, places + (t - begin + BT), here, end)
        if ROUNDED:
            next_key = scales_of(key_scales, places + (t - begin + BT), end)
            next_value = scales_of(value_scales, places + (t - begin + BT), end)
        scores = mma_v2(query, key, gl.zeros([num_warps, 16, SLOTS], gl.float32, mma))
        factor = scaling
        if ROUNDED:
            scores = mma_v2(query_too, key_too, scores)
            factor = (key_scale * scaling)[:, None, :]
        scores = scores * factor
        scores = gl.where(seen[:, None, :], scores, float("-inf"))
        best = gl.maximum(top, gl.max(scores, 2))
        safe = gl.where(best == float("-inf"), 0.0, best)
        shrink = gl.exp(top - safe)
        weights = gl.exp(scores - safe[:, :, None])
        total = total * shrink + gl.sum(weights, 2)
        if ROUNDED:
            weights *= (value_scale * LARGEST)[:, None, :]  # as large as values, so that float16 has all digits
        weights = gl.convert_layout(weights.to(gl.float16 if ROUNDED else kind), first)
        mixed = mma_v2(weights, value, mixed * shrink[:, :, None])
        if ROUNDED:
            mixed_too = mma_v2(weights, value_too, mixed_too * shrink[:, :, None])
        top = best
        ask(key_rooms, value_rooms, stage, both_words, lines + (t - begin + AHEAD), t + AHEAD, end, words, WIDTH)
        seen = following
        if ROUNDED:
            key_scale, value_scale = next_key, next_value
        stage = gl.where(stage == STAGES - 1, 0, stage + 1)
    async_copy.wait_group(0)
    if ROUNDED:
        mixed = gl.reshape(gl.join(mixed, mixed_too), [num_warps, 16, D])
    results = parts, tops, sums, out, turns
    larger: gl.constexpr = LARGEST if ROUNDED else 1
    found, new = (top, total, mixed), (score, also)
    finish(found, new, sinks, results, (lane, head, split), met, H, num_warps, larger)


KERNEL = tokendyno_attention_long
