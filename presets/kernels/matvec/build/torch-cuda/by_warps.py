"""Attention of one new token for few queries a KV head and a cache that the programs hold whole, as most are at first.

A tensor core multiplies 16 queries at least, and its operands pass through shared memory, at whose barriers all warps
wait for each other. Here each warp attends to slots of its own in registers, and warps meet once, to add up. Written in
Gluon, Triton's lower level, which lets a layout be stated.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from .parts import can_be_early

MOST_QUERIES = 3  # of a KV head: with four, tensor cores take as long
BLOCKS = {64: (64, 4), 128: (128, 8)}
"""Size of a head -> cache slots of a program and its warps, the best of sweeps on an H200 in whole decoder layers."""


def fits(group: int, size: int) -> bool:
    """Whether the kernel is for this number of queries a KV head, and for heads of this size."""
    return group <= MOST_QUERIES and size in BLOCKS and can_be_early()


@gluon.jit
def _learned(cos, sin, norm, dims, NORMED: gl.constexpr, OFFSET: gl.constexpr, D: gl.constexpr, ANGLES: gl.constexpr):
    """What each element of a vector, and the one half a vector away, is multiplied with by the rotation and a norm;
    without ANGLES by neither, and what is returned is not read."""
    along, beside = dims, dims
    if ANGLES > 0:
        across = (dims + D // 2) % D
        along = gl.load(cos + dims % ANGLES).to(gl.float32)
        beside = gl.load(sin + dims % ANGLES).to(gl.float32) * gl.where(dims < D // 2, -1.0, 1.0)
        if NORMED:
            along *= gl.load(norm + dims).to(gl.float32) + OFFSET
            beside *= gl.load(norm + across).to(gl.float32) + OFFSET
    return along, beside


@gluon.jit
def _turned(here, across, along, beside, eps, NORMED: gl.constexpr, D: gl.constexpr, ANGLES: gl.constexpr):
    """A vector, normalized if there is a norm, and rotated if by any ANGLES."""
    turned = here
    if ANGLES > 0:
        turned = here * along + across * beside
    if NORMED:
        turned *= gl.rsqrt(gl.sum(here * here, 0) / D + eps)
    return turned


@gluon.jit
def tokendyno_attention_by_warps(
    qkv, cos, sin, q_norm, k_norm, sinks, keys, values, slot, filled, parts, tops, sums, out, turns, L, eps,
    scaling, G: gl.constexpr, GP: gl.constexpr, HKV: gl.constexpr, D: gl.constexpr, ANGLES: gl.constexpr,
    BT: gl.constexpr, SPLITS: gl.constexpr, NORMED: gl.constexpr, OFFSET: gl.constexpr, SINKS: gl.constexpr,
    FOLDED: gl.constexpr, EARLY: gl.constexpr, num_warps: gl.constexpr,
):  # fmt: skip
    """As `attention.tokendyno_attention`; SPLITS * BT slots are at least all of them."""
    tile: gl.constexpr = gl.BlockedLayout([1, 1, 8], [1, 256 // D, D // 8], [num_warps, 1, 1], [2, 1, 0])
    of_dims: gl.constexpr = gl.SliceLayout(0, gl.SliceLayout(1, tile))
    of_slots: gl.constexpr = gl.SliceLayout(2, tile)
    SLOTS: gl.constexpr = BT // num_warps
    head, split, text = gl.program_id(0), gl.program_id(1), gl.program_id(2)
    lane = text * HKV + head
    base = lane.to(gl.int64) * L * D
    qkv += text * (G + 2) * HKV * D
    out += text * G * HKV * D
    cos += text * ANGLES
    sin += text * ANGLES
    begin = split * BT
    if EARLY:
        gdc_launch_dependents()
    dims = gl.arange(0, D, of_dims)
    here = gl.load(slot)  # written by the first kernels of this step, not by the predecessor
    warps = gl.arange(0, num_warps, gl.SliceLayout(1, of_slots))[:, None]
    places = begin + warps * SLOTS + gl.arange(0, SLOTS, gl.SliceLayout(0, of_slots))[None, :]
    seen = (gl.load(filled + text * L + places, mask=places < L, other=0) != 0) & (places != here)
    at = base + places.to(gl.int64)[:, :, None] * D + dims[None, None, :]
    key = gl.load(keys + at, mask=seen[:, :, None], other=0.0)
    value = gl.load(values + at, mask=seen[:, :, None], other=0.0)
    if EARLY:
        gdc_wait()
    across = (dims + D // 2) % D
    ours = qkv + (HKV * G + head) * D
    plain, other = (), ()
    for g in gl.static_range(G):  # all of it is asked for before the first is used
        plain += (gl.load(qkv + (head * G + g) * D + dims),)
        other += (gl.load(qkv + (head * G + g) * D + across),)
    plain_key, other_key = gl.load(ours + dims).to(gl.float32), gl.load(ours + across).to(gl.float32)
    new_value = gl.load(ours + HKV * D + dims).to(values.dtype.element_ty)
    along, beside = _learned(cos, sin, q_norm, dims, NORMED, OFFSET, D, ANGLES)
    key_along, key_beside = _learned(cos, sin, k_norm, dims, NORMED, OFFSET, D, ANGLES)
    new_key = _turned(plain_key, other_key, key_along, key_beside, eps, NORMED, D, ANGLES).to(keys.dtype.element_ty)
    mine = dims < gl.where((here >= begin) & (here < begin + BT), D, 0)  # the new token is in this part
    gl.store(keys + base + here * D + dims, new_key, mask=mine)
    gl.store(values + base + here * D + dims, new_value, mask=mine)
    new = (places == here)[:, :, None]
    key = gl.where(new, new_key[None, None, :], key).to(gl.float32)
    value = gl.where(new, new_value[None, None, :], value).to(gl.float32)
    there = seen | (places == here)
    room: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    pieces = gl.allocate_shared_memory(gl.float32, [num_warps, GP * D], room)
    peaks = gl.allocate_shared_memory(gl.float32, [num_warps, GP * D], room)
    amounts = gl.allocate_shared_memory(gl.float32, [num_warps, GP * D], room)
    for g in gl.static_range(G):
        query = _turned(plain[g].to(gl.float32), other[g].to(gl.float32), along, beside, eps, NORMED, D, ANGLES)
        query = query.to(keys.dtype.element_ty).to(gl.float32) * scaling
        score = gl.where(there, gl.sum(key * query[None, None, :], 2), float("-inf"))
        peak = gl.max(score, 1)  # of each warp's slots
        weight = gl.exp(score - gl.where(peak == float("-inf"), 0.0, peak)[:, None])
        mixed = gl.sum(value * weight[:, :, None], 1)
        peak = gl.convert_layout(peak, gl.SliceLayout(1, gl.SliceLayout(1, tile)))
        amount = gl.convert_layout(gl.sum(weight, 1), gl.SliceLayout(1, gl.SliceLayout(1, tile)))
        pieces.slice(g * D, D, 1).store(mixed)
        peaks.slice(g * D, D, 1).store(gl.zeros_like(mixed) + peak[:, None])
        amounts.slice(g * D, D, 1).store(gl.zeros_like(mixed) + amount[:, None])
    each: gl.constexpr = GP * D // (32 * num_warps) if 32 * num_warps < GP * D else 1
    met: gl.constexpr = gl.BlockedLayout([num_warps, each], [1, 32], [1, num_warps], [1, 0])
    own = gl.arange(0, GP * D, gl.SliceLayout(0, met))
    of_warps = peaks.load(met)
    best = gl.max(of_warps, 0)
    if SINKS:  # those of the first part: a score of their own that takes weight and has no value
        sink = gl.load(sinks + head * G + own // D, mask=(own < G * D) & (own >= split * GP * D), other=float("-inf"))
        sink = sink.to(gl.float32)
        best = gl.maximum(best, sink)
    safe = gl.where(best == float("-inf"), 0.0, best)
    share = gl.exp(of_warps - safe[None, :])
    total = gl.sum(amounts.load(met) * share, 0)
    if SINKS:
        total += gl.exp(sink - safe)
    if SPLITS == 1:  # nothing to combine
        result = gl.sum(pieces.load(met) * share, 0) / total
        gl.store(out + head * G * D + own, result.to(out.dtype.element_ty), mask=own < G * D)
    else:
        line = (lane * SPLITS + split) * GP
        gl.store(parts + line * D + own, gl.sum(pieces.load(met) * share, 0))
        gl.store(tops + line + own // D, best, mask=own % D == 0)
        gl.store(sums + line + own // D, total, mask=own % D == 0)
        if FOLDED:
            gl.thread_barrier()  # all stores of the program precede the increment of the counter
            if gl.atomic_add(turns + lane, 1, sem="acq_rel", scope="gpu") == SPLITS - 1:
                gl.store(turns + lane, 0)
                flat: gl.constexpr = gl.BlockedLayout([SPLITS, each], [1, 32], [1, num_warps], [1, 0])
                columns = gl.arange(0, GP * D, gl.SliceLayout(0, flat))
                lines = lane * SPLITS + gl.arange(0, SPLITS, gl.SliceLayout(1, flat))
                of_query = lines[:, None] * GP + columns[None, :] // D
                all_parts = gl.load(parts + lines[:, None] * (GP * D) + columns[None, :], cache_modifier=".cg")
                all_tops = gl.load(tops + of_query, cache_modifier=".cg")  # by other programs, so L1 may be stale
                all_sums = gl.load(sums + of_query, cache_modifier=".cg")
                shares = gl.exp(all_tops - gl.max(all_tops, 0)[None, :])
                result = gl.sum(all_parts * shares, 0) / gl.sum(all_sums * shares, 0)
                gl.store(out + head * G * D + columns, result.to(out.dtype.element_ty), mask=columns < G * D)
