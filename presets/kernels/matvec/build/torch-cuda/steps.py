"""The parts of a decode step outside the layers: the rotary embedding's angles before them, the next token after them.

In plain torch each is many kernels that take longer to launch than to run.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from .parts import can_be_early

ENDS = True  # False: steps end in plain torch
ROTATES = True  # False: transformers computes the angles
MOST_ROWS = 8
WORDS: tl.constexpr = tl.constexpr(1024)  # vocabulary entries per program


@triton.jit
def _key(score, word):
    """Sort key, int64: larger for a larger score and, if equal, for a smaller id, as in argmax; NaN is largest."""
    score = tl.where(score == 0, 0.0, score)  # -0 is 0
    bits = score.to(tl.int32, bitcast=True)
    rank = tl.where(score != score, 0x7FFFFFFF, bits ^ ((bits >> 31) & 0x7FFFFFFF))
    return (rank.to(tl.int64) << 32) | (0x7FFFFFFF - word).to(tl.int64)


@triton.jit
def _next(counter, size):
    following = tl.load(counter) + 1
    return tl.where(following < tl.load(size), following, 0)


@triton.jit
def tokendyno_step_end(
    logits,
    stride,
    best,
    step,
    counters,
    sizes,
    filled,
    added,
    slots,
    V,
    L,
    pad,
    FULL: tl.constexpr,
    SLIDING: tl.constexpr,
    ADDED: tl.constexpr,
    B: tl.constexpr,
    PARTS: tl.constexpr,
    ENDS: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Reads and writes the tensors of the decode loop's `Step`, and of its cache's slots, of full attention and of a
    sliding window where it has them: `filled`, with ADDED `added`, and how many `slots` there are.

    Each program finds the best of WORDS entries of a row of logits (B, V). The last to finish, by `turns`, chooses.
    best (B, PARTS) int64
    """
    turns, token, positions, out, scored, done, ends = step
    ROWS: tl.constexpr = triton.next_power_of_2(B)
    COLUMNS: tl.constexpr = triton.next_power_of_2(PARTS)
    least: tl.constexpr = -(1 << 63)
    words = tl.program_id(0) * WORDS + tl.arange(0, WORDS)
    rows, parts = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    real = rows < B
    place = _next(counters, sizes)  # written by the previous step, long ago
    ring = _next(counters + 1, sizes + 1)
    count = _next(counters + 2, sizes + 2)
    position = tl.load(positions + rows, mask=real, other=0) + 1
    if B > 1:
        ended = tl.load(done + rows, mask=real, other=0) != 0
        limits = tl.load(ends + tl.arange(0, ENDS))
    if EARLY:
        gdc_wait()
    scores = tl.load(logits + tl.program_id(1) * stride + words, mask=words < V, other=0.0).to(tl.float32)
    keys = tl.where(words < V, _key(scores, words), least)
    tl.store(best + tl.program_id(1) * PARTS + tl.program_id(0), tl.max(keys, 0))
    tl.debug_barrier()  # every thread has read what the last program overwrites
    if tl.atomic_add(turns, 1, sem="acq_rel", scope="gpu") == PARTS * B - 1:
        there = real[:, None] & (parts < PARTS)[None, :]
        bests = tl.load(best + rows[:, None] * PARTS + parts[None, :], mask=there, other=least, cache_modifier=".cg")
        winners = tl.max(bests, 1)
        chosen = 0x7FFFFFFF - (winners & 0x7FFFFFFF)
        rank = (winners >> 32).to(tl.int32)
        score = (rank ^ ((rank >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)  # undoes what `_key` did
        if B > 1:
            chosen = tl.where(ended, pad, chosen)
            ended |= tl.sum((chosen[:, None] == limits[None, :]).to(tl.int32), 1) > 0
            tl.store(done + rows, ended.to(tl.uint8), mask=real)
        tl.store(turns, 0)
        tl.store(counters, place)
        tl.store(counters + 1, ring)
        tl.store(counters + 2, count)
        tl.store(positions + rows, position, mask=real)
        tl.store(token + rows, chosen, mask=real)
        tl.store(out + count * B + rows, chosen, mask=real & (count < L))
        tl.store(scored + count * B + rows, score, mask=real & (count < L))
        if FULL:
            tl.store(filled[0] + rows * slots[0] + place, tl.full((ROWS,), 1, tl.uint8), mask=real)
            if ADDED:
                tl.store(added[0] + rows * slots[0] + place, 0.0, mask=real)
        if SLIDING:
            tl.store(filled[1] + rows * slots[1] + ring, tl.full((ROWS,), 1, tl.uint8), mask=real)
            if ADDED:
                tl.store(added[1] + rows * slots[1] + ring, 0.0, mask=real)


def can_end(logits: torch.Tensor) -> bool:
    return ENDS and logits.is_cuda and logits.shape[0] <= MOST_ROWS and logits.stride(-1) == 1


def end(logits: torch.Tensor, step: object) -> None:
    """Update the tensors of `step` in place from logits (B, V)."""
    early, (batch, vocabulary) = can_be_early(), logits.shape
    parts = triton.cdiv(vocabulary, WORDS.value)
    best = torch.empty(batch, parts, dtype=torch.int64, device=logits.device)
    slots, done = (step.cache.full, step.cache.sliding), step.done.view(torch.uint8)
    added = [getattr(one, "added", None) for one in slots]
    tokendyno_step_end[(parts, batch)](
        logits,
        logits.stride(0),
        best,
        (step.turns, step.token, step.positions, step.out, step.scores, done, step.eos),
        step.cache.counters,
        step.cache.sizes,
        tuple(step.turns if one is None else one.filled.view(torch.uint8) for one in slots),
        tuple(step.turns if one is None else one for one in added),
        tuple(0 if one is None else one.size for one in slots),
        vocabulary,
        step.out.shape[0],
        step.pad,
        FULL=slots[0] is not None,
        SLIDING=slots[1] is not None,
        ADDED=any(one is not None for one in added),
        B=batch,
        PARTS=parts,
        ENDS=step.eos.numel(),
        EARLY=early,
        launch_pdl=early,
        num_warps=4,
    )


@triton.jit
def tokendyno_rotary(
    frequencies, positions, cos, sin, scaling, HALF: tl.constexpr, COPIES: tl.constexpr, EARLY: tl.constexpr
):
    """cos and sin (tokens, COPIES * HALF) of position * frequency, computed in float32; one program per token."""
    column = tl.arange(0, triton.next_power_of_2(HALF))
    inside = column < HALF
    if EARLY:
        gdc_launch_dependents()
    frequency = tl.load(frequencies + column, mask=inside, other=0.0).to(tl.float32)
    if EARLY:
        gdc_wait()
    angle = tl.load(positions + tl.program_id(0)).to(tl.float32) * frequency
    along, beside = tl.cos(angle) * scaling, tl.sin(angle) * scaling
    at = tl.program_id(0) * COPIES * HALF + column
    for half in tl.static_range(COPIES):
        tl.store(cos + at + half * HALF, along.to(cos.dtype.element_ty), mask=inside)
        tl.store(sin + at + half * HALF, beside.to(sin.dtype.element_ty), mask=inside)


def can_rotate(module: object, x: torch.Tensor, positions: torch.Tensor, layer_type: str = "") -> bool:
    """Whether this is one token per row, with constant frequencies; layer_type: where each kind has its own."""
    kind = module.rope_type[layer_type] if layer_type else module.rope_type
    fixed = isinstance(kind, str) and "dynamic" not in kind and kind != "longrope"
    return ROTATES and fixed and x.is_cuda and positions.shape[-1] == 1 and positions.is_contiguous()


def rotary(
    frequencies: torch.Tensor, positions: torch.Tensor, scaling: float, dtype: torch.dtype, copies: int = 2
) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions (B, T) -> cos and sin (B, T, copies * frequencies)."""
    early, half = can_be_early(), frequencies.numel()
    cos, sin = torch.empty(2, *positions.shape, copies * half, dtype=dtype, device=positions.device)
    tokendyno_rotary[(positions.numel(),)](
        frequencies, positions, cos, sin, scaling, half, copies, early, launch_pdl=early, num_warps=1
    )
    return cos, sin
