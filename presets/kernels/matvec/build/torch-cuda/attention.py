"""Attention of one new token: rotary embedding where there is one, the cache's new entry and the weighted sum.

The cache's slots are split between programs. The last program of a KV head to finish combines the parts, or else a
second kernel does. Both may be launched before their predecessor has ended, and the first loads keys and values before
the query is ready.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from . import attention_fp8, attention_long, attention_short
from .attention_parts import DRIVERS_CHOICE, SPARING, Heads, cut, fits, prefer_carveout
from .parts import angle, can_be_early, leads, partner, weighed

FOLDED = True  # False: a second kernel combines the parts
BY_WARPS = True  # False: one kernel for all, on tensor cores
LONG = True  # False: what programs do not hold at once is read without asking ahead
NUMBERS, MOST_SLOTS, WARPS = 8192, 128, 4  # of keys in an iteration of a program, its slots at most, and its warps
MOST_PROGRAMS = 256  # about as many as run at once on an H200: where there would be more, slots are split less


@triton.jit
def _turned(at, valid, cos, sin, norms, shrinks, eps, TWO: tl.constexpr, R: tl.constexpr, H: tl.constexpr):
    """R vectors of D elements, each starting at `at` (R,): normalized if there is a norm, and rotated.

    norms, shrinks   of all vectors and, if TWO, of the last. WHOLE: each is a part of a vector, normalized by its
                     `shrinks` and with weights that go on from part to part
    """
    D: tl.constexpr = H.D
    norm, last_norm = norms
    shrink, last_shrink = shrinks
    side = tl.arange(0, 2)[None, :, None]
    there = side * (D // 2) + tl.arange(0, D // 2)[None, None, :]
    other = (1 - side) * (D // 2) + tl.arange(0, D // 2)[None, None, :]
    if H.PAIRS or H.ROTATED < D:
        other = partner(there, H.ROTATED, H.PAIRS)
    mask = valid[:, None, None]
    here = tl.load(at[:, None, None] + there, mask=mask, other=0.0).to(tl.float32)
    turned = here
    if H.ANGLES > 0:
        across = tl.load(at[:, None, None] + other, mask=mask, other=0.0).to(tl.float32)
        along = tl.load(cos + angle(there, H.ANGLES, H.PAIRS)).to(tl.float32)
        beside = tl.load(sin + angle(there, H.ANGLES, H.PAIRS)).to(tl.float32)
        beside *= tl.where(leads(there, H.ROTATED, H.PAIRS), -1.0, 1.0)
        if H.ROTATED < D:
            along = tl.where(there < H.ROTATED, along, 1.0)
            beside = tl.where(there < H.ROTATED, beside, 0.0)
        if H.NORMED:
            last = (tl.arange(0, R) == R - 1)[:, None, None]
            if H.WHOLE:  # a row without weights of its own reads the first's
                own = valid & (tl.arange(0, R) < R - 1) if TWO else valid
                norm += (tl.where(own, tl.arange(0, R), 0) * D)[:, None, None]
            learned, beyond = tl.load(norm + there), tl.load(norm + other)
            if TWO:
                learned = tl.where(last, tl.load(last_norm + there), learned)
                beyond = tl.where(last, tl.load(last_norm + other), beyond)
            along *= learned.to(tl.float32) + H.OFFSET
            beside *= beyond.to(tl.float32) + H.OFFSET
            if not H.WHOLE:
                shrinks = tl.rsqrt(tl.sum(tl.sum(here * here, 2), 1) / D + eps)[:, None, None]
            elif TWO:
                shrinks = tl.where(last, last_shrink, shrink)
            else:
                shrinks = tl.zeros((R,), tl.float32)[:, None, None] + shrink
            here *= shrinks
            across *= shrinks
        turned = here * along + across * beside
    return tl.reshape(turned, (R, D))


@triton.jit
def _shrink(vector, eps, N: tl.constexpr):
    """1 over the root of the mean square of N elements."""
    at = tl.arange(0, triton.next_power_of_2(N))
    found = tl.load(vector + at, mask=at < N, other=0.0).to(tl.float32)
    return tl.rsqrt(tl.sum(found * found, 0) / N + eps)


@triton.jit
def _capped(scores, CAP: tl.constexpr):
    """CAP * tanh(scores / CAP), if there is a cap."""
    if CAP > 0:
        scores = CAP - 2 * CAP / (1 + tl.exp(scores * (2 / CAP)))
    return scores


@triton.jit
def _opened(result, gates, there, H: tl.constexpr):
    """The result of attention, multiplied with the sigmoid of the gates at these places if it is OPENED by them; both
    are rounded first, as in a model's own code."""
    if H.OPENED:
        kind: tl.constexpr = gates.dtype.element_ty
        gate = tl.load(gates, mask=there, other=0.0).to(tl.float32)
        result = result.to(kind).to(tl.float32) * (1 / (1 + tl.exp(-gate))).to(kind).to(tl.float32)
    return result


@triton.jit
def tokendyno_attention(qkv, angles, norms, sinks, cache, results, L, eps, scaling, H: tl.constexpr):
    """One program handles one KV head and one part of the slots of one text, the third axis of the grid.

    qkv           ((HKV * G + 2 * HKV) * D,) of one token: queries, keys, values, head by head; OPENED: each query of D
                  numbers is followed by as many of a gate
    angles        cos, sin
    norms         weights of those of queries and keys, (D,), or WHOLE, (HKV * G * D,) and (HKV * D,)
    sinks         (HKV * G,) or none
    cache         keys, values (HKV, L, D), with a free slot at `slot`, which is written here; filled (L,) bool, `slot`
                  included
    results       what follows:
    parts         (HKV, SPLITS, GP, D) float32: sums of values, weighted relative to the largest score, `tops`
    tops, sums    (HKV, SPLITS, GP) float32: that score, and the sum of the weights
    turns         (HKV,) int32, zero before and after: finished programs of each head. FOLDED: the last writes
                  out (HKV * G * D,), AT_ONCE queries at a time
    """
    cos, sin = angles
    q_norm, k_norm = norms
    keys, values, slot, filled = cache
    parts, tops, sums, out, turns = results
    G: tl.constexpr = H.G
    GP: tl.constexpr = H.GP
    HKV: tl.constexpr = H.HKV
    D: tl.constexpr = H.D
    BT: tl.constexpr = H.BT
    SPLITS: tl.constexpr = H.SPLITS
    AT_ONCE: tl.constexpr = H.AT_ONCE
    R: tl.constexpr = 16  # rows of the tensor cores' smallest product; G of them are queries
    EACH: tl.constexpr = 2 if H.OPENED else 1  # a query, and its gate
    head, split, text = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    dims, group = tl.arange(0, D), tl.arange(0, R)
    lane = text * HKV + head
    base = lane.to(tl.int64) * L * D
    qkv += text * (G * EACH + 2) * HKV * D
    out += text * G * HKV * D
    cos += text * H.ANGLES
    sin += text * H.ANGLES
    filled += text * L
    span = tl.cdiv(tl.cdiv(L, SPLITS), BT) * BT
    begin = split * span
    end = tl.minimum(begin + span, L)
    if H.EARLY:
        gdc_launch_dependents()
    here = tl.load(slot)  # written by the first kernels of this step, not by the predecessor
    places = begin + tl.arange(0, BT)
    seen = tl.load(filled + places, mask=places < end, other=0).to(tl.int1) & (places != here)
    key = tl.load(keys + base + places[:, None].to(tl.int64) * D + dims[None, :], mask=seen[:, None], other=0.0)
    value = tl.load(values + base + places[:, None].to(tl.int64) * D + dims[None, :], mask=seen[:, None], other=0.0)
    if H.EARLY:
        gdc_wait()
    ours = qkv + (HKV * G * EACH + head) * D
    new_value = tl.load(ours + HKV * D + dims).to(values.dtype.element_ty)
    q_shrink, k_shrink = 1.0, 1.0
    if H.WHOLE:
        N: tl.constexpr = HKV * G * D
        q_shrink, k_shrink = _shrink(qkv, eps, N), _shrink(qkv + N, eps, HKV * D)
        q_norm += head * G * D
        k_norm += head * D
    if G < R:  # the new key is one more vector: loading it after the queries would take as long again
        is_key = group == R - 1
        at = qkv + tl.where(is_key, HKV * G * EACH + head, (head * G + group) * EACH) * D
        norms, shrinks = (q_norm, k_norm), (q_shrink, k_shrink)
        query = _turned(at, (group < G) | is_key, cos, sin, norms, shrinks, eps, True, R, H)
        new_key = tl.sum(tl.where(is_key[:, None], query, 0.0), 0)[None, :]
    else:
        at, norms, shrinks = qkv + (head * G + group) * EACH * D, (q_norm, q_norm), (q_shrink, q_shrink)
        query = _turned(at, group < G, cos, sin, norms, shrinks, eps, False, R, H)
        one, norms, shrinks = tl.full((1,), 1, tl.int1), (k_norm, k_norm), (k_shrink, k_shrink)
        new_key = _turned(ours + tl.arange(0, 1), one, cos, sin, norms, shrinks, eps, False, 1, H)
    new_key = new_key.to(keys.dtype.element_ty)
    top = tl.full((R,), float("-inf"), tl.float32)
    total = tl.zeros((R,), tl.float32)
    mixed = tl.zeros((R, D), tl.float32)
    if H.SINKS:  # those of the first part: a score of their own, before any token's
        own = (group < G) & (split == 0)
        top = tl.load(sinks + head * G + group, mask=own, other=float("-inf")).to(tl.float32)
        total += tl.where(own, 1.0, 0.0)
    if (here >= begin) & (here < end):  # the new token is in this part: attended to first, and written
        tl.store(keys + base + here * D + dims[None, :], new_key)
        tl.store(values + base + here * D + dims, new_value)
        score = _capped(tl.sum(query * new_key.to(tl.float32), 1) * scaling, H.CAP)
        if H.SINKS:
            best = tl.maximum(top, score)
            weight = tl.exp(score - best)
            total = total * tl.exp(top - best) + weight
            mixed += weight[:, None] * new_value.to(tl.float32)[None, :]
            top = best
        else:
            top = score
            total += 1.0
            mixed += new_value.to(tl.float32)[None, :]
    query = query.to(keys.dtype.element_ty)
    for t in tl.range(begin, end, BT):
        if t > begin:
            places = t + tl.arange(0, BT)
            seen = tl.load(filled + places, mask=places < end, other=0).to(tl.int1) & (places != here)
            key = tl.load(keys + base + places[:, None].to(tl.int64) * D + dims[None, :], mask=seen[:, None], other=0.0)
            value = tl.load(
                values + base + places[:, None].to(tl.int64) * D + dims[None, :], mask=seen[:, None], other=0.0
            )
        scores = _capped(tl.dot(query, tl.trans(key), input_precision="ieee") * scaling, H.CAP)
        scores = tl.where(seen[None, :], scores, float("-inf"))
        top, shrink, weights = weighed(scores, top)
        total = total * shrink + tl.sum(weights, 1)
        mixed = mixed * shrink[:, None] + tl.dot(weights.to(value.dtype), value, input_precision="ieee")
    if SPLITS == 1:  # nothing to combine
        queries, there = head * G + group[:, None], (group < G)[:, None]
        result = _opened(mixed / total[:, None], qkv + (queries * 2 + 1) * D + dims[None, :], there, H)
        tl.store(out + queries * D + dims[None, :], result.to(out.dtype.element_ty), mask=there)
    else:
        line = (lane * SPLITS + split) * GP + group
        tl.store(parts + line[:, None] * D + dims[None, :], mixed, mask=(group < GP)[:, None])
        tl.store(tops + line, top, mask=group < GP)
        tl.store(sums + line, total, mask=group < GP)
        if H.FOLDED:
            tl.debug_barrier()  # all stores of the program precede the increment of the counter
            if tl.atomic_add(turns + lane, 1, sem="acq_rel", scope="gpu") == SPLITS - 1:
                tl.store(turns + lane, 0)
                for first in tl.static_range(0, GP, AT_ONCE):
                    queries = first + tl.arange(0, AT_ONCE)
                    lines_of = (lane * SPLITS + tl.arange(0, SPLITS)[:, None]) * GP + queries[None, :]
                    pieces = tl.load(
                        parts + lines_of[:, :, None] * D + dims[None, None, :], cache_modifier=".cg"
                    )  # written by other programs, so L1 may be stale
                    peaks = tl.load(tops + lines_of, cache_modifier=".cg")
                    amounts = tl.load(sums + lines_of, cache_modifier=".cg")
                    shares = tl.exp(peaks - tl.max(peaks, 0)[None, :])
                    shares /= tl.sum(shares * amounts, 0)[None, :]
                    whole, there = tl.sum(pieces * shares[:, :, None], 0), (queries < G)[:, None]
                    of_heads = head * G + queries[:, None]
                    whole = _opened(whole, qkv + (of_heads * 2 + 1) * D + dims[None, :], there, H)
                    tl.store(out + of_heads * D + dims[None, :], whole.to(out.dtype.element_ty), mask=there)


@triton.jit
def tokendyno_attention_whole(qkv, parts, tops, sums, out, H: tl.constexpr):
    """Combines the parts, one program per query head of each text; qkv is read for gates alone."""
    G: tl.constexpr = H.G
    D: tl.constexpr = H.D
    SPLITS: tl.constexpr = H.SPLITS
    query = tl.program_id(0)
    lines = (query // G * SPLITS + tl.arange(0, SPLITS)) * H.GP + query % G
    dims = tl.arange(0, D)
    if H.EARLY:
        gdc_launch_dependents()
        gdc_wait()
    pieces = tl.load(parts + lines[:, None] * D + dims[None, :])
    peaks, amounts = tl.load(tops + lines), tl.load(sums + lines)
    shares = tl.exp(peaks - tl.max(peaks, 0))
    shares /= tl.sum(shares * amounts, 0)
    heads: tl.constexpr = H.HKV * G
    gate = (query // heads * (heads + H.HKV) + query % heads) * 2 + 1
    result = _opened(tl.sum(pieces * shares[:, None], 0), qkv + gate * D + dims, dims >= 0, H)
    tl.store(out + query * D + dims, result.to(out.dtype.element_ty))


def _cut(heads: int, group: int, length: int, size: int, whole: bool) -> tuple[bool, int, int, int]:
    """Whether `attention_short` attends, the parts of the slots, the slots of an iteration and the warps of a program.
    heads: KV heads of all texts."""
    most = max(1, min(32, MOST_PROGRAMS // heads))
    if BY_WARPS and not whole and attention_short.fits(group, size):
        slots, warps = attention_short.BLOCKS[size]
        parts = min(most, triton.cdiv(length, slots))
        if parts * slots >= length:
            return True, parts, slots, warps
    slots = min(MOST_SLOTS, NUMBERS // size)
    return False, triton.next_power_of_2(min(most, triton.cdiv(length, slots))), slots, WARPS


def attend(
    qkv: torch.Tensor,
    cos: torch.Tensor | None,
    sin: torch.Tensor | None,
    keys: torch.Tensor,
    values: torch.Tensor,
    slot: torch.Tensor,
    filled: torch.Tensor,
    out: torch.Tensor,
    scaling: float,
    q_norm: torch.Tensor | None = None,
    k_norm: torch.Tensor | None = None,
    eps: float = 0.0,
    turns: torch.Tensor | None = None,
    sinks: torch.Tensor | None = None,
    offset: float = 0.0,
    key_scales: torch.Tensor | None = None,
    value_scales: torch.Tensor | None = None,
    l1_next: bool = False,
    cap: float = 0.0,
    rotated: int = 0,
    pairs: bool = False,
    opened: bool = False,
) -> None:
    """Write (B, H * D) into `out`, flat, and the new keys and values into the cache: keys, values (B, HKV, L, D).

    q_norm, k_norm  of D weights, or of all heads' (Olmo 3); offset is added to them
    cos, sin  of D angles, or of D / 2 that both halves of a head share; None: no rotation, and no norms; sinks (H,)
    rotated   as many dimensions of a head, with as many angles, or half as many; 0: all. pairs: neighbours, not halves
    cap     of scores, see `tokendyno_attention`; 0: none
    turns   at least B * H int32 zeros that outlive the call and that no other stream uses; None, or heads of 256, of
            which a program combines one query after another: two kernels
    key_scales, value_scales   (B, HKV, L) float32, of keys and values in float8_e4m3fn, read and written
    l1_next  the next product needs L1, of which programs with much shared memory leave little
    opened   a gate follows each query in qkv, see `Heads`
    """
    early = can_be_early()
    if cos is None and q_norm is not None:
        raise ValueError("Heads are normalized only where they are rotated.")
    texts, kv_heads, length, size = keys.shape
    group = (qkv.numel() // texts // size // kv_heads - 2) // (2 if opened else 1)
    padded = triton.next_power_of_2(group)
    whole = q_norm is not None and q_norm.numel() != size
    few, splits, block, warps = _cut(texts * kv_heads, group, length, size, whole or cap > 0 or opened)
    rounded = key_scales is not None
    in_blocks = attention_fp8 if rounded else attention_long
    far = rounded or (LONG and not cap and not opened and fits(group, size, keys.dtype, whole))
    if few and far and not rounded:  # queries with programs of their own, as far as all run at once
        far = texts * kv_heads * group * splits > MOST_PROGRAMS
    if far:
        few, (splits, block) = False, cut(texts * kv_heads, length, size, in_blocks.BLOCK, in_blocks.MOST_PROGRAMS)
    counters = texts * kv_heads * (group if few else 1)
    folded = FOLDED and size < 256 and turns is not None and turns.numel() >= counters
    if few and not folded:
        splits = triton.next_power_of_2(splits)
    parts = torch.empty(texts * kv_heads, splits, padded, size, dtype=torch.float32, device=keys.device)
    tops, sums = torch.empty(2, texts * kv_heads, splits, padded, dtype=torch.float32, device=keys.device)
    angles, norms = (tuple(qkv if one is None else one for one in pair) for pair in ((cos, sin), (q_norm, k_norm)))
    cache, results = (keys, values, slot, filled), (parts, tops, sums, out, turns if folded else slot)
    given = (qkv, angles, norms, qkv if sinks is None else sinks, cache, results, length, eps, scaling)
    heads = Heads(
        G=group,
        GP=padded,
        HKV=kv_heads,
        D=size,
        ANGLES=0 if cos is None else cos.shape[-1],
        ROTATED=rotated or size,
        PAIRS=pairs,
        BT=block,
        SPLITS=splits,
        AT_ONCE=max(1, min(padded, 8192 // (splits * size))),
        NORMED=q_norm is not None,
        WHOLE=whole,
        OFFSET=offset,
        CAP=cap,
        SINKS=sinks is not None,
        OPENED=opened,
        FOLDED=folded,
        EARLY=early,
    )
    if far:
        made = attention_long.KERNEL[(kv_heads, splits, texts)](
            *given,
            key_scales,
            value_scales,
            H=heads,
            STAGES=in_blocks.STAGES,
            launch_pdl=early,
            num_warps=in_blocks.WARPS,
            maxnreg=in_blocks.REGISTERS,
        )
        prefer_carveout(made, SPARING if l1_next else DRIVERS_CHOICE)
    elif few:
        grid = (kv_heads * group, splits, texts)
        made = attention_short.tokendyno_attention_by_warps[grid](*given, H=heads, launch_pdl=early, num_warps=warps)
        prefer_carveout(made, attention_short.CARVEOUT)
    else:
        tokendyno_attention[(kv_heads, splits, texts)](*given, H=heads, launch_pdl=early, num_warps=warps)
    if not folded and splits > 1:
        tokendyno_attention_whole[(texts * kv_heads * group,)](
            qkv, parts, tops, sums, out, H=heads, launch_pdl=early, num_warps=4
        )
