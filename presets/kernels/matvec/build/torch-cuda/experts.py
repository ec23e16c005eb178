"""Routed experts of one token: router, gate and up with their activation, down with the weighted sum.

Weights are read once, as they lie in memory: rows of 16 or 32 bits, or the MXFP4 blocks and scales of a gpt-oss
checkpoint. A block is 32 four-bit floats (e2m1, two a byte, the low half first) with one power of two (e8m0). A word
holds eight; tables turn them into bytes (twice their value, plus 12), which are multiplied with 16-bit integers of
the vector, exactly. Each UNIT elements of the vector, 8 or 32, have a unit of their own.

Decoding a word takes about as long as reading it, so both must happen at once. In MXFP4 there are about as many
programs as run at the same time. Each keeps the vector in registers and handles one group of rows after another, which
are copied into shared memory (STAGES) while it or other programs multiply.

A vector is handed from kernel to kernel as PER parts, one for each element of a word of the weights:
  PER 8   codes int32 (4, K / 8): elements 2 j and 2 j + 1 of each word, 16 bits each; unit float32 (K / UNIT,)
  PER 2   unit float32 (2, K / 2): even elements, odd elements
  PER 1   unit float32 (1, K)

Rows of gate and up are taken in turn, gate 0, up 0, gate 1, ...: as they lie in gpt-oss; elsewhere all of gate lies
above up (APART).
"""

import math
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import nn
from transformers.activations import GELUTanh, ReLUSquaredActivation, SiLUActivation
from transformers.integrations import moe
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from . import settings
from .description import Routing
from .parts import can_be_early
from .routing import selected
from .settings import ONCE, Settings

BLOCK: tl.constexpr = tl.constexpr(32)  # weights with one scale
WORDS: tl.constexpr = tl.constexpr(128)  # that a warp reads at once: 16 bytes a lane


class Gate(NamedTuple):
    """(up + more) * gate / (1 + exp(-alpha * (gate + cubic * gate**3))), gate and up clamped by limit; factor: of all
    shares. alpha = 1 is SiLU; twice sqrt(2 / pi) with cubic = 0.044715 is GELU by tanh. squared: no gate, but
    the square of ReLU."""

    limit: float = float("inf")
    alpha: float = 1.0
    more: float = 0.0
    cubic: float = 0.0
    factor: float = 1.0
    squared: float = 0.0


class Cut(NamedTuple):
    """How matrices (E, N, K) are read, R rows at once by each of W warps, PER weights to a word, one unit for UNIT
    elements of the vector; a row has WIDTH words, which take CHUNKS turns. APART: rows of gate, which lie above those
    of up, or 0, where they alternate. Fields alone: Triton 3.8 hands a kernel nothing else."""

    E: int
    N: int
    K: int
    PER: int
    UNIT: int
    R: int
    W: int
    WIDTH: int
    CHUNKS: int
    APART: int
    BIAS: bool
    SQUARED: bool
    STAGES: int
    EARLY: bool


# --- a vector, and its product with words of the weights ------------------------------------------


@triton.jit
def hand_on(vector, first, codes, unit, K: tl.constexpr, PER: tl.constexpr, UNIT: tl.constexpr):
    """Store float32 (W, 8), elements from 8 * `first` on, in the form above; what is past K is left out."""
    word = first + tl.arange(0, vector.shape[0])
    known = word < K // 8
    if PER == 8:
        W: tl.constexpr = vector.shape[0]
        peak = tl.maximum(tl.max(tl.abs(vector), 1), 1e-30)
        if UNIT == 32:
            four = tl.max(tl.reshape(peak, (W // 4, 4)), 1)
            peak = tl.reshape(tl.broadcast_to(four[:, None], (W // 4, 4)), (W,))
        near = vector * (32766 / peak)[:, None] + 12582912.0  # 1.5 * 2**23: rounded, an integer in its low bits
        near = tl.reshape(near.to(tl.int32, bitcast=True) & 0xFFFF, (vector.shape[0], 4, 2))
        pair = tl.sum(near << (tl.arange(0, 2) * 16)[None, None, :], 2)  # (W, 4)
        part = tl.arange(0, 4)
        tl.store(codes + part[None, :] * (K // 8) + word[:, None], pair, mask=known[:, None])
        to = unit + word // (UNIT // 8)  # four words that share a unit store the same
        tl.store(to, peak / 65532, mask=known)  # half: the bytes are twice the weights
    else:
        column = word[:, None] * 8 + tl.arange(0, 8)[None, :]
        tl.store(unit + column % PER * (K // PER) + column // PER, vector, mask=known[:, None])


@triton.jit
def _offset(pairs):
    """-12 times the sum of the eight elements."""
    return tl.inline_asm_elementwise(
        """{
        .reg .b32 t, m;
        mov.b32 m, 0xF4F4F4F4;
        mov.b32 t, 0;
        dp2a.lo.s32.s32 t, $1, m, t;
        dp2a.lo.s32.s32 t, $2, m, t;
        dp2a.lo.s32.s32 t, $3, m, t;
        dp2a.lo.s32.s32 $0, $4, m, t;
        }""",
        "=r,r,r,r,r",
        [pairs[0], pairs[1], pairs[2], pairs[3]],
        dtype=tl.int32,
        is_pure=True,
        pack=1,
    )


@triton.jit
def _dot8(word, pairs, offset, zero):
    """int32: twice the eight floats of each word times eight integers.

    zero   a 0 that the compiler does not know: it would load the tables again for each word
    """
    return tl.inline_asm_elementwise(
        """{
        .reg .b32 n, m, p, q, t;
        and.b32 n, $1, 0x77777777;
        prmt.b32 p, $7, 0x18100C08, $1;
        prmt.b32 q, $8, 0x00040608, n;
        add.u32 p, p, q;
        dp2a.lo.s32.u32 t, $2, p, $6;
        dp2a.hi.s32.u32 t, $3, p, t;
        shr.u32 m, $1, 16;
        shr.u32 n, n, 16;
        prmt.b32 p, $7, 0x18100C08, m;
        prmt.b32 q, $8, 0x00040608, n;
        add.u32 p, p, q;
        dp2a.lo.s32.u32 t, $4, p, t;
        dp2a.hi.s32.u32 $0, $5, p, t;
        }""",
        "=r,r,r,r,r,r,r,r,r",
        [word, pairs[0], pairs[1], pairs[2], pairs[3], offset, zero + 0x06040200, zero + 0x090A0B0C],
        dtype=tl.int32,
        is_pure=True,
        pack=1,
    )


@triton.jit
def words_of(w, line, inside, CUT: tl.constexpr):
    """All words of R rows of each warp, as CHUNKS * R tensors (W, 128).

    line, inside   the first of the rows (W,), the others follow, or each second lies APART below; whether they exist
    Shapes are such that every version of Triton gives a row to a warp, and 16 bytes at once to a lane.
    """
    CHUNKS: tl.constexpr = CUT.CHUNKS
    R: tl.constexpr = CUT.R
    words = ()
    for chunk in tl.static_range(CHUNKS):
        place = tl.arange(0, WORDS) + chunk * WORDS
        for row in tl.static_range(R):
            after = row // 2 + row % 2 * CUT.APART if CUT.APART > 0 else row
            at = w + (line + after)[:, None] * CUT.WIDTH + place[None, :]
            valid = inside[:, None] & (place < CUT.WIDTH)[None, :]
            words += (tl.load(at, mask=valid, other=0, eviction_policy="evict_first"),)
    return words


@triton.jit
def scales_of(scales, line, inside, CUT: tl.constexpr):
    """Their scales, of MXFP4: CHUNKS * R tensors (W, 32)."""
    CHUNKS: tl.constexpr = CUT.CHUNKS
    R: tl.constexpr = CUT.R
    powers = ()
    if CUT.PER == 8:
        for chunk in tl.static_range(CHUNKS):
            group = tl.arange(0, WORDS // 4) + chunk * (WORDS // 4)
            for row in tl.static_range(R):
                there = scales + (line + row)[:, None] * (CUT.WIDTH // 4) + group[None, :]
                known = inside[:, None] & (group < CUT.WIDTH // 4)[None, :]
                powers += (tl.load(there, mask=known, other=0),)
    return powers


@triton.jit
def vector_of(codes, unit, codes_at, unit_at, CUT: tl.constexpr):
    """What is kept in registers, for all rows, of vectors that begin at codes_at and unit_at (W,): of MXFP4 six tensors
    for each chunk, its units, the four parts of its codes, and their offsets; else nothing."""
    CHUNKS: tl.constexpr = CUT.CHUNKS
    found = ()
    if CUT.PER == 8:
        for chunk in tl.static_range(CHUNKS):
            place = (tl.arange(0, WORDS) + chunk * WORDS)[None, :]
            known = (place < CUT.WIDTH) & (codes_at >= 0)[:, None]
            if CUT.UNIT == 32:
                group = (tl.arange(0, WORDS // 4) + chunk * (WORDS // 4))[None, :]
                there = (group < CUT.WIDTH // 4) & (codes_at >= 0)[:, None]
                found += (tl.load(unit + unit_at[:, None] + group, mask=there, other=0.0),)
            else:
                found += (tl.load(unit + unit_at[:, None] + place, mask=known, other=0.0),)
            pairs = ()
            for part in tl.static_range(4):
                pairs += (tl.load(codes + codes_at[:, None] + part * CUT.WIDTH + place, mask=known, other=0),)
            found += pairs
            found += (_offset(pairs),)
    return found


@triton.jit
def multiplied(words, powers, vector, unit, unit_at, zero, kind, CUT: tl.constexpr):
    """(W, R) of words times vectors, which in MXFP4 `vector_of` has loaded, and else begin at unit_at (W,)."""
    CHUNKS: tl.constexpr = CUT.CHUNKS
    R: tl.constexpr = CUT.R
    W: tl.constexpr = CUT.W
    totals = ()
    for _ in tl.static_range(R):
        totals += (tl.zeros((W, WORDS // 4), tl.float32),)
    for chunk in tl.static_range(CHUNKS):
        if CUT.PER == 8:
            first = vector[6 * chunk]
            second = first
            pairs = (vector[6 * chunk + 1], vector[6 * chunk + 2], vector[6 * chunk + 3], vector[6 * chunk + 4])
            offset = vector[6 * chunk + 5]
        else:
            place = (tl.arange(0, WORDS) + chunk * WORDS)[None, :]
            known = (place < CUT.WIDTH) & (unit_at >= 0)[:, None]
            first = tl.load(unit + unit_at[:, None] + place, mask=known, other=0.0)
            second = first
            pairs = ()
            offset = place
            if CUT.PER == 2:
                second = tl.load(unit + unit_at[:, None] + CUT.WIDTH + place, mask=known, other=0.0)
        further = ()
        for row in tl.static_range(R):
            word = words[chunk * R + row]
            if CUT.PER == 8:
                exact = _dot8(word, pairs, offset, zero)
                power = (powers[chunk * R + row].to(tl.int32) << 23).to(tl.float32, bitcast=True)
                if CUT.UNIT == 32:
                    part = tl.sum(tl.reshape(exact, (W, WORDS // 4, 4)), 2).to(tl.float32) * (first * power)
                else:
                    part = tl.sum(tl.reshape(exact.to(tl.float32) * first, (W, WORDS // 4, 4)), 2) * power
            elif CUT.PER == 2:
                even = (word & 0xFFFF).to(tl.int16).to(kind, bitcast=True).to(tl.float32)
                odd = (word >> 16).to(tl.int16).to(kind, bitcast=True).to(tl.float32)
                part = tl.sum(tl.reshape(even * first + odd * second, (W, WORDS // 4, 4)), 2)
            else:
                part = tl.sum(tl.reshape(word.to(tl.float32, bitcast=True) * first, (W, WORDS // 4, 4)), 2)
            further += (totals[row] + part,)
        totals = further
    column = tl.arange(0, R)[None, :]
    whole = tl.zeros((W, R), tl.float32)
    for row in tl.static_range(R):
        whole = tl.where(column == row, tl.sum(totals[row], 1)[:, None], whole)
    return whole


@triton.jit
def gated(gate, up, curve):
    """What `Gate` says of two activations; curve: of its numbers limit, alpha, more and cubic."""
    limit, alpha, more, cubic = curve
    gate = tl.minimum(gate, limit)
    up = tl.minimum(tl.maximum(up, -limit), limit)
    return (up + more) * gate / (1 + tl.exp(-gate * alpha * (1 + cubic * gate * gate)))


@triton.jit
def tokendyno_router(
    given,
    eps,
    E: tl.constexpr,
    K: tl.constexpr,
    PER: tl.constexpr,
    BIAS: tl.constexpr,
    EXTRA: tl.constexpr,
    OFFSET: tl.constexpr,
    EARLY: tl.constexpr,
):
    """logits (T, E) = norm(x) (T, K) @ w (E, K).T + bias, a program each; one more for each token hands on norm(x).

    EXTRA   logits are (T, E + 1), the last of them of the row `extra`
    OFFSET  is added to the weights of the norm
    """
    x, norm, w, bias, extra, logits, codes, unit = given
    BK: tl.constexpr = triton.next_power_of_2(K)
    row, token = tl.program_id(0), tl.program_id(1)
    x += token * K
    logits += token * (E + EXTRA)
    unit += token * K  # codes: of a single token alone
    if EARLY:
        gdc_launch_dependents()
    if row < E + EXTRA:
        column = tl.arange(0, BK)
        here = column < K
        line = w + row * K
        if EXTRA:
            line = tl.where(row < E, line, extra)
        weights = tl.load(line + column, mask=here, other=0.0).to(tl.float32)
        weights *= tl.load(norm + column, mask=here, other=0.0).to(tl.float32) + OFFSET
        constant = 0.0
        if BIAS:
            constant = tl.load(bias + row, mask=row < E, other=0.0).to(tl.float32)
        if EARLY:
            gdc_wait()
        plain = tl.load(x + column, mask=here, other=0.0).to(tl.float32)
        shrink = tl.rsqrt(tl.sum(plain * plain, 0) / K + eps)
        tl.store(logits + row, tl.sum(plain * weights, 0) * shrink + constant)
    else:
        eight = tl.arange(0, BK // 8)[:, None] * 8 + tl.arange(0, 8)[None, :]
        learned = tl.load(norm + eight, mask=eight < K, other=0.0).to(tl.float32) + OFFSET
        if EARLY:
            gdc_wait()
        vector = tl.load(x + eight, mask=eight < K, other=0.0).to(tl.float32)
        squares = tl.sum(tl.sum(vector * vector, 1), 0)
        hand_on(vector * learned * tl.rsqrt(squares / K + eps), 0, codes, unit, K, PER, BLOCK)


@triton.jit
def tokendyno_experts_up(
    handed, choice, part, found, curve, ROUTING: tl.constexpr, CUT: tl.constexpr, UNIT_OUT: tl.constexpr
):
    """For the expert in each slot (axis 1 of the grid), its N rows of gate and up, R * W at once: N / 2 activations; if
    SQUARED, N rows of up alone.

    handed   a vector: codes, unit; found: the same of the activations, a vector for each slot
    choice   logits, beside: see `selected`
    part     w int32 (E, N, K / PER), scales uint8 (E, N, K / 32), bias (E, N)
    """
    codes, unit = handed
    w, scales, bias = part
    codes_out, unit_out = found
    N: tl.constexpr = CUT.N
    R: tl.constexpr = CUT.R
    W: tl.constexpr = CUT.W
    if CUT.EARLY:
        gdc_wait()
    slot = tl.program_id(1)
    number, _ = selected(choice[0], choice[1], 1.0, tl.zeros((W,), tl.int32) + slot, CUT.E, ROUTING)  # of each warp
    expert = number.to(tl.int64)
    if CUT.EARLY and CUT.STAGES > 1:  # only now: the dependent reads the logits before it waits
        gdc_launch_dependents()
    H: tl.constexpr = N if CUT.SQUARED else N // 2
    each: tl.constexpr = R * W // (8 if CUT.SQUARED else 16)
    units: tl.constexpr = H // UNIT_OUT if CUT.PER == 8 else H
    start = tl.zeros((W,), tl.int32)
    begin = tl.program_id(0) * (R * W) + tl.arange(0, W) * R  # N is a multiple of R
    vector = vector_of(codes, unit, start, start, CUT)
    powers = scales_of(scales, expert * N + begin, begin < N, CUT)
    for tile in tl.range(tl.program_id(0), tl.cdiv(N, R * W), tl.num_programs(0), num_stages=CUT.STAGES):
        first = tile * (R * W) + tl.arange(0, W) * R
        line = expert * N + (first // 2 if CUT.APART > 0 else first)
        words = words_of(w, line, first < N, CUT)
        if CUT.EARLY and CUT.STAGES == 1:  # keeps all loads in front of what uses the first
            gdc_launch_dependents()
        rows = first[:, None] + tl.arange(0, R)[None, :]
        constant = tl.zeros((W, R), tl.float32)
        if CUT.BIAS:
            constant = tl.load(bias + expert[:, None] * N + rows, mask=rows < N, other=0.0).to(tl.float32)
        later = first + tl.num_programs(0) * (R * W)
        further = scales_of(scales, expert * N + later, later < N, CUT)
        zero = (number >> 20)[:, None]
        total = multiplied(words, powers, vector, unit, start, zero, bias.dtype.element_ty, CUT)
        powers = further
        if CUT.SQUARED:
            result = tl.maximum(total, 0.0) * total
        else:
            gate, up = tl.split(tl.reshape(total + constant, (R * W // 2, 2)))
            result = gated(gate, up, curve)
        result = tl.reshape(result, (each, 8))
        hand_on(result, tile * each, codes_out + slot * (H // 2), unit_out + slot * units, H, CUT.PER, UNIT_OUT)


@triton.jit
def tokendyno_experts_down(
    handed,
    choice,
    part,
    residual,
    shared,
    out,
    factor,
    ROUTING: tl.constexpr,
    CUT: tl.constexpr,
    RESIDUAL: tl.constexpr,
    SHARED: tl.constexpr,
):
    """out (N,) = residual + the sum over slots of share * (w of its expert (N, K) @ its activations (K,) + bias).

    SHARED  shared (N,), times the sigmoid of the logit after those of experts, is added too
    W / TOPP of the warps handle the expert of one slot.
    """
    codes, unit = handed
    logits, beside = choice
    w, scales, bias = part
    N: tl.constexpr = CUT.N
    R: tl.constexpr = CUT.R
    W: tl.constexpr = CUT.W
    CHUNKS: tl.constexpr = CUT.CHUNKS
    if CUT.EARLY:
        gdc_launch_dependents()
    TOPP: tl.constexpr = triton.next_power_of_2(ROUTING.top)
    each: tl.constexpr = W // TOPP
    warp = tl.arange(0, W)
    slot = warp // each
    number, share = selected(logits, beside, factor, slot, CUT.E, ROUTING)
    expert = number.to(tl.int64)
    start = tl.where(slot < ROUTING.top, slot, 0)
    units: tl.constexpr = CUT.K // CUT.UNIT if CUT.PER == 8 else CUT.K
    begin = tl.program_id(0)
    first = begin * (R * each) + (warp % each) * R  # N is a multiple of R
    powers = scales_of(scales, expert * N + first, (first < N) & (slot < ROUTING.top), CUT)
    vector = ()
    if CUT.PER == 8:
        for _ in tl.static_range(CHUNKS):
            vector += (tl.zeros((W, WORDS // 4 if CUT.UNIT == 32 else WORDS), tl.float32),)
            for _ in tl.static_range(5):
                vector += (tl.zeros((W, WORDS), tl.int32),)
    for tile in tl.range(begin, tl.cdiv(N, R * each), tl.num_programs(0), num_stages=CUT.STAGES):
        first = tile * (R * each) + (warp % each) * R
        words = words_of(w, expert * N + first, (first < N) & (slot < ROUTING.top), CUT)
        rows = first[:, None] + tl.arange(0, R)[None, :]  # (W, R)
        inside = (rows < N) & (slot < ROUTING.top)[:, None]
        constant = tl.zeros((W, R), tl.float32)
        if CUT.BIAS:
            constant = tl.load(bias + expert[:, None] * N + rows, mask=inside, other=0.0).to(tl.float32)
        if tile == begin:
            if CUT.EARLY:
                gdc_wait()
            vector = vector_of(codes, unit, start * (CUT.K // 2), start * units, CUT)
        later = first + tl.num_programs(0) * (R * each)
        further = scales_of(scales, expert * N + later, (later < N) & (slot < ROUTING.top), CUT)
        zero = (number >> 20)[:, None]
        total = multiplied(words, powers, vector, unit, start * units, zero, bias.dtype.element_ty, CUT)
        powers = further
        weighted = tl.where(inside, (total + constant) * share[:, None], 0.0)
        whole = tl.sum(tl.reshape(weighted, (TOPP, each * R)), 0)
        to = tile * (R * each) + tl.arange(0, each * R)
        if RESIDUAL:
            whole += tl.load(residual + to, mask=to < N, other=0.0).to(tl.float32)
        if SHARED:
            opened = 1 / (1 + tl.exp(-tl.load(logits + CUT.E)))
            whole += opened * tl.load(shared + to, mask=to < N, other=0.0).to(tl.float32)
        tl.store(out + to, whole.to(out.dtype.element_ty), mask=to < N)


def per_word(weight: torch.Tensor) -> int:
    """Weights in a word of 32 bits; MXFP4 blocks are bytes."""
    return 8 if weight.dtype == torch.uint8 else 4 // weight.element_size()


def sizes(weight: torch.Tensor) -> tuple[int, int, int]:
    """(experts, rows, columns) of blocks (E, N, K / 32, 16), or of (E, N, K)."""
    experts, rows, columns = weight.shape[:3]
    return experts, rows, columns * BLOCK.value if weight.dtype == torch.uint8 else columns


Part = tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]
"""A matrix of every expert, rows one after the other: its weight, its scales in MXFP4, its bias."""


def of(module: nn.Module) -> tuple[Part, Part] | None:
    """Gate and up, and down, of a module with experts; None if the kernels do not support them."""
    if hasattr(module, "gate_up_proj_blocks"):
        up = module.gate_up_proj_blocks, module.gate_up_proj_scales, module.gate_up_proj_bias
        down = module.down_proj_blocks, module.down_proj_scales, module.down_proj_bias
    elif hasattr(module, "limit") and module.is_transposed:  # gpt-oss: (E, in, out), laid out by rows
        up = module.gate_up_proj.transpose(1, 2), None, module.gate_up_proj_bias
        down = module.down_proj.transpose(1, 2), None, module.down_proj_bias
    elif joined(module):
        first = module.gate_up_proj if module.has_gate else module.up_proj
        up, down = (first, None, None), (module.down_proj, None, None)
    else:
        return None
    return (up, down) if fits(up[0]) and fits(down[0]) else None


def joined(module: nn.Module) -> bool:
    """Whether its experts are as most mixtures have them: gate above up, SiLU or GELU, no biases; or as Nemotron-H has
    them, up alone and the square of ReLU."""
    if not getattr(module, "is_concatenated", False) or module.is_transposed:
        return False
    plain = not module.has_bias and not module.has_post_expert_norm
    if not module.has_gate:
        return plain and type(module.act_fn) is ReLUSquaredActivation
    known = type(module.act_fn) in (nn.SiLU, SiLUActivation, GELUTanh) or module.act_fn is nn.functional.silu
    return plain and known and type(module)._apply_gate is moe._default_apply_gate


def gate_of(module: nn.Module, factor: float = 1.0) -> Gate:
    """What its experts compute between their two products."""
    if joined(module) and not module.has_gate:
        return Gate(factor=factor, squared=1.0)
    if joined(module):
        gelu = {"alpha": 2 * math.sqrt(2 / math.pi), "cubic": 0.044715} if type(module.act_fn) is GELUTanh else {}
        return Gate(factor=factor, **gelu)
    return Gate(float(module.limit), float(module.alpha), 1.0, factor=factor)


def fits(weight: torch.Tensor) -> bool:
    """Whether the kernels support this matrix: whole words, rows one after the other."""
    columns = sizes(weight)[2]
    known = weight.dtype in (torch.uint8, torch.bfloat16, torch.float16, torch.float32)
    return known and weight.is_contiguous() and columns % (4 * per_word(weight)) == 0 and columns % 8 == 0


def buffers(rows: int, columns: int, per: int, share: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Room for `rows` vectors: (codes, unit). share: elements with one unit."""
    unit = torch.empty(rows, columns // share if per == 8 else columns, dtype=torch.float32, device=device)
    return torch.empty(rows, columns // 2, dtype=torch.int32, device=device) if per == 8 else unit, unit


def router(
    x: torch.Tensor,
    norm: torch.Tensor,
    eps: float,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    per: int,
    extra: torch.Tensor | None = None,
    offset: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x (K,), weight (E, K) -> logits (E,) float32, and norm(x) as (codes, unit). Of x (T, K),
    logits (T, E), and norm(x) twice, as it is. extra: (1, K), a shared expert's gate, whose logit is the last; offset:
    of the norm's weights."""
    experts, columns = weight.shape
    tokens, early = x.shape[0] if x.ndim > 1 else 1, can_be_early()
    rows = experts + (extra is not None)
    logits = torch.empty(*x.shape[:-1], rows, dtype=torch.float32, device=x.device)
    if x.ndim > 1:
        codes = unit = torch.empty_like(x)
        per = 1
    else:
        codes, unit = buffers(1, columns, per, BLOCK.value, x.device)
    tokendyno_router[(rows + 1, tokens)](
        (x, norm, weight, *(weight if one is None else one for one in (bias, extra)), logits, codes, unit),
        eps,
        E=experts,
        K=columns,
        PER=per,
        BIAS=bias is not None,
        EXTRA=extra is not None,
        OFFSET=offset,
        EARLY=early,
        launch_pdl=early,
        num_warps=8,
    )
    return logits, codes, unit


def up(
    codes: torch.Tensor,
    unit: torch.Tensor,
    logits: torch.Tensor,
    part: Part,
    routing: Routing,
    gate: Gate,
    beside: torch.Tensor | None = None,
    tuned: Settings | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The activations of the chosen experts, as (codes, unit). logits, beside: see `selected`. Gate and up alternate
    where there are biases."""
    (_, rows, columns), per = sizes(part[0]), per_word(part[0])
    how = dict(tuned or settings.for_experts(per, rows, columns, False, routing.top))
    unit_out = BLOCK.value if how["R"] * how["num_warps"] % (2 * BLOCK.value) == 0 else 8
    found = buffers(routing.top, rows if gate.squared else rows // 2, per, unit_out, unit.device)
    programs = min(how.pop("CTAS", ONCE), triton.cdiv(rows, how["R"] * how["num_warps"]))
    apart = 0 if part[2] is not None or gate.squared else rows // 2
    tokendyno_experts_up[(programs, routing.top)](
        *_given((codes, unit), logits, beside, part),
        found,
        gate[:4],
        UNIT_OUT=unit_out,
        **_constants(part, routing, unit, how, apart, gate.squared > 0),
    )
    return found


def down(
    codes: torch.Tensor,
    unit: torch.Tensor,
    logits: torch.Tensor,
    part: Part,
    routing: Routing,
    gate: Gate,
    residual: torch.Tensor | None,
    out: torch.Tensor,
    beside: torch.Tensor | None = None,
    shared: torch.Tensor | None = None,
    tuned: Settings | None = None,
) -> None:
    """Write residual + the weighted sum of the chosen experts into `out` (N,). shared: (N,), of a shared expert whose
    gate is the last of the logits."""
    (_, rows, columns), per = sizes(part[0]), per_word(part[0])
    how = dict(tuned or settings.for_experts(per, rows, columns, True, routing.top))
    each = how["num_warps"] // triton.next_power_of_2(routing.top)
    programs = min(how.pop("CTAS", ONCE), triton.cdiv(rows, how["R"] * each))
    tokendyno_experts_down[(programs,)](
        *_given((codes, unit), logits, beside, part),
        out if residual is None else residual,
        out if shared is None else shared,
        out,
        gate.factor,
        RESIDUAL=residual is not None,
        SHARED=shared is not None,
        **_constants(part, routing, unit, how),
    )


def _given(handed: tuple, logits: torch.Tensor, beside: torch.Tensor | None, part: Part) -> tuple[tuple, tuple, tuple]:
    """What both kernels get first: where there is nothing, something that is not read."""
    weight, scales, bias = part
    choice = logits, logits if beside is None else beside
    return handed, choice, (weight.view(torch.int32), *(weight if one is None else one for one in (scales, bias)))


def _constants(
    part: Part, routing: Routing, unit: torch.Tensor, how: Settings, apart: int = 0, squared: bool = False
) -> dict[str, object]:
    (experts, rows, columns), per, early = sizes(part[0]), per_word(part[0]), can_be_early()
    width = columns // per
    cut = Cut(
        E=experts,
        N=rows,
        K=columns,
        PER=per,
        UNIT=columns // unit.shape[1],
        R=how["R"],
        W=how["num_warps"],
        WIDTH=width,
        CHUNKS=triton.cdiv(width, WORDS.value),
        APART=apart,
        BIAS=part[2] is not None,
        SQUARED=squared,
        STAGES=how["STAGES"],
        EARLY=early,
    )
    return {"ROUTING": routing, "CUT": cut, "launch_pdl": early, "num_warps": how["num_warps"]}
