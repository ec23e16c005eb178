"""Which experts a token is routed to, and with which shares, in the ways of `description.Routing`."""

import torch
import triton
import triton.language as tl

from . import description
from .description import Routing

OVER: tl.constexpr = tl.constexpr(description.OVER)
SIGMOID: tl.constexpr = tl.constexpr(description.SIGMOID)
SIGMOID_NORMED: tl.constexpr = tl.constexpr(description.SIGMOID_NORMED)
GIVEN: tl.constexpr = tl.constexpr(description.GIVEN)
LEAST: tl.constexpr = tl.constexpr(-(1 << 31))


@triton.jit
def _falling(bits):
    """Bits of floats as integers in the same order, and back."""
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def _order(logits, beside, place, E: tl.constexpr, ROUTING: tl.constexpr):
    """By what the experts at `place` are compared: integers in the order of floats, of which a warp finds the largest
    in one instruction; the least past E. And their logits, or sigmoids of them."""
    score = tl.load(logits + place, mask=place < E, other=0.0, cache_modifier=".cg")
    compared = score
    if ROUTING.mode >= SIGMOID:
        score = 1 / (1 + tl.exp(-score))
        compared = score + tl.load(beside + place, mask=place < E, other=0.0)
    return tl.where(place < E, _falling(compared.to(tl.int32, bitcast=True)), LEAST), score


@triton.jit
def _groups(logits, beside, E: tl.constexpr, ROUTING: tl.constexpr):
    """A bit for each of the groups whose two best experts have the largest sums."""
    GROUPS: tl.constexpr = ROUTING.groups
    KEPT: tl.constexpr = ROUTING.kept
    SIZE: tl.constexpr = E // GROUPS
    inner, group = tl.arange(0, SIZE)[None, :], tl.arange(0, GROUPS)
    each = tl.reshape(_order(logits, beside, tl.arange(0, E), E, ROUTING)[0], (GROUPS, SIZE))
    best = tl.max(each, 1)
    at = tl.min(tl.where(each == best[:, None], inner, SIZE), 1)
    second = tl.max(tl.where(inner == at[:, None], LEAST, each), 1)
    total = _falling(best).to(tl.float32, bitcast=True) + _falling(second).to(tl.float32, bitcast=True)
    sums = _falling(total.to(tl.int32, bitcast=True))
    kept = 0
    for _ in tl.static_range(KEPT):
        first = tl.min(tl.where(sums == tl.max(sums, 0), group, GROUPS), 0)
        kept |= 1 << first
        sums = tl.where(group == first, LEAST, sums)
    return kept


@triton.jit
def _best(logits, beside, factor, slot, E: tl.constexpr, ROUTING: tl.constexpr):
    """`selected` in all modes but GIVEN. Each row of a (W, COLUMNS) tensor is a warp's own copy: warps that looked for
    the best together would wait for each other in every turn."""
    W: tl.constexpr = slot.shape[0]
    TOP: tl.constexpr = ROUTING.top
    COLUMNS: tl.constexpr = min(128, triton.next_power_of_2(E))
    CHUNKS: tl.constexpr = triton.cdiv(E, COLUMNS)
    row = tl.zeros((W, COLUMNS), tl.int32) + tl.arange(0, COLUMNS)[None, :]
    if ROUTING.groups > 1:
        kept = _groups(logits, beside, E, ROUTING)
    left, scores = (), ()
    for chunk in tl.static_range(CHUNKS):
        place = row + chunk * COLUMNS
        order, score = _order(logits, beside, place, E, ROUTING)
        scores += (score.to(tl.int32, bitcast=True),)
        if ROUTING.groups > 1:
            order = tl.where((kept >> place // (E // ROUTING.groups)) & 1 == 1, order, LEAST)
        left += (order,)
    number = tl.zeros((W,), tl.int32)
    own = tl.zeros((W,), tl.float32)
    top = own
    total = own
    for turn in tl.static_range(TOP):
        best = left[0]
        for chunk in tl.static_range(1, CHUNKS):
            best = tl.maximum(best, left[chunk])
        best = tl.max(best, 1)
        at = tl.full((W, COLUMNS), E - 1, tl.int32)
        for chunk in tl.static_range(CHUNKS):
            at = tl.minimum(at, tl.where(left[chunk] == best[:, None], row + chunk * COLUMNS, E - 1))
        at = tl.min(at, 1)
        further = ()
        for chunk in tl.static_range(CHUNKS):
            further += (tl.where(row + chunk * COLUMNS == at[:, None], LEAST, left[chunk]),)
        left = further
        if ROUTING.mode >= SIGMOID:  # not loaded again: that would take longer than all else in a turn
            bits = tl.zeros((W, COLUMNS), tl.int32)
            for chunk in tl.static_range(CHUNKS):
                bits += tl.where(row + chunk * COLUMNS == at[:, None], scores[chunk], 0)
            share = tl.sum(bits, 1).to(tl.float32, bitcast=True)
        else:
            score = _falling(best).to(tl.float32, bitcast=True)
            if turn == 0:
                top = score
            share = tl.exp(score - top)
        total += share
        number = tl.where(slot == turn, at, number)
        own = tl.where(slot == turn, share, own)
    if ROUTING.mode == OVER:
        total = tl.zeros((W,), tl.float32)
        for chunk in tl.static_range(CHUNKS):
            weights = tl.exp(scores[chunk].to(tl.float32, bitcast=True) - top[:, None])
            total += tl.sum(tl.where(row + chunk * COLUMNS < E, weights, 0.0), 1)
    if ROUTING.mode == SIGMOID_NORMED:
        total += 1e-20
    if ROUTING.mode != SIGMOID:
        own /= total
    return number, own * factor


@triton.jit
def selected(logits, beside, factor, slot, E: tl.constexpr, ROUTING: tl.constexpr):
    """Id and share of the expert in each `slot` (W,) of those with the largest of E logits, as ROUTING says, in falling
    order, of equal ones the first; 0 and 0 past the last. W: a number of warps, each of which finds its own.

    beside  SIGMOID: (E,), added to the scores for the choice alone; GIVEN: ids (TOP,), and logits are shares (TOP,)
    With groups, their number and E are powers of two.
    """
    if ROUTING.mode == GIVEN:
        number = tl.load(beside + slot, mask=slot < ROUTING.top, other=0).to(tl.int32)
        share = tl.load(logits + slot, mask=slot < ROUTING.top, other=0.0).to(tl.float32)
    else:
        number, share = _best(logits, beside, factor, slot, E, ROUTING)
    return number, share


@triton.jit
def tokendyno_route(logits, beside, ids, shares, factor, E: tl.constexpr, ROUTING: tl.constexpr, WIDTH: tl.constexpr):
    """Store the ids and shares (T, TOP) of a token in each program. logits (T, WIDTH), E of them of experts."""
    token, slot = tl.program_id(0), tl.arange(0, triton.next_power_of_2(ROUTING.top))
    chosen, share = selected(logits + token * WIDTH, beside, factor, slot, E, ROUTING)
    tl.store(ids + token * ROUTING.top + slot, chosen, mask=slot < ROUTING.top)
    tl.store(shares + token * ROUTING.top + slot, share, mask=slot < ROUTING.top)


def route(
    logits: torch.Tensor, experts: int, routing: Routing, factor: float, beside: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """logits (T, E or E + 1) float32 -> ids (T, top) int32, shares (T, top) float32. beside: see `selected`."""
    tokens, width = logits.shape
    ids = torch.empty(tokens, routing.top, dtype=torch.int32, device=logits.device)
    shares = torch.empty(tokens, routing.top, dtype=torch.float32, device=logits.device)
    tokendyno_route[(tokens,)](
        logits,
        logits if beside is None else beside,
        ids,
        shares,
        factor,
        E=experts,
        ROUTING=routing,
        WIDTH=width,
        num_warps=triton.next_power_of_2(routing.top),
    )
    return ids, shares
