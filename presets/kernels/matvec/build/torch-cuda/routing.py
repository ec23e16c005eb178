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


@triton.jit
def _falling(bits):
    """Bits of floats as integers in the same order, and back."""
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def _best(logits, beside, factor, E: tl.constexpr, ROUTING: tl.constexpr):
    """`selected` in all modes but GIVEN."""
    GROUPS: tl.constexpr = ROUTING.groups
    TOP: tl.constexpr = ROUTING.top
    KEPT: tl.constexpr = ROUTING.kept
    EP: tl.constexpr = triton.next_power_of_2(E)
    TOPP: tl.constexpr = triton.next_power_of_2(TOP)
    least: tl.constexpr = -(1 << 31)
    place, slot = tl.arange(0, EP), tl.arange(0, TOPP)
    ids = tl.zeros((TOPP,), tl.int32)
    plain = tl.load(logits + place, mask=place < E, other=0.0, cache_modifier=".cg")
    compared = plain
    if ROUTING.mode >= SIGMOID:
        compared = 1 / (1 + tl.exp(-plain)) + tl.load(beside + place, mask=place < E, other=0.0)
    left = tl.where(place < E, _falling(compared.to(tl.int32, bitcast=True)), least)
    if GROUPS > 1:
        SIZE: tl.constexpr = EP // GROUPS
        inner, group = tl.arange(0, SIZE)[None, :], tl.arange(0, GROUPS)
        grouped = tl.reshape(left, (GROUPS, SIZE))
        best = tl.max(grouped, 1)
        at = tl.min(tl.where(grouped == best[:, None], inner, SIZE), 1)
        second = tl.max(tl.where(inner == at[:, None], least, grouped), 1)
        total = _falling(best).to(tl.float32, bitcast=True) + _falling(second).to(tl.float32, bitcast=True)
        sums = _falling(total.to(tl.int32, bitcast=True))
        kept = tl.zeros((GROUPS,), tl.int32)
        for _ in tl.static_range(KEPT):
            first = tl.min(tl.where(sums == tl.max(sums, 0), group, GROUPS), 0)
            kept = tl.where(group == first, 1, kept)
            sums = tl.where(group == first, least, sums)
        left = tl.reshape(tl.where(kept[:, None] == 1, grouped, least), (EP,))
    scores = tl.full((TOPP,), float("-inf"), tl.float32)
    for turn in tl.static_range(TOP):
        best = tl.max(left, 0)
        at = tl.min(tl.where(left == best, place, EP - 1), 0)
        score = _falling(best).to(tl.float32, bitcast=True)
        ids = tl.where(slot == turn, at, ids)
        scores = tl.where(slot == turn, score, scores)
        left = tl.where(place == at, least, left)
    if ROUTING.mode >= SIGMOID:
        chosen = tl.load(logits + ids, mask=slot < TOP, other=float("-inf"), cache_modifier=".cg")
        shares = 1 / (1 + tl.exp(-chosen))
        if ROUTING.mode == SIGMOID_NORMED:
            shares /= tl.sum(shares, 0) + 1e-20
        return ids, shares * factor
    top = tl.max(scores, 0)
    shares = tl.exp(scores - top)
    if ROUTING.mode == OVER:
        return ids, shares / tl.sum(tl.where(place < E, tl.exp(plain - top), 0.0), 0) * factor
    return ids, shares / tl.sum(shares, 0) * factor


@triton.jit
def selected(logits, beside, factor, E: tl.constexpr, ROUTING: tl.constexpr):
    """Ids and shares (TOPP,) of the experts with the largest of E logits, as ROUTING says, in falling order,
    of equal ones the first. TOPP: the power of two at or above their number.

    beside  SIGMOID: (E,), added to the scores for the choice alone; GIVEN: ids (TOP,), and logits are shares (TOP,)
    With groups, their number and E are powers of two.
    Logits are compared as integers of the same order, for which a warp has one instruction; every program selects.
    """
    if ROUTING.mode == GIVEN:
        slot = tl.arange(0, triton.next_power_of_2(ROUTING.top))
        ids = tl.load(beside + slot, mask=slot < ROUTING.top, other=0).to(tl.int32)
        shares = tl.load(logits + slot, mask=slot < ROUTING.top, other=0.0).to(tl.float32)
    else:
        ids, shares = _best(logits, beside, factor, E, ROUTING)
    return ids, shares


@triton.jit
def tokendyno_route(logits, beside, ids, shares, factor, E: tl.constexpr, ROUTING: tl.constexpr, WIDTH: tl.constexpr):
    """Store the ids and shares (T, TOP) of a token in each program. logits (T, WIDTH), E of them of experts."""
    token = tl.program_id(0)
    chosen, share = selected(logits + token * WIDTH, beside, factor, E, ROUTING)
    slot = tl.arange(0, triton.next_power_of_2(ROUTING.top))
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
        num_warps=1,
    )
    return ids, shares
