"""Exchanges between GPUs of one machine: each writes what it has straight into the memory of the others.

A decode step exchanges a few KiB after each half of a layer. NCCL's kernels wait for their predecessor to end and let
their successor wait for them; these are launched early like the products around them, whose weights are loaded
meanwhile. Each word travels together with the number of the exchange, in one store of 8 bytes, so that neither fences
nor flags are needed: who reads waits until the number is the present one.
"""

import functools
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from .parts import can_be_early

DIRECT = True  # False: NCCL exchanges everything
MOST_BYTES = 1 << 19  # of one rank in an exchange: hidden states of a 70B model at batch 32
WORDS: tl.constexpr = tl.constexpr(512)  # of 4 bytes per program
PLACES: tl.constexpr = tl.constexpr(MOST_BYTES // 4)


@triton.jit
def _low(word, KIND: tl.constexpr):
    """float32 of the first number of each word, or of its only one."""
    if KIND.primitive_bitwidth == 32:
        number = word.to(KIND, bitcast=True)
    else:
        number = word.to(tl.int16).to(KIND, bitcast=True).to(tl.float32)
    return number


@triton.jit
def _high(word, KIND: tl.constexpr):
    return (word >> 16).to(tl.int16).to(KIND, bitcast=True).to(tl.float32)


@triton.jit
def _word(low, high, KIND: tl.constexpr):
    """The two numbers, rounded, as one word again."""
    if KIND.primitive_bitwidth == 32:
        word = low.to(tl.int32, bitcast=True)
    else:
        first = low.to(KIND).to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF
        word = first | (high.to(KIND).to(tl.int16, bitcast=True).to(tl.int32) << 16)
    return word


@triton.jit
def _send(own, inboxes, at, here, turn, half, RANK: tl.constexpr, RANKS: tl.constexpr):
    """Put this rank's words into all other inboxes."""
    tagged = (turn.to(tl.int64) << 32) | (own.to(tl.int64) & 0xFFFFFFFF)
    for peer in tl.static_range(RANKS):
        if peer != RANK:
            inbox = tl.load(inboxes + peer).to(tl.pointer_type(tl.int64))
            tl.store(inbox + half + RANK * PLACES + at, tagged, mask=here)


@triton.jit
def _received(place, here, turn):
    """Another rank's words, once they are there."""
    found = tl.load(place, mask=here, other=0, volatile=True)
    while tl.max((here & ((found >> 32).to(tl.int32) != turn)).to(tl.int32), 0) > 0:
        found = tl.load(place, mask=here, other=0, volatile=True)
    return found.to(tl.int32)


@triton.jit
def tokendyno_all_exchange(
    mine,
    out,
    inboxes,
    turns,
    words,
    ids,
    columns,
    ROWS: tl.constexpr,
    KIND: tl.constexpr,
    RANK: tl.constexpr,
    RANKS: tl.constexpr,
    EARLY: tl.constexpr,
):
    """out (words,) = the sum over all ranks of `mine` (words,), of 4 bytes with numbers of type KIND: in float32 and in
    the order of ranks, so that it is the same on each. KIND is None: out (RANKS, words) = what each rank had.

    inboxes  (RANKS,) int64: the address of each rank's inbox, (2, RANKS, PLACES) int64 in its own memory. An exchange
             uses one half of it, the next the other: who is at number n has read n - 1, which the others sent after
             they had read n - 2
    turns    the number of exchanges that each program's words have had on this rank
    ROWS     0; or `mine` is this rank's part of a table, so many rows of `columns` words, of which those with the given
             ids are added up: each rank has 0 in place of rows that others have
    """
    at = tl.program_id(0) * WORDS + tl.arange(0, WORDS)
    here = at < words
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()
    turn = tl.load(turns + tl.program_id(0)) + 1
    half = (turn & 1) * RANKS * PLACES
    if ROWS > 0:
        row = tl.load(ids + at // columns, mask=here, other=0) - RANK * ROWS
        mine += row * columns + at % columns
        own = tl.load(mine, mask=here & (row >= 0) & (row < ROWS), other=0)
    else:
        own = tl.load(mine + at, mask=here, other=0)
    _send(own, inboxes, at, here, turn, half, RANK, RANKS)
    inbox = tl.load(inboxes + RANK).to(tl.pointer_type(tl.int64)) + half
    if KIND is not None:
        low, high = tl.zeros((WORDS,), tl.float32), tl.zeros((WORDS,), tl.float32)
    for peer in tl.static_range(RANKS):
        word = own
        if peer != RANK:
            word = _received(inbox + peer * PLACES + at, here, turn)
        if KIND is None:
            tl.store(out + peer * words + at, word, mask=here)
        else:
            low += _low(word, KIND)
            if KIND.primitive_bitwidth < 32:
                high += _high(word, KIND)
    if KIND is not None:
        tl.store(out + at, _word(low, high, KIND), mask=here)
    tl.store(turns + tl.program_id(0), turn)


@dataclass(frozen=True, slots=True)
class Peers:
    """The inboxes of all ranks, as this one sees them."""

    rank: int
    addresses: torch.Tensor
    turns: torch.Tensor
    inbox: torch.Tensor
    handle: object


@functools.cache
def peers() -> Peers | None:
    """What this process shares with the other ranks' GPUs; None where one of them cannot reach another. All ranks have
    to ask at the same time."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    device = torch.device("cuda", torch.cuda.current_device())
    found = _shared(ranks, rank, device) if _one_machine(ranks, device) else None
    agreed = torch.tensor(int(found is not None), device=device)
    dist.all_reduce(agreed, op=dist.ReduceOp.MIN)  # after it all inboxes are empty
    return found if bool(agreed) else None


def _one_machine(ranks: int, device: torch.device) -> bool:
    """Whether all ranks are here, each with a GPU that this one's reaches."""
    if int(os.environ.get("LOCAL_WORLD_SIZE", "0")) != ranks or torch.cuda.device_count() < ranks:
        return False
    return all(torch.cuda.can_device_access_peer(device.index, i) for i in range(ranks) if i != device.index)


def _shared(ranks: int, rank: int, device: torch.device) -> Peers | None:
    os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")  # nothing here is sent to several GPUs at once
    import torch.distributed._symmetric_memory as symmetric

    try:
        inbox = symmetric.empty(2, ranks, PLACES.value, dtype=torch.int64, device=device)
        handle = symmetric.rendezvous(inbox, dist.group.WORLD.group_name)
    except RuntimeError:
        return None
    inbox.zero_()
    places = [handle.get_buffer(one, inbox.shape, inbox.dtype).data_ptr() for one in range(ranks)]
    turns = torch.zeros(PLACES.value // WORDS.value, dtype=torch.int32, device=device)
    return Peers(rank, torch.tensor(places, device=device), turns, inbox, handle)


def direct(part: torch.Tensor, numbers: int = 0) -> bool:
    """Whether the kernel exchanges this tensor, or so many numbers of it."""
    size = (numbers or part.numel()) * part.element_size()
    fits = part.is_cuda and part.is_contiguous() and size % 4 == 0 and 0 < size <= MOST_BYTES
    return DIRECT and fits and part.dtype in _KINDS and peers() is not None


_KINDS = {torch.bfloat16: tl.bfloat16, torch.float16: tl.float16, torch.float32: tl.float32}


def _exchange(
    part: torch.Tensor,
    out: torch.Tensor,
    words: int,
    kind: object,
    ids: torch.Tensor | None = None,
    columns: int = 1,
    rows: int = 0,
) -> torch.Tensor:
    shared, early = peers(), can_be_early()
    tokendyno_all_exchange[(triton.cdiv(words, WORDS.value),)](
        part.view(-1).view(torch.int32),
        out.view(-1).view(torch.int32),
        shared.addresses,
        shared.turns,
        words,
        ids,
        columns,
        ROWS=rows,
        KIND=kind,
        RANK=shared.rank,
        RANKS=shared.inbox.shape[1],
        EARLY=early,
        launch_pdl=early,
        num_warps=4,
    )
    return out


def _words(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size() // 4


def add_up(part: torch.Tensor) -> torch.Tensor:
    """The sum of all ranks' parts, in place; where `direct`."""
    return _exchange(part, part, _words(part), _KINDS[part.dtype], part)


def looked_up(ids: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Rows of a table of which each rank has as many, (*ids.shape, columns); where the result is `direct`."""
    out = torch.empty(*ids.shape, table.shape[1], dtype=table.dtype, device=table.device)
    return _exchange(table, out, _words(out), _KINDS[table.dtype], ids, _words(table[0]), table.shape[0])


def gather(part: torch.Tensor) -> torch.Tensor:
    """All ranks' parts, one after the other, (ranks, *shape); where `direct`."""
    out = torch.empty(dist.get_world_size(), *part.shape, dtype=part.dtype, device=part.device)
    return _exchange(part, out, _words(part), None)
