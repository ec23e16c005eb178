"""Attention of one new token for few queries a KV head and a cache that the programs hold whole, as most are at first.

A tensor core multiplies 16 queries at least, and its operands pass through shared memory, at whose barriers all warps
wait for each other. Here each warp attends to slots of its own in registers, and warps meet once, to add up. Written in
Gluon, Triton's lower level, which lets a layout be stated.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from .parts import angle, barrier, can_be_early, leads, partner, wide

MOST_QUERIES = 3  # of a KV head: with four, tensor cores take as long
BLOCKS = {64: (64, 4), 128: (128, 8)}
"""Size of a head -> cache slots of a program and its warps, the best of sweeps on an H200 in whole decoder layers."""
CARVEOUT = 25  # percent of shared memory: as little as the kernel needs, so that L1 is large when the next one begins


def fits(group: int, size: int) -> bool:
    """Whether the kernel is for this number of queries a KV head, and for heads of this size."""
    return group <= MOST_QUERIES and size in BLOCKS and can_be_early()


@gluon.jit
def _learned(norm, dims, H: gl.constexpr):
    """A norm's weights for each element of a vector and for the one that it is rotated with; without a norm neither is
    read."""
    here, across = dims, dims
    if H.NORMED:
        here = gl.load(norm + dims)
        across = gl.load(norm + partner(dims, H.ROTATED, H.PAIRS))
    return here, across


@gluon.jit
def _factors(cos, sin, here, across, dims, H: gl.constexpr):
    """What each element of a vector, and the one that it is rotated with, is multiplied with by the rotation and a norm
    with those weights; without ANGLES by neither, and what is returned is not read."""
    along, beside = dims, dims
    if H.ANGLES > 0:
        along = wide(gl.load(cos + angle(dims, H.ANGLES, H.PAIRS)))
        beside = wide(gl.load(sin + angle(dims, H.ANGLES, H.PAIRS))) * gl.where(
            leads(dims, H.ROTATED, H.PAIRS), -1.0, 1.0
        )
        if H.ROTATED < H.D:
            along = gl.where(dims < H.ROTATED, along, 1.0)
            beside = gl.where(dims < H.ROTATED, beside, 0.0)
        if H.NORMED:
            along *= wide(here) + H.OFFSET
            beside *= wide(across) + H.OFFSET
    return along, beside


@gluon.jit
def _turned(here, across, along, beside, eps, H: gl.constexpr):
    """A vector, normalized if there is a norm, and rotated if by any ANGLES."""
    turned = here
    if H.ANGLES > 0:
        turned = here * along + across * beside
    if H.NORMED:
        turned *= gl.rsqrt(gl.sum(here * here, 0) / H.D + eps)
    return turned


@gluon.jit
def tokendyno_attention_by_warps(
    qkv, angles, norms, sinks, cache, results, L, eps, scaling, H: gl.constexpr, num_warps: gl.constexpr
):
    """As `attention.tokendyno_attention` for one query a program; SPLITS * BT slots are at least all of them.

    turns   (HKV * G,): the parts of each query are combined alone
    """
    cos, sin = angles
    q_norm, k_norm = norms
    keys, values, slot, filled = cache
    parts, tops, sums, out, turns = results
    G: gl.constexpr = H.G
    HKV: gl.constexpr = H.HKV
    D: gl.constexpr = H.D
    BT: gl.constexpr = H.BT
    SPLITS: gl.constexpr = H.SPLITS
    tile: gl.constexpr = gl.BlockedLayout([1, 1, 8], [1, 256 // D, D // 8], [num_warps, 1, 1], [2, 1, 0])
    of_dims: gl.constexpr = gl.SliceLayout(0, gl.SliceLayout(1, tile))
    of_slots: gl.constexpr = gl.SliceLayout(2, tile)
    SLOTS: gl.constexpr = BT // num_warps
    head, split, text = gl.program_id(0) // G, gl.program_id(1), gl.program_id(2)
    query_of_head = gl.program_id(0) % G
    lane = text * HKV + head
    base = lane.to(gl.int64) * L * D
    qkv += text * (G + 2) * HKV * D
    out += (text * HKV + head) * G * D
    cos += text * H.ANGLES
    sin += text * H.ANGLES
    begin = split * BT
    if H.EARLY:
        gdc_launch_dependents()
    dims = gl.arange(0, D, of_dims)
    here = gl.load(slot)  # written by the first kernels of this step, not by the predecessor
    warps = gl.arange(0, num_warps, gl.SliceLayout(1, of_slots))[:, None]
    places = begin + warps * SLOTS + gl.arange(0, SLOTS, gl.SliceLayout(0, of_slots))[None, :]
    seen = (gl.load(filled + text * L + places, mask=places < L, other=0) != 0) & (places != here)
    at = base + places.to(gl.int64)[:, :, None] * D + dims[None, None, :]
    key = gl.load(keys + at, mask=seen[:, :, None], other=0.0)
    value = gl.load(values + at, mask=seen[:, :, None], other=0.0)
    query_norm, query_norm_too = _learned(q_norm, dims, H)  # no kernel writes them: asked for before the wait
    key_norm, key_norm_too = _learned(k_norm, dims, H)
    met: gl.constexpr = gl.BlockedLayout(
        [num_warps, D // (32 * num_warps) if 32 * num_warps < D else 1], [1, 32], [1, num_warps], [1, 0]
    )
    own = gl.arange(0, D, gl.SliceLayout(0, met))
    if H.EARLY:
        gdc_wait()
    across = partner(dims, H.ROTATED, H.PAIRS)
    ours = qkv + (head * G + query_of_head) * D
    plain, other = gl.load(ours + dims), gl.load(ours + across)
    ours = qkv + (HKV * G + head) * D
    plain_key = gl.load(ours + dims, volatile=True)  # asked for now, though few programs need it
    other_key = gl.load(ours + across, volatile=True)
    new_value = gl.load(ours + HKV * D + own, volatile=True).to(values.dtype.element_ty)
    along, beside = _factors(cos, sin, query_norm, query_norm_too, dims, H)
    query = _turned(wide(plain), wide(other), along, beside, eps, H)
    query = wide(query.to(keys.dtype.element_ty)) * scaling
    score = gl.where(seen, gl.sum(wide(key) * query[None, None, :], 2), float("-inf"))
    peak = gl.max(score, 1)  # of each warp's slots
    weight = gl.exp(score - gl.where(peak == float("-inf"), 0.0, peak)[:, None])
    mixed = gl.sum(wide(value) * weight[:, :, None], 1)
    peak = gl.convert_layout(peak, gl.SliceLayout(1, gl.SliceLayout(1, tile)))
    amount = gl.convert_layout(gl.sum(weight, 1), gl.SliceLayout(1, gl.SliceLayout(1, tile)))
    room: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    pieces = gl.allocate_shared_memory(gl.float32, [num_warps, D], room, mixed)
    peaks = gl.allocate_shared_memory(gl.float32, [num_warps, D], room, gl.zeros_like(mixed) + peak[:, None])
    amounts = gl.allocate_shared_memory(gl.float32, [num_warps, D], room, gl.zeros_like(mixed) + amount[:, None])
    new = float("-inf")  # the score of the new token, in the part that has its slot
    if (here >= begin) & (here < begin + BT):
        along, beside = _factors(cos, sin, key_norm, key_norm_too, dims, H)
        new_key = _turned(wide(plain_key), wide(other_key), along, beside, eps, H)
        new_key = new_key.to(keys.dtype.element_ty)
        new = gl.sum(wide(new_key) * query, 0)
        if query_of_head == 0:
            gl.store(keys + base + here * D + dims, new_key)
            gl.store(values + base + here * D + own, new_value)
    of_warps = peaks.load(met)
    best = gl.maximum(gl.max(of_warps, 0), new)
    if H.SINKS:  # those of the first part: a score of their own that takes weight and has no value
        sink = gl.load(sinks + head * G + query_of_head).to(gl.float32)
        sink = gl.where(split == 0, sink, float("-inf"))
        best = gl.maximum(best, sink)
    safe = gl.where(best == float("-inf"), 0.0, best)
    share = gl.exp(of_warps - safe[None, :])
    of_new = gl.exp(new - safe)
    total = gl.sum(amounts.load(met) * share, 0) + of_new
    if H.SINKS:
        total += gl.exp(sink - safe)
    result = gl.sum(pieces.load(met) * share, 0) + of_new * new_value.to(gl.float32)
    if SPLITS == 1:  # nothing to combine
        gl.store(out + query_of_head * D + own, (result / total).to(out.dtype.element_ty))
    else:
        line = (lane * SPLITS + split) * H.GP + query_of_head
        gl.store(parts + line * D + own, result)
        gl.store(tops + line + own, best, mask=own == 0)
        gl.store(sums + line + own, total, mask=own == 0)
        if H.FOLDED:
            barrier()  # all stores of the program precede the increment of the counter
            turn = turns + lane * G + query_of_head
            if gl.atomic_add(turn, 1, sem="acq_rel", scope="gpu") == SPLITS - 1:
                gl.store(turn, 0)
                others, peaks_of_others, sums_of_others = (), (), ()
                for part in gl.static_range(SPLITS):  # by other programs, so L1 may be stale
                    its = (lane * SPLITS + part) * H.GP + query_of_head
                    others += (gl.load(parts + its * D + own, cache_modifier=".cg"),)
                    peaks_of_others += (gl.load(tops + its, cache_modifier=".cg"),)
                    sums_of_others += (gl.load(sums + its, cache_modifier=".cg"),)
                best_of_all = peaks_of_others[0]
                for part in gl.static_range(1, SPLITS):
                    best_of_all = gl.maximum(best_of_all, peaks_of_others[part])
                mixed_of_all, amount_of_all = gl.zeros_like(result), 0.0
                for part in gl.static_range(SPLITS):
                    weight_of_part = gl.exp(peaks_of_others[part] - best_of_all)
                    mixed_of_all += others[part] * weight_of_part
                    amount_of_all += sums_of_others[part] * weight_of_part
                gl.store(out + query_of_head * D + own, (mixed_of_all / amount_of_all).to(out.dtype.element_ty))
