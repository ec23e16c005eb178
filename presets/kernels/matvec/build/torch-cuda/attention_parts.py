"""What kernels of attention share: their constants; for long caches how slots are cut, how blocks are asked for, the
new query and key, and the end, where warps add up what they have, and the last program of a head all of its parts."""

import ctypes
from typing import NamedTuple

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

from .parts import angle, barrier, capability, leads, partner

PREFERRED_CARVEOUT = 9  # CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
DRIVERS_CHOICE = -1
SPARING = 60  # percent of shared memory: what the kernels need and little more
_carveouts: dict[int, int] = {}  # handle of a function -> percent, of those that differ from the driver's choice


class Heads(NamedTuple):
    """What a kernel of attention is compiled for.

    G, GP         queries of a KV head, and the power of two at or above
    HKV, D        KV heads of a text; numbers of a head
    ANGLES        of a token: as many as are ROTATED, or half as many, each for two; 0: not rotated
    ROTATED, PAIRS   dimensions of a head that are rotated, from the first on, neighbours with each other or halves
    BT, SPLITS    slots that a program reads at once; parts of the slots, each of which has programs of its own
    NORMED, OFFSET   whether heads are normalized, and what is added to the weights of that norm
    WHOLE         that norm is one over all heads together
    CAP           of scores (Gemma 2), or 0
    SINKS         whether each query has a score that takes weight and has no value
    OPENED        whether a gate follows each query, with whose sigmoid its result is multiplied (`attention` alone)
    AT_ONCE       queries whose parts a program of `attention` combines at once
    FOLDED        whether the last program of a head combines the parts
    EARLY         it is launched before its predecessor has ended
    """

    G: int
    GP: int
    HKV: int
    D: int
    ANGLES: int
    ROTATED: int
    PAIRS: bool
    BT: int
    SPLITS: int
    AT_ONCE: int
    NORMED: bool
    WHOLE: bool
    OFFSET: float
    CAP: float
    SINKS: bool
    OPENED: bool
    FOLDED: bool
    EARLY: bool


@gluon.jit
def part_of(slot, filled, L, split, H: gl.constexpr):
    """The new token's slot, and the begin and the end of a program's part of the slots that are filled."""
    here = gl.load(slot).to(gl.int32)  # written by the first kernels of this step, not by the predecessor
    used = gl.where(gl.load(filled + L - 1) != 0, L, here + 1)
    span = gl.cdiv(gl.cdiv(used, H.SPLITS), H.BT) * H.BT
    begin = split * span
    return here, begin, gl.minimum(begin + span, used)


@gluon.jit
def slots_of(begin, layout: gl.constexpr, SLOTS: gl.constexpr, num_warps: gl.constexpr):
    """(W, SLOTS) slots of the warps in a block from `begin` on."""
    firsts = gl.arange(0, num_warps, gl.SliceLayout(1, layout))[:, None] * SLOTS
    return begin + firsts + gl.arange(0, SLOTS, gl.SliceLayout(0, layout))[None, :]


@gluon.jit
def ask(key_rooms, value_rooms, stage, words, places, first, end, dims, D: gl.constexpr):
    """Have a block of keys and of values that begins at slot `first` copied into rooms `stage`, unless it lies behind
    the end; past the end the last slot comes again: it takes no weight there, but is multiplied, so it must be a
    number. words: where both begin, D for each slot."""
    keys, values = words
    at = gl.minimum(places, end - 1).to(gl.int64)[:, :, None] * D + dims[None, None, :]
    there = dims[None, None, :] < gl.where(first < end, D, 0)
    async_copy.async_copy_global_to_shared(key_rooms.index(stage), keys + at, there)
    async_copy.async_copy_global_to_shared(value_rooms.index(stage), values + at, there)
    async_copy.commit_group()


@gluon.jit
def attended(filled, places, here, end):
    """Which of these slots are attended to: those that are filled, but for the new token's, which is still to be."""
    return (gl.load(filled + places, mask=places < end, other=0) != 0) & (places != here)


@gluon.jit
def rotated(qkv, cos, sin, q_norm, k_norm, head, eps, layout: gl.constexpr, H: gl.constexpr):
    """(16, D) float32: the queries of a KV head, and in the last row its new key; normalized if there is a norm, and
    rotated if by any angles."""
    D: gl.constexpr = H.D
    dims = gl.arange(0, D, gl.SliceLayout(0, layout))
    rows = gl.arange(0, 16, gl.SliceLayout(1, layout))
    across = partner(dims, H.ROTATED, H.PAIRS)
    at = (gl.where(rows == 15, H.HKV * H.G + head, head * H.G + rows) * D)[:, None]
    there = ((rows < H.G) | (rows == 15))[:, None]
    turned = gl.load(qkv + at + dims[None, :], mask=there, other=0.0).to(gl.float32)
    if H.ANGLES > 0:
        other = gl.load(qkv + at + across[None, :], mask=there, other=0.0).to(gl.float32)
        along = gl.load(cos + angle(dims, H.ANGLES, H.PAIRS)).to(gl.float32)
        beside = gl.load(sin + angle(dims, H.ANGLES, H.PAIRS)).to(gl.float32)
        beside *= gl.where(leads(dims, H.ROTATED, H.PAIRS), -1.0, 1.0)
        if H.ROTATED < D:
            along = gl.where(dims < H.ROTATED, along, 1.0)
            beside = gl.where(dims < H.ROTATED, beside, 0.0)
        along = along[None, :]
        beside = beside[None, :]
        if H.NORMED:
            is_key = (rows == 15)[:, None]
            here = gl.where(is_key, gl.load(k_norm + dims)[None, :], gl.load(q_norm + dims)[None, :]).to(gl.float32)
            far = gl.where(is_key, gl.load(k_norm + across)[None, :], gl.load(q_norm + across)[None, :]).to(gl.float32)
            shrink = gl.rsqrt(gl.sum(turned * turned, 1) / D + eps)[:, None]
            turned = (turned * along * (here + H.OFFSET) + other * beside * (far + H.OFFSET)) * shrink
        else:
            turned = turned * along + other * beside
    return turned


@gluon.jit
def finish(
    found, new, sinks, results, place, met: gl.constexpr, H: gl.constexpr, num_warps: gl.constexpr, LARGER: gl.constexpr
):
    """found: of each warp the largest scores (W, 16), the sums of the weights, and of weighted values (W, 16, D), which
    are LARGER by that factor; new: of the new token its scores (16,), -inf where it is in another part, and its value
    (D,). results: parts, tops, sums, out and turns of the kernel; place: lane, head and split; met: the layout in which
    warps meet."""
    top, total, mixed = found
    score, also = new
    lane, head, split = place
    G: gl.constexpr = H.G
    GP: gl.constexpr = H.GP
    D: gl.constexpr = H.D
    SPLITS: gl.constexpr = H.SPLITS
    parts, tops, sums, out, turns = results
    whole: gl.constexpr = gl.SliceLayout(0, met)
    of_rows: gl.constexpr = gl.SliceLayout(1, whole)
    top = gl.convert_layout(top, gl.SliceLayout(2, met))  # what all warps have of a number, in one thread
    total = gl.convert_layout(total, gl.SliceLayout(2, met))
    mixed = gl.convert_layout(mixed, met)
    if LARGER != 1:
        mixed *= 1 / LARGER
    rows = gl.arange(0, 16, of_rows)
    best = gl.maximum(gl.convert_layout(gl.max(top, 0), of_rows), score)
    if H.SINKS:  # those of the first part: a score of their own that takes weight and has no value
        sink = gl.load(sinks + head * G + rows, mask=(rows < G) & (rows >= split * 16), other=float("-inf"))
        best = gl.maximum(best, sink.to(gl.float32))
    safe = gl.where(best == float("-inf"), 0.0, best)
    shares = gl.exp(top - gl.convert_layout(safe, gl.SliceLayout(0, gl.SliceLayout(2, met)))[None, :])
    weight = gl.exp(score - safe)
    amount = gl.convert_layout(gl.sum(total * shares, 0), of_rows) + weight
    if H.SINKS:
        amount += gl.exp(sink.to(gl.float32) - safe)
    result = gl.sum(mixed * shares[:, :, None], 0) + weight[:, None] * also[None, :]
    dims_of = gl.arange(0, D, gl.SliceLayout(0, whole))[None, :]
    if SPLITS == 1:  # nothing to combine
        to = out + (head * G + rows[:, None]) * D + dims_of
        gl.store(to, (result / amount[:, None]).to(out.dtype.element_ty), mask=(rows < G)[:, None] & (dims_of >= 0))
    else:
        line = (lane * SPLITS + split) * GP + rows
        gl.store(parts + line[:, None] * D + dims_of, result, mask=(rows < GP)[:, None] & (dims_of >= 0))
        gl.store(tops + line, best, mask=rows < GP)
        gl.store(sums + line, amount, mask=rows < GP)
        if H.FOLDED:
            barrier()  # all stores of the program precede the increment of the counter
            if gl.atomic_add(turns + lane, 1, sem="acq_rel", scope="gpu") == SPLITS - 1:
                gl.store(turns + lane, 0)
                _combine(parts, tops, sums, out, lane, head, H, num_warps)


@gluon.jit
def _combine(parts, tops, sums, out, lane, head, H: gl.constexpr, num_warps: gl.constexpr):
    """Write the weighted sum of all parts of a KV head, a query each warp. Other programs wrote them, so L1 may be
    stale."""
    G: gl.constexpr = H.G
    GP: gl.constexpr = H.GP
    D: gl.constexpr = H.D
    SPLITS: gl.constexpr = H.SPLITS
    PIECE: gl.constexpr = D // 2 if SPLITS * D > 2048 else D  # a thread holds all of its numbers at once
    AT_ONCE: gl.constexpr = num_warps if num_warps < GP else GP
    met: gl.constexpr = gl.BlockedLayout([SPLITS, 1, PIECE // 32], [1, 1, 32], [1, num_warps, 1], [2, 1, 0])
    of_lines: gl.constexpr = gl.SliceLayout(2, met)
    lines = lane * SPLITS + gl.arange(0, SPLITS, gl.SliceLayout(1, of_lines))
    for first in gl.static_range(0, GP, AT_ONCE):
        queries = first + gl.arange(0, AT_ONCE, gl.SliceLayout(0, of_lines))
        of_queries = first + gl.arange(0, AT_ONCE, gl.SliceLayout(1, gl.SliceLayout(0, met)))
        of_parts = lines[:, None] * GP + queries[None, :]
        peaks = gl.load(tops + of_parts, cache_modifier=".cg")
        amounts = gl.load(sums + of_parts, cache_modifier=".cg")
        shares = gl.exp(peaks - gl.max(peaks, 0)[None, :])
        shares /= gl.sum(amounts * shares, 0)[None, :]
        for begin in gl.static_range(0, D, PIECE):
            dims = begin + gl.arange(0, PIECE, gl.SliceLayout(0, gl.SliceLayout(1, met)))
            pieces = gl.load(parts + of_parts[:, :, None] * D + dims[None, None, :], cache_modifier=".cg")
            dims = begin + gl.arange(0, PIECE, gl.SliceLayout(0, gl.SliceLayout(0, met)))
            found = gl.sum(pieces * shares[:, :, None], 0)
            to = out + (head * G + of_queries[:, None]) * D + dims[None, :]
            gl.store(to, found.to(out.dtype.element_ty), mask=(of_queries < G)[:, None] & (dims >= 0)[None, :])


def fits(group: int, size: int, dtype: torch.dtype, whole: bool) -> bool:
    """Whether `attention_long` is for so many queries a KV head, this size and number format, and a norm over all
    heads, on a GPU that copies into shared memory in the background (from Ampere on)."""
    return group < 16 and 32 <= size <= 128 and not whole and dtype != torch.float32 and capability() >= (8, 0)


def cut(heads: int, length: int, size: int, block: int, most_programs: int) -> tuple[int, int]:
    """The parts of the slots, and the slots of a block, of which there are `block` where a head has 128 numbers. heads:
    KV heads of all texts."""
    slots = block * 128 // size
    most = max(1, min(32, most_programs // heads))
    return triton.next_power_of_2(min(most, triton.cdiv(length, slots))), slots


def prefer_carveout(kernel: object, percent: int) -> None:
    """Have a compiled kernel, which is what a launch returns, launched with this carveout from the next time on.

    percent  of the most shared memory that there can be, a hint: a kernel that needs more gets more

    A multiprocessor is divided into shared memory and L1 anew only while it is empty. So a kernel that begins before
    its predecessor has ended finds the predecessor's division, or waits for it. RuntimeError if the driver refuses.
    """
    if _carveouts.get(kernel.function, DRIVERS_CHOICE) == percent:
        return
    driver = ctypes.CDLL("libcuda.so.1")
    failed = driver.cuFuncSetAttribute(ctypes.c_void_p(kernel.function), PREFERRED_CARVEOUT, percent)
    if failed:
        raise RuntimeError(f"The CUDA driver refused a shared memory carveout of {percent}% (error {failed}).")
    _carveouts[kernel.function] = percent
