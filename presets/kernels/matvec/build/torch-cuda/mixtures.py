"""Routed experts of several tokens, on tensor cores: each program multiplies the tokens of one expert with some rows.

Weights are read as in `experts`, MXFP4 in its blocks. Nothing waits for the host, so that a step can be captured.
"""

import torch
import triton
import triton.language as tl

from . import experts, settings
from .description import GIVEN, Routing
from .experts import Gate, Part, gated, sizes

TWICE: tl.constexpr = tl.constexpr(-0x379BCDF0)  # 0xC8643210: twice the magnitudes 0, 0.5, 1, 1.5, 2, 3, 4, 6
UNSORTED = 256  # pairs of token and expert up to which each program looks for those of its expert


def _decode() -> str:
    """PTX: $0, $1 and $2, $3 = bfloat16 of the low and of the high halves of four bytes, times the factors $5, $6.

    The bits of a four-bit float, put at the right places, are a bfloat16 of 2**-126 times its value.
    """
    lines = [".reg .b32 t, u, v, z;", "mov.b32 z, 0x80008000;"]
    for two, places in ((0, "0x1404"), (1, "0x3424")):  # two bytes, each in the upper half of 16 bits
        lines.append(f"prmt.b32 t, $4, 0, {places};")
        for found, shift in ((two, "shl.b32 u, t, 4;"), (2 + two, "mov.b32 u, t;")):
            lines += [shift, "and.b32 u, u, 0xF000F000;", "shr.u32 v, u, 6;"]
            lines.append("lop3.b32 u, u, v, 0x81C081C0, 0xA8;")  # (u | v) & mask
            lines.append(f"fma.rn.bf16x2 ${found}, u, ${5 + two}, z;")
    return "{ " + " ".join(lines) + " }"


DECODE: tl.constexpr = tl.constexpr(_decode())
SMALLER: tl.constexpr = tl.constexpr(2.0**-63)  # decoded weights are smaller by this, so that all factors are floats


@triton.jit
def _powers(scales, first, rows, k, N: tl.constexpr, K: tl.constexpr, BK: tl.constexpr, PACKED: tl.constexpr):
    """(BN, BK / 32) scales of columns from k on; of dense weights, something."""
    power = rows[:, None]
    if PACKED:
        group = k // 32 + tl.arange(0, BK // 32)
        there = (rows < N)[:, None] & (group < K // 32)[None, :]
        power = tl.load(scales + (first + rows)[:, None] * (K // 32) + group[None, :], mask=there, other=0).to(tl.int32)
    return power


@triton.jit
def _tile(
    w, power, line, rows, k, N: tl.constexpr, K: tl.constexpr, BK: tl.constexpr, kind: tl.constexpr, ASM: tl.constexpr
):
    """(BN, BK) of an expert's matrix, of `rows` (BN,), which begin at `line`, and columns from k on, in whole blocks;
    decoded by ASM, SMALLER times it."""
    BN: tl.constexpr = rows.shape[0]
    if w.dtype.element_ty == tl.uint8:
        place = k // 2 + tl.arange(0, BK // 2)
        known = (rows < N)[:, None] & (place < K // 2)[None, :]
        codes = tl.load(w + line[:, None] * (K // 2) + place[None, :], mask=known, other=0)
        if ASM:
            factor = tl.minimum(power + 63, 254) << 7
            factor = tl.broadcast_to(factor.to(tl.int16)[:, :, None], (BN, BK // 32, 16))
            factor = tl.reshape(factor, (BN, BK // 2))
            low, high = tl.inline_asm_elementwise(
                DECODE, "=&r,=&r,=&r,=&r,r,r,r", [codes, factor], dtype=(tl.bfloat16, tl.bfloat16), is_pure=True, pack=4
            )
            tile = tl.reshape(tl.join(low, high), (BN, BK))
        else:
            codes = codes.to(tl.int32)
            both = tl.reshape(tl.join(codes & 15, codes >> 4), (BN, BK // 32, 32))
            twice = (TWICE >> (4 * (both & 7))) & 15
            twice = tl.where((both & 8) == 0, twice, -twice).to(tl.float32)
            scale = (power << 23).to(tl.float32, bitcast=True) * 0.5
            tile = tl.reshape(twice * scale[:, :, None], (BN, BK)).to(kind)
    else:
        columns = k + tl.arange(0, BK)
        known = (rows < N)[:, None] & (columns < K)[None, :]
        tile = tl.load(w + line[:, None] * K + columns[None, :], mask=known, other=0.0)
    return tile


@triton.jit
def tokendyno_experts_tiles(
    x,
    part,
    routed,
    out,
    pairs,
    curve,
    K: tl.constexpr,
    N: tl.constexpr,
    PER_TOKEN: tl.constexpr,
    PAIRS: tl.constexpr,
    BY_PAIR: tl.constexpr,
    BT: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    UP: tl.constexpr,
    BIAS: tl.constexpr,
    APART: tl.constexpr,
    SQUARED: tl.constexpr,
    TURNED: tl.constexpr,
    ASM: tl.constexpr,
):
    """A program handles BN of the N rows of one expert, for all (token, slot) pairs routed to it, BT at a time.

    routed  order, begins, shares:
    order   pairs, sorted by expert; those of expert e begin at begins[e]. Or, of at most PAIRS, a power of two, the
            expert of each of the `pairs`; BY_PAIR: there is a program for each pair, idle where an earlier one has its
            expert, not for each expert
    x       (tokens, K) if UP, else (pairs, K); shares: (pairs,)
    out     (pairs, N / 2) activations if UP, (pairs, N) if SQUARED too; else (pairs, N), each times its share
    APART   rows of gate, which lie above those of up, or 0, where they alternate
    TURNED  rows of weights, not tokens, are the rows of the product; ASM: weights are decoded in bfloat16
    """
    w, scales, bias = part
    PACKED: tl.constexpr = w.dtype.element_ty == tl.uint8
    order, begins, shares = routed
    expert = tl.program_id(1)
    if PAIRS > 0:
        every = tl.arange(0, PAIRS)
        experts = tl.load(order + every, mask=every < pairs, other=-1).to(tl.int32)
        if BY_PAIR:
            expert = tl.load(order + tl.program_id(1)).to(tl.int32)
        mine = (experts == expert).to(tl.int32)
        begin, end = 0, tl.sum(mine, 0)
        if BY_PAIR:
            end = tl.where(tl.sum(tl.where(every < tl.program_id(1), mine, 0), 0) == 0, end, 0)
        rank = tl.cumsum(mine, 0) - 1
    else:
        begin, end = tl.load(begins + expert), tl.load(begins + expert + 1)
    rows = tl.program_id(0) * BN + tl.arange(0, BN)
    first = expert.to(tl.int64) * N
    line = first + (rows // 2 + rows % 2 * APART if APART > 0 else rows)
    constant = tl.zeros((BN,), tl.float32)
    if BIAS:
        constant = tl.load(bias + first + rows, mask=rows < N, other=0.0).to(tl.float32)
    for t in tl.range(begin, end, BT):
        at = t + tl.arange(0, BT)
        if PAIRS > 0:
            found = (mine == 1)[:, None] & (rank[:, None] == at[None, :])
            pair = tl.sum(tl.where(found, every[:, None], 0), 0)
        else:
            pair = tl.load(order + at, mask=at < end, other=0)
        source = (pair // PER_TOKEN if UP else pair).to(tl.int64)
        total = tl.zeros((BN, BT) if TURNED else (BT, BN), tl.float32)
        power = _powers(scales, first, rows, 0, N, K, BK, PACKED)
        for k in tl.range(0, K, BK):
            columns = k + tl.arange(0, BK)
            known = (at < end)[:, None] & (columns < K)[None, :]
            vectors = tl.load(x + source[:, None] * K + columns[None, :], mask=known, other=0.0)
            weights = _tile(w, power, line, rows, k, N, K, BK, x.dtype.element_ty, ASM)
            power = _powers(scales, first, rows, k + BK, N, K, BK, PACKED)  # single bytes are not copied ahead
            if TURNED:
                total = tl.dot(weights, tl.trans(vectors), total, input_precision="ieee")
            else:
                total = tl.dot(vectors, tl.trans(weights), total, input_precision="ieee")
        if TURNED:
            total = tl.trans(total)
        if PACKED and ASM:
            total *= 1 / SMALLER
        total += constant[None, :]
        if UP and SQUARED:
            to = out + pair.to(tl.int64)[:, None] * N + rows[None, :]
            total = tl.maximum(total, 0.0) * total
            tl.store(to, total.to(out.dtype.element_ty), mask=(at < end)[:, None] & (rows < N)[None, :])
        elif UP:
            gate, up = tl.split(tl.reshape(total, (BT, BN // 2, 2)))
            result = gated(gate, up, curve)
            place = tl.program_id(0) * (BN // 2) + tl.arange(0, BN // 2)
            to = out + pair.to(tl.int64)[:, None] * (N // 2) + place[None, :]
            tl.store(to, result.to(out.dtype.element_ty), mask=(at < end)[:, None] & (place < N // 2)[None, :])
        else:
            share = tl.load(shares + pair, mask=at < end, other=0.0).to(tl.float32)
            to = out + pair.to(tl.int64)[:, None] * N + rows[None, :]
            tl.store(
                to, (total * share[:, None]).to(out.dtype.element_ty), mask=(at < end)[:, None] & (rows < N)[None, :]
            )


@triton.jit
def tokendyno_sum_of_experts(
    each,
    residual,
    shared,
    logits,
    out,
    K,
    WIDTH,
    TOP: tl.constexpr,
    RESIDUAL: tl.constexpr,
    SHARED: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """out (T, K) = residual + the sum of each token's TOP rows of `each` (T * TOP, K). SHARED: shared (T, K), times the
    sigmoid of the last of a token's WIDTH logits, is added too."""
    token, columns = tl.program_id(1).to(tl.int64), tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    here = columns < K
    total = tl.zeros((COLUMNS,), tl.float32)
    for slot in tl.static_range(TOP):
        total += tl.load(each + (token * TOP + slot) * K + columns, mask=here, other=0.0)
    if RESIDUAL:
        total += tl.load(residual + token * K + columns, mask=here, other=0.0).to(tl.float32)
    if SHARED:
        opened = 1 / (1 + tl.exp(-tl.load(logits + token * WIDTH + WIDTH - 1)))
        total += opened * tl.load(shared + token * K + columns, mask=here, other=0.0).to(tl.float32)
    tl.store(out + token * K + columns, total.to(out.dtype.element_ty), mask=here)


def compute(
    module: torch.nn.Module, x: torch.Tensor, chosen: torch.Tensor, shares: torch.Tensor, **more: object
) -> torch.Tensor:
    """What transformers calls as the implementation of a module's experts; ValueError where `experts.of` has none."""
    parts = experts.of(module)
    if parts is None:
        raise ValueError("These experts are not laid out by rows of whole words, or have an activation of their own.")
    weights, scales, biases = (list(one) for one in zip(*parts, strict=True))
    gate = list(experts.gate_of(module))
    return mixture(x, chosen, shares, weights, scales, biases, gate, module._is_expert_parallel)


@torch.library.custom_op("tokendyno_experts::mixture", mutates_args=())
def mixture(
    x: torch.Tensor,
    chosen: torch.Tensor,
    shares: torch.Tensor,
    weights: list[torch.Tensor],
    scales: list[torch.Tensor | None],
    biases: list[torch.Tensor | None],
    gate: list[float],
    some: bool = False,
) -> torch.Tensor:
    """x (T, K), experts chosen (T, TOP) and their shares -> (T, K). Matrices: gate and up, down; gate: `Gate`.

    some   other ranks have the other experts: a number past the last of these stands for one of them, and counts as 0
    """
    up, down = zip(weights, scales, biases, strict=True)
    if len(x) == 1 and experts.per_word(weights[0]) < 8 and not some:
        return one_token(x.contiguous(), chosen, shares, up, down, Gate(*gate))
    return forward(x.contiguous(), chosen, shares, up, down, Gate(*gate), some=some)


@mixture.register_fake
def _(x, chosen, shares, weights, scales, biases, gate, some=False):
    return x.new_empty(x.shape)


def one_token(
    x: torch.Tensor, chosen: torch.Tensor, shares: torch.Tensor, up: Part, down: Part, gate: Gate
) -> torch.Tensor:
    """The same for x (1, K) and dense experts, by the kernels of `experts`."""
    per, columns = experts.per_word(up[0]), x.shape[1]
    vector = torch.empty(per, columns // per, dtype=torch.float32, device=x.device)
    vector.copy_(x.view(-1, per).t())
    routing, out = Routing(chosen.shape[1], GIVEN), torch.empty_like(x)
    unit = vector.view(1, columns)
    middle = experts.up(unit, unit, shares, up, routing, gate, chosen)
    experts.down(*middle, shares, down, routing, gate, None, out, chosen)
    return out


def forward(
    x: torch.Tensor,
    chosen: torch.Tensor,
    shares: torch.Tensor,
    up: Part,
    down: Part,
    gate: Gate,
    residual: torch.Tensor | None = None,
    some: bool = False,
    unsorted: int | None = None,
    shared: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> torch.Tensor:
    """The same for parts as `experts.of` returns them, added to `residual`. unsorted: as UNSORTED. shared: of a shared
    expert that has a gate, (T, K) and the logits, of which its gate's is the last."""
    tokens, top = chosen.shape
    number, wide, columns = sizes(up[0])
    inner = wide if gate.squared else wide // 2
    few = not some and tokens * top <= (UNSORTED if unsorted is None else unsorted)
    order = begins = chosen.contiguous()
    if not few:
        pairs, order = chosen.flatten().sort(stable=True)
        begins = torch.searchsorted(pairs, torch.arange(number + 1, device=x.device, dtype=pairs.dtype)).int()
    middle = torch.empty(tokens * top, inner, dtype=x.dtype, device=x.device)
    new = torch.zeros if some else torch.empty
    each = new(tokens * top, columns, dtype=torch.float32, device=x.device)
    how = settings.for_mixtures(tokens, number, top, x.element_size(), up[1] is not None)
    for part, source, out, rows, width in ((up, x, middle, wide, columns), (down, middle, each, columns, inner)):
        weight, scales, bias = part
        tokendyno_experts_tiles[(triton.cdiv(rows, how["BN"]), min(tokens * top, number) if few else number)](
            source,
            (weight, *(weight if one is None else one for one in (scales, bias))),
            (order, begins, shares.contiguous()),
            out,
            tokens * top,
            gate[:4],
            K=width,
            N=rows,
            PER_TOKEN=top,
            PAIRS=triton.next_power_of_2(tokens * top) if few else 0,
            BY_PAIR=tokens * top <= number,
            UP=part is up,
            BIAS=bias is not None,
            APART=inner if part is up and bias is None and not gate.squared else 0,
            SQUARED=gate.squared > 0,
            ASM=x.dtype == torch.bfloat16,
            **how,
        )
    found = torch.empty_like(x)
    block = min(1024, triton.next_power_of_2(columns))
    tokendyno_sum_of_experts[(triton.cdiv(columns, block), tokens)](
        each,
        x if residual is None else residual,
        *((x, each) if shared is None else shared),
        found,
        columns,
        1 if shared is None else shared[1].shape[1],
        TOP=top,
        RESIDUAL=residual is not None,
        SHARED=shared is not None,
        COLUMNS=block,
    )
    return found
