"""Attention of one new token on tensor cores: each program goes through its slots of the cache in blocks.

Memory must always have enough requests, from before the query is ready. So the first blocks are copied into shared
memory (cp.async) before the wait for the predecessor, and each block that has been multiplied makes room for another.
Each warp attends to slots of its own in each block, and warps meet once, to add up. Written in Gluon, Triton's lower
level, since Triton itself copies ahead in loops only, and has its loops behind the wait.
"""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy, mma_v2
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from .attention_parts import ask, attended, finish, part_of, rotated, slots_of
from .parts import capability

BLOCK, STAGES, WARPS = 64, 4, 4  # slots of a block of heads of 128, blocks that a program has room for, and its warps
MOST_PROGRAMS = 128  # about one for each multiprocessor
REGISTERS = 160  # of a thread at most: more, and a program begins later, beside fewer of its predecessor's


@gluon.jit
def tokendyno_attention_long(
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
    H: gl.constexpr,
    STAGES: gl.constexpr,
    num_warps: gl.constexpr,
):
    """As `attention.tokendyno_attention`, for fewer than 16 queries a KV head. If any slot behind `slot` is filled, the
    last one is.

    STAGES  blocks of BT slots that are under way or in use
    """
    G: gl.constexpr = H.G
    HKV: gl.constexpr = H.HKV
    D: gl.constexpr = H.D
    BT: gl.constexpr = H.BT
    SLOTS: gl.constexpr = BT // num_warps
    AHEAD: gl.constexpr = STAGES * BT
    kind: gl.constexpr = keys.dtype.element_ty
    mma: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [num_warps, 1, 1], [1, 16, 8])
    first: gl.constexpr = gl.DotOperandLayout(0, mma, 2)  # operand of a product
    second: gl.constexpr = gl.DotOperandLayout(1, mma, 2)
    tile: gl.constexpr = gl.BlockedLayout([1, 1, 8], [1, 256 // D, D // 8], [num_warps, 1, 1], [2, 1, 0])
    rows_apart: gl.constexpr = gl.BlockedLayout([1, 1, 8], [1, 256 // D, D // 8], [1, num_warps, 1], [2, 1, 0])
    flat: gl.constexpr = gl.SliceLayout(0, rows_apart)
    rooms: gl.constexpr = gl.SwizzledSharedLayout(8, 1, 8, [2, 1, 0])
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
    qkv += text * (G + 2) * HKV * D
    out += text * G * HKV * D
    cos += text * H.ANGLES
    sin += text * H.ANGLES
    filled += text * L
    if H.EARLY:
        gdc_launch_dependents()
    here, begin, end = part_of(slot, filled, L, split, H)
    key_rooms = gl.allocate_shared_memory(kind, [STAGES, num_warps, SLOTS, D], rooms)
    value_rooms = gl.allocate_shared_memory(kind, [STAGES, num_warps, SLOTS, D], rooms)
    lines = slots_of(begin, of_slots, SLOTS, num_warps)
    dims = gl.arange(0, D, gl.SliceLayout(0, gl.SliceLayout(1, tile)))
    for stage in gl.static_range(STAGES):
        ask(key_rooms, value_rooms, stage, keys, values, lines + stage * BT, begin + stage * BT, end, dims, D)
    places = slots_of(begin, of_scores, SLOTS, num_warps)
    seen = attended(filled, places, here, end)
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
    new_key = new_key.to(kind)
    gl.store(keys + here.to(gl.int64) * D + columns, new_key, mask=stored)
    gl.store(values + here.to(gl.int64) * D + columns, new_value.to(kind), mask=stored)
    score = gl.sum(turned * new_key.to(gl.float32)[None, :], 1) * scaling
    score = gl.convert_layout(gl.where(mine, score, float("-inf")), of_rows)
    room = gl.allocate_shared_memory(kind, [1, 16, D], rooms, gl.expand_dims(turned.to(kind), 0))
    query, _ = gl.broadcast(room.load(first), gl.zeros([num_warps, 16, D], kind, first))
    top = gl.full([num_warps, 16], float("-inf"), gl.float32, gl.SliceLayout(2, mma))
    total = gl.zeros([num_warps, 16], gl.float32, gl.SliceLayout(2, mma))
    mixed = gl.zeros([num_warps, 16, D], gl.float32, mma)
    stage = 0
    for t in range(begin, end, BT):
        async_copy.wait_group(STAGES - 1)
        key = key_rooms.index(stage).permute([0, 2, 1]).load(second)
        value = value_rooms.index(stage).load(second)
        following = attended(filled, places + (t - begin + BT), here, end)
        scores = mma_v2(query, key, gl.zeros([num_warps, 16, SLOTS], gl.float32, mma)) * scaling
        scores = gl.where(seen[:, None, :], scores, float("-inf"))
        best = gl.maximum(top, gl.max(scores, 2))
        safe = gl.where(best == float("-inf"), 0.0, best)
        shrink = gl.exp(top - safe)
        weights = gl.exp(scores - safe[:, :, None])
        total = total * shrink + gl.sum(weights, 2)
        weights = gl.convert_layout(weights.to(kind), first)
        mixed = mma_v2(weights, value, mixed * shrink[:, :, None])
        top = best
        ask(key_rooms, value_rooms, stage, keys, values, lines + (t - begin + AHEAD), t + AHEAD, end, dims, D)
        seen = following
        stage = gl.where(stage == STAGES - 1, 0, stage + 1)
    async_copy.wait_group(0)
    results = parts, tops, sums, out, turns
    finish(top, total, mixed, score, also, sinks, results, lane, head, split, met, H, num_warps)


KERNEL = tokendyno_attention_long


def fits(group: int, size: int, dtype: torch.dtype, whole: bool) -> bool:
    """Whether the kernel is for so many queries a KV head, this size and number format, and a norm over all heads, on a
    GPU that copies into shared memory in the background (from Ampere on)."""
    return group < 16 and 32 <= size <= 128 and not whole and dtype != torch.float32 and capability() >= (8, 0)
