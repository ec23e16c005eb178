"""What both kernels of long attention share: how slots are cut, and their end, where warps add up what they have, and
the last program of a head all of its parts."""

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

SPARING = 60  # percent of shared memory: what the kernels need and little more


@gluon.jit
def finish(
    top, total, mixed, score, also, sinks, parts, tops, sums, out, turns, lane, head, split, met: gl.constexpr,
    G: gl.constexpr, GP: gl.constexpr, D: gl.constexpr, SPLITS: gl.constexpr, SINKS: gl.constexpr,
    FOLDED: gl.constexpr, num_warps: gl.constexpr,
):  # fmt: skip
    """Of each warp: the largest scores (W, 16), the sums of the weights, and of weighted values (W, 16, D), in layout
    `met`; and of the new token its scores (16,), -inf where it is in another part, and its value (D,)."""
    whole: gl.constexpr = gl.SliceLayout(0, met)
    of_rows: gl.constexpr = gl.SliceLayout(1, whole)
    rows = gl.arange(0, 16, of_rows)
    best = gl.maximum(gl.convert_layout(gl.max(top, 0), of_rows), score)
    if SINKS:  # those of the first part: a score of their own that takes weight and has no value
        sink = gl.load(sinks + head * G + rows, mask=(rows < G) & (rows >= split * 16), other=float("-inf"))
        best = gl.maximum(best, sink.to(gl.float32))
    safe = gl.where(best == float("-inf"), 0.0, best)
    shares = gl.exp(top - gl.convert_layout(safe, gl.SliceLayout(0, gl.SliceLayout(2, met)))[None, :])
    weight = gl.exp(score - safe)
    amount = gl.convert_layout(gl.sum(total * shares, 0), of_rows) + weight
    if SINKS:
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
        if FOLDED:
            gl.thread_barrier()  # all stores of the program precede the increment of the counter
            if gl.atomic_add(turns + lane, 1, sem="acq_rel", scope="gpu") == SPLITS - 1:
                gl.store(turns + lane, 0)
                _combine(parts, tops, sums, out, lane, head, G, GP, D, SPLITS, num_warps)


@gluon.jit
def _combine(
    parts, tops, sums, out, lane, head, G: gl.constexpr, GP: gl.constexpr, D: gl.constexpr, SPLITS: gl.constexpr,
    num_warps: gl.constexpr,
):  # fmt: skip
    """Write the weighted sum of all parts of a KV head, a query each warp. Other programs wrote them, so L1 may be
    stale."""
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


def cut(heads: int, length: int, size: int, block: int, most_programs: int) -> tuple[int, int]:
    """The parts of the slots, and the slots of a block, of which there are `block` where a head has 128 numbers. heads:
    KV heads of all texts."""
    slots = block * 128 // size
    most = max(1, min(32, most_programs // heads))
    return triton.next_power_of_2(min(most, triton.cdiv(length, slots))), slots
