"""Attention of one new token: rotary embedding, the cache's new entry and the weighted sum, in one kernel.

The places of the cache are split among programs; the last one that comes to a KV head puts the parts together.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from .products import can_be_early


@triton.jit
def _turned(at, valid, cos, sin, norm, eps, NORMED: tl.constexpr, R: tl.constexpr, D: tl.constexpr):
    """R vectors of D numbers, the first number of each at `at` (R,): normalized where there is a norm, and rotated."""
    side = tl.arange(0, 2)[None, :, None]
    there = side * (D // 2) + tl.arange(0, D // 2)[None, None, :]
    other = (1 - side) * (D // 2) + tl.arange(0, D // 2)[None, None, :]
    mask = valid[:, None, None]
    here = tl.load(at[:, None, None] + there, mask=mask, other=0.0).to(tl.float32)
    across = tl.load(at[:, None, None] + other, mask=mask, other=0.0).to(tl.float32)
    if NORMED:
        shrink = tl.rsqrt(tl.sum(tl.sum(here * here, 2), 1) / D + eps)[:, None, None]
        here *= shrink * tl.load(norm + there).to(tl.float32)
        across *= shrink * tl.load(norm + other).to(tl.float32)
    sign = tl.where(side == 0, -1.0, 1.0)
    turned = here * tl.load(cos + there).to(tl.float32) + sign * across * tl.load(sin + there).to(tl.float32)
    return tl.reshape(turned, (R, D))


@triton.jit
def tokendyno_attention(
    qkv, cos, sin, q_norm, k_norm, keys, values, slot, filled, parts, tops, sums, arrived, out, L, eps, scaling,
    G: tl.constexpr, GP: tl.constexpr, HKV: tl.constexpr, D: tl.constexpr, BT: tl.constexpr, SPLITS: tl.constexpr,
    BD: tl.constexpr, NORMED: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """One KV head and one part of the places a program.

    qkv           ((HKV * G + 2 * HKV) * D,) of one token: queries, keys, values, head by head
    keys, values  (HKV, L, D), with a place free at `slot`, which is written here; filled: (L,) bool, `slot` included
    parts, tops, sums, arrived   scratch: (HKV, SPLITS, GP, D) and (HKV, SPLITS, GP) float32, (HKV,) int32 of zeros
    """
    R: tl.constexpr = 16  # rows of the matrix units' smallest product; G of them are queries
    head, split = tl.program_id(0), tl.program_id(1)
    dims, group = tl.arange(0, D), tl.arange(0, R)
    base = head.to(tl.int64) * L * D
    span = tl.cdiv(tl.cdiv(L, SPLITS), BT) * BT
    begin = split * span
    end = tl.minimum(begin + span, L)
    if EARLY:
        gdc_launch_dependents()
    here = tl.load(slot)  # this step's first kernels wrote it, not the one before this
    places = begin + tl.arange(0, BT)
    seen = tl.load(filled + places, mask=places < end, other=0).to(tl.int1)
    old = (seen & (places != here))[:, None]
    key = tl.load(keys + base + places[:, None].to(tl.int64) * D + dims[None, :], mask=old, other=0.0)
    value = tl.load(values + base + places[:, None].to(tl.int64) * D + dims[None, :], mask=old, other=0.0)
    if EARLY:
        gdc_wait()
    ours = qkv + (HKV * G + head) * D
    new_key = tl.reshape(_turned(ours + tl.arange(0, 1), tl.full((1,), 1, tl.int1), cos, sin, k_norm, eps, NORMED, 1, D),
                         (D,)).to(keys.dtype.element_ty)  # fmt: skip
    new_value = tl.load(ours + HKV * D + dims).to(values.dtype.element_ty)
    query = _turned(qkv + (head * G + group) * D, group < G, cos, sin, q_norm, eps, NORMED, R, D)
    query = query.to(keys.dtype.element_ty)
    if (here >= begin) & (here < end):
        tl.store(keys + base + here * D + dims, new_key)
        tl.store(values + base + here * D + dims, new_value)
    top = tl.full((R,), float("-inf"), tl.float32)
    total = tl.zeros((R,), tl.float32)
    mixed = tl.zeros((R, D), tl.float32)
    for t in tl.range(begin, end, BT):
        if t > begin:
            places = t + tl.arange(0, BT)
            seen = tl.load(filled + places, mask=places < end, other=0).to(tl.int1)
            old = (seen & (places != here))[:, None]
            key = tl.load(keys + base + places[:, None].to(tl.int64) * D + dims[None, :], mask=old, other=0.0)
            value = tl.load(values + base + places[:, None].to(tl.int64) * D + dims[None, :], mask=old, other=0.0)
        is_new = (places == here)[:, None]
        key = tl.where(is_new, new_key[None, :], key)
        value = tl.where(is_new, new_value[None, :], value)
        scores = tl.dot(query, tl.trans(key), input_precision="ieee") * scaling
        scores = tl.where(seen[None, :], scores, float("-inf"))
        best = tl.maximum(top, tl.max(scores, 1))
        safe = tl.where(best == float("-inf"), 0.0, best)
        shrink = tl.exp(top - safe)
        weights = tl.exp(scores - safe[:, None])
        total = total * shrink + tl.sum(weights, 1)
        mixed = mixed * shrink[:, None] + tl.dot(weights.to(value.dtype), value, input_precision="ieee")
        top = best
    line = (head * SPLITS + split) * GP + group
    tl.store(parts + line[:, None] * D + dims[None, :], mixed, mask=(group < GP)[:, None])
    tl.store(tops + line, top, mask=group < GP)
    tl.store(sums + line, total, mask=group < GP)
    tl.debug_barrier()
    if tl.atomic_add(arrived + head, 1, sem="acq_rel") == SPLITS - 1:
        tl.debug_barrier()
        tl.store(arrived + head, 0)
        lines = (head * SPLITS + tl.arange(0, SPLITS))[:, None] * GP + tl.arange(0, GP)[None, :]
        rows = (head * G + tl.arange(0, GP))[:, None] * D
        wanted = (tl.arange(0, GP) < G)[:, None]
        some = tl.arange(0, BD)
        piece = tl.load(parts + lines[:, :, None] * D + some[None, None, :], cache_modifier=".cg")
        peaks = tl.load(tops + lines, cache_modifier=".cg")
        amounts = tl.load(sums + lines, cache_modifier=".cg")
        shares = tl.exp(peaks - tl.max(peaks, 0)[None, :])
        shares /= tl.sum(shares * amounts, 0)[None, :]
        tl.store(out + rows + some[None, :], tl.sum(piece * shares[:, :, None], 0).to(out.dtype.element_ty), mask=wanted)
        for d in tl.static_range(BD, D, BD):
            some = d + tl.arange(0, BD)
            piece = tl.load(parts + lines[:, :, None] * D + some[None, None, :], cache_modifier=".cg")
            result = tl.sum(piece * shares[:, :, None], 0)
            tl.store(out + rows + some[None, :], result.to(out.dtype.element_ty), mask=wanted)


_scratch: dict[tuple[object, ...], tuple[torch.Tensor, ...]] = {}


def attend(
    qkv: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, keys: torch.Tensor, values: torch.Tensor,
    slot: torch.Tensor, filled: torch.Tensor, out: torch.Tensor, scaling: float, q_norm: torch.Tensor | None = None,
    k_norm: torch.Tensor | None = None, eps: float = 0.0, early: bool | None = None, splits: int = 0, block: int = 0,
    warps: int = 4,
) -> None:  # fmt: skip
    """Write (H * D,) into `out`, flat, and the new key and value into the cache: keys, values (1, HKV, L, D)."""
    early = can_be_early() if early is None else early
    _, kv_heads, length, size = keys.shape
    group = qkv.numel() // size // kv_heads - 2
    padded = triton.next_power_of_2(group)
    block = block or 64
    splits = splits or triton.next_power_of_2(min(32, triton.cdiv(length, block)))
    name = (keys.device, kv_heads, splits, padded, size)
    if name not in _scratch:
        floats = {"dtype": torch.float32, "device": keys.device}
        _scratch[name] = (
            torch.empty(kv_heads, splits, padded, size, **floats), torch.empty(kv_heads, splits, padded, **floats),
            torch.empty(kv_heads, splits, padded, **floats),
            torch.zeros(kv_heads, dtype=torch.int32, device=keys.device),
        )  # fmt: skip
    parts, tops, sums, arrived = _scratch[name]
    tokendyno_attention[(kv_heads, splits)](
        qkv, cos, sin, q_norm if q_norm is not None else cos, k_norm if k_norm is not None else cos, keys, values,
        slot, filled, parts, tops, sums, arrived, out, length, eps, scaling,
        G=group, GP=padded, HKV=kv_heads, D=size, BT=block, SPLITS=splits, BD=max(1, min(size, 2048 * warps // splits // padded)),
        NORMED=q_norm is not None, EARLY=early, launch_pdl=early, num_warps=warps,
    )  # fmt: skip
