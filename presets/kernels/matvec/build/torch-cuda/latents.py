"""Multi-head latent attention (DeepSeek) of one new token, in its absorbed form.

The cache has a latent and a rotated key for each token, which all heads share. A head's keys and values are rows of a
matrix times the latents; here its query is multiplied with the rows of keys and its result with those of values, so
that no past token is expanded.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from .description import Mixer
from .parts import can_be_early, weighed

_COLUMNS, _VALUES = {2: 64, 4: 16}, 32  # of a program: numbers of a latent, by bytes of each; rows of values
_BYTES, _SLOTS = 1 << 15, 64  # of latents that a program reads at once, and slots at most; as many a part has at least
_MOST_PROGRAMS, _MOST_PARTS = 132, 64
_MOST_NUMBERS = 512  # of a latent, which a program holds for 16 or 32 heads


class Sizes(NamedTuple):
    """What the kernels are compiled for.

    HEADS, D, V     heads; numbers of a key that are not rotated, and of a value
    R, P            numbers of a latent, and of a rotated key
    PAIRS, STEP     neighbours are rotated with each other; how far apart angles lie
    TEXTS, COLUMNS  of a program of `tokendyno_absorb`, of which there may be fewer: texts, and numbers of a latent
    ROWS, BT        heads of a program of `tokendyno_latents`, and slots that it reads at once
    SPLITS          parts of the slots, each of which has programs of its own
    VALUES          rows of a program of `tokendyno_latents_whole`
    EARLY           they are launched before their predecessor has ended
    """

    HEADS: int
    D: int
    V: int
    R: int
    P: int
    PAIRS: bool
    STEP: int
    TEXTS: int
    COLUMNS: int
    ROWS: int
    BT: int
    SPLITS: int
    VALUES: int
    EARLY: bool


@triton.jit
def _rotate(x, out, cos, sin, there, S: tl.constexpr):
    """Vectors of P numbers, rotated; x, out, cos, sin: (rows, 1), where each begins. PAIRS stay neighbours in the code
    of DeepSeek V2, whose angles are parts of complex numbers; others' leaves the first ones of all pairs in front."""
    pair = tl.arange(0, S.P // 2)[None, :]
    first, second = (2 * pair, 2 * pair + 1) if S.PAIRS else (pair, pair + S.P // 2)
    one = tl.load(x + first, mask=there, other=0.0).to(tl.float32)
    two = tl.load(x + second, mask=there, other=0.0).to(tl.float32)
    along = tl.load(cos + pair * S.STEP, mask=there, other=0.0).to(tl.float32)
    beside = tl.load(sin + pair * S.STEP, mask=there, other=0.0).to(tl.float32)
    if S.PAIRS and S.STEP == 1:
        first, second = pair, pair + S.P // 2
    tl.store(out + first, (one * along - two * beside).to(out.dtype.element_ty), mask=there)
    tl.store(out + second, (two * along + one * beside).to(out.dtype.element_ty), mask=there)


@triton.jit
def tokendyno_absorb(
    queries, x, w, norm, cos, sin, slot, latents, keys, out, B, L, eps, QUERIES, WIDTH, ANGLES, S: tl.constexpr
):
    """out (B, HEADS, R + P): each head's query times its rows of keys, COLUMNS a program, and its rotated part. The
    programs behind the last head's write the new latent, normalized, and the new key, rotated, to the cache.

    queries   (B, QUERIES): of each head D numbers, and P to be rotated
    x         (B, WIDTH), at the end a latent of R numbers, and a key of P
    w         (HEADS * (D + V), R): of each head D rows of keys, and V of values
    norm      (R,); cos, sin: the angles of a text are ANGLES behind the last's
    latents, keys   (B, L, R), (B, L, P)
    """
    R: tl.constexpr = S.R
    P: tl.constexpr = S.P
    block, head = tl.program_id(0), tl.program_id(1)
    kind: tl.constexpr = out.dtype.element_ty
    if S.EARLY:
        gdc_launch_dependents()
    if head < S.HEADS:
        dims, texts = tl.arange(0, triton.next_power_of_2(S.D)), tl.arange(0, S.TEXTS)[:, None]
        columns = block * S.COLUMNS + tl.arange(0, S.COLUMNS)[None, :]
        rows = head * (S.D + S.V) + dims[:, None]
        weights = tl.load(w + rows * R + columns, mask=dims[:, None] < S.D, other=0.0)
        if S.EARLY:
            gdc_wait()
        there = texts < B
        ours = queries + texts * QUERIES + head * (S.D + P)
        query = tl.load(ours + dims[None, :], mask=there & (dims < S.D)[None, :], other=0.0)
        absorbed = tl.dot(query, weights, input_precision="ieee")
        to = out + (texts * S.HEADS + head) * (R + P)
        tl.store(to + columns, absorbed.to(kind), mask=there)
        if block == 0:
            _rotate(ours + S.D, to + R, cos + texts * ANGLES, sin + texts * ANGLES, there, S)
    else:
        here, every = tl.load(slot), tl.arange(0, R)  # the former written by the first kernels of this step
        learned, one = tl.load(norm + every).to(tl.float32), tl.zeros((1, 1), tl.int32)
        if S.EARLY:
            gdc_wait()
        for text in tl.range(block, B, tl.num_programs(0)):
            new, line = x + (text + 1) * WIDTH - R - P, text * L + here
            latent = tl.load(new + every).to(tl.float32)
            # rounded twice, as in the model's own code
            latent = (latent * tl.rsqrt(tl.sum(latent * latent, 0) / R + eps)).to(kind).to(tl.float32)
            tl.store(latents + line * R + every, (latent * learned).to(kind))
            key, angle = keys + line * P + one, text * ANGLES + one
            _rotate(new + R + one, key, cos + angle, sin + angle, one == 0, S)


@triton.jit
def tokendyno_latents(queries, latents, keys, slot, filled, parts, tops, sums, L, scaling, S: tl.constexpr):
    """One program handles ROWS heads of one text, the third axis of the grid, and one part of the filled slots.

    queries   (B, HEADS, R + P), as `tokendyno_absorb` gives them
    latents, keys, filled   (B, L, R), (B, L, P), (B, L) bool, with the new token's at `slot`
    parts     (B, HEADS, SPLITS, R) float32: sums of latents, weighted relative to the largest score, `tops`
    tops, sums  (B, HEADS, SPLITS) float32: that score, and the sum of the weights
    """
    R: tl.constexpr = S.R
    P: tl.constexpr = S.P
    BT: tl.constexpr = S.BT
    ROWS: tl.constexpr = S.ROWS
    split, text = tl.program_id(1), tl.program_id(2)
    heads, columns, angles = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, R), tl.arange(0, P)
    real = (heads < S.HEADS)[:, None]
    if S.EARLY:
        gdc_launch_dependents()
    filled += text * L
    used = tl.where(tl.load(filled + L - 1) != 0, L, tl.load(slot).to(tl.int32) + 1)
    span = tl.cdiv(tl.cdiv(used, S.SPLITS), BT) * BT
    begin, end = split * span, tl.minimum(split * span + span, used)
    latents += text.to(tl.int64) * L * R
    keys += text.to(tl.int64) * L * P
    lines = text * S.HEADS + heads
    queries += lines[:, None] * (R + P)
    if S.EARLY:
        gdc_wait()
    query = tl.load(queries + columns[None, :], mask=real, other=0.0)
    turned = tl.load(queries + R + angles[None, :], mask=real, other=0.0)
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    mixed = tl.zeros((ROWS, R), tl.float32)
    for first in tl.range(begin, end, BT, num_stages=2):
        places = first + tl.arange(0, BT)  # what padding left there is multiplied with zero
        there, at = (places < end)[:, None], places[:, None].to(tl.int64)
        seen = tl.load(filled + places, mask=places < end, other=0) != 0
        latent = tl.load(latents + at * R + columns[None, :], mask=there, other=0.0)
        key = tl.load(keys + at * P + angles[None, :], mask=there, other=0.0)
        scores = tl.dot(turned, tl.trans(key), input_precision="ieee")
        scores = tl.dot(query, tl.trans(latent), scores, input_precision="ieee") * scaling
        scores = tl.where(seen[None, :], scores, float("-inf"))
        top, shrink, weights = weighed(scores, top)
        total = total * shrink + tl.sum(weights, 1)
        mixed = tl.dot(weights.to(latent.dtype), latent, mixed * shrink[:, None], input_precision="ieee")
    lines = lines * S.SPLITS + split
    tl.store(parts + lines[:, None] * R + columns[None, :], mixed, mask=real)
    tl.store(tops + lines, top, mask=heads < S.HEADS)
    tl.store(sums + lines, total, mask=heads < S.HEADS)


@triton.jit
def tokendyno_latents_whole(parts, tops, sums, w, out, S: tl.constexpr):
    """out (B, HEADS * V): combines the parts of a head and multiplies with VALUES of its rows of values, a program.
    w: see `tokendyno_absorb`; the others: see `tokendyno_latents`."""
    head, text = tl.program_id(1), tl.program_id(2)
    rows, columns = tl.program_id(0) * S.VALUES + tl.arange(0, S.VALUES), tl.arange(0, S.R)
    if S.EARLY:
        gdc_launch_dependents()
    at = w + (head * (S.D + S.V) + S.D + rows[:, None]) * S.R + columns[None, :]
    weights = tl.load(at, mask=rows[:, None] < S.V, other=0.0)
    lines = (text * S.HEADS + head) * S.SPLITS + tl.arange(0, S.SPLITS)
    if S.EARLY:
        gdc_wait()
    pieces = tl.load(parts + lines[:, None] * S.R + columns[None, :])
    peaks, amounts = tl.load(tops + lines), tl.load(sums + lines)
    shares = tl.exp(peaks - tl.max(peaks, 0))
    shares /= tl.sum(shares * amounts, 0)
    mixed = tl.sum(pieces * shares[:, None], 0)
    result = tl.sum(weights.to(tl.float32) * mixed[None, :], 1)
    tl.store(out + (text * S.HEADS + head) * S.V + rows, result.to(out.dtype.element_ty), mask=rows < S.V)


def attend(
    queries: torch.Tensor,
    x: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    latents: torch.Tensor,
    keys: torch.Tensor,
    slot: torch.Tensor,
    filled: torch.Tensor,
    mixer: Mixer,
    w: torch.Tensor,
    norm: torch.Tensor,
    scaling: float,
    eps: float,
    pairs: bool,
) -> torch.Tensor:
    """queries (B, 1, QUERIES) and x (B, 1, WIDTH), which ends with the new latent and its key, -> (B, 1, heads * value
    size); both are written to the cache: latents (B, 1, L, R), keys (B, 1, L, P).

    cos, sin   (B, 1, angles), of which the first P / 2 are read; pairs: see `_rotate`; w, norm, eps: `tokendyno_absorb`
    """
    texts, length, rank, turned = latents.shape[0], latents.shape[2], latents.shape[3], keys.shape[3]
    heads, item, early = mixer.heads, x.element_size(), can_be_early()
    large = early and torch.cuda.get_device_capability()[0] < 12  # in shared memory
    rows = 32 if large and item == 2 and heads > 16 else 16
    groups, columns = triton.cdiv(heads, rows), min(_COLUMNS[item], rank)
    most = max(1, min(_MOST_PARTS, _MOST_PROGRAMS // (texts * groups)))
    splits = triton.next_power_of_2(min(most, triton.cdiv(length, _SLOTS)))
    sizes = Sizes(
        HEADS=heads,
        D=mixer.key_size,
        V=mixer.value_size,
        R=rank,
        P=turned,
        PAIRS=pairs,
        STEP=cos.stride(-1),
        TEXTS=max(16, triton.next_power_of_2(texts)),
        COLUMNS=columns,
        ROWS=rows,
        BT=min(_SLOTS, (2 if large else 1) * _BYTES // (rank * item)),
        SPLITS=splits,
        VALUES=_VALUES,
        EARLY=early,
    )
    more = {"S": sizes, "launch_pdl": early}
    absorbed = x.new_empty(texts, heads, rank + turned)
    parts = torch.empty(texts, heads, splits, rank, dtype=torch.float32, device=x.device)
    tops, sums = torch.empty(2, texts, heads, splits, dtype=torch.float32, device=x.device)
    out = x.new_empty(texts, 1, heads * mixer.value_size)
    given = queries, x, w, norm, cos, sin, slot, latents, keys, absorbed, texts, length, eps
    widths = queries.shape[-1], x.shape[-1], cos.stride(0)
    tokendyno_absorb[(rank // columns, heads + 1)](*given, *widths, num_warps=4, **more)
    given = absorbed, latents, keys, slot, filled, parts, tops, sums, length, scaling
    tokendyno_latents[(groups, splits, texts)](*given, num_warps=8, **more)
    grid = triton.cdiv(mixer.value_size, _VALUES), heads, texts
    tokendyno_latents_whole[grid](parts, tops, sums, w, out, num_warps=8, **more)
    return out


def fits(mixer: Mixer, cached: object, tensors: tuple[torch.Tensor | None, ...]) -> bool:
    """Whether the kernels compute it with this layer of a cache: its matrices, `tensors`, are dense. In code that
    torch.compile makes they are untried."""
    slots = getattr(cached, "slots", None)
    if slots is None or not slots.decoding or torch.compiler.is_compiling():
        return False
    sizes, kinds = (cached.keys.shape[-1], cached.values.shape[-1]), (torch.nn.Parameter, torch.Tensor)
    if any(size < 16 or size & (size - 1) or size > _MOST_NUMBERS for size in sizes):
        return False
    given = [one for one in tensors if one is not None]
    return all(type(one) in kinds and one.dtype == cached.keys.dtype and one.is_contiguous() for one in given)
