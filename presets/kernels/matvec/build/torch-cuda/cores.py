"""Products of one vector with 8-bit weights on tensor cores, which take the bytes as they are.

A warp has 16 rows and a part of the columns. The vector becomes whole numbers of 22 bits and a sign, and each of
their three bytes is a column of the other operand, so that the sums are exact and no weight is ever converted. Rows
are copied into shared memory (cp.async) while the program waits for the vector, and ahead of the tensor cores after
it. Written in Gluon, Triton's lower level, since the lanes that hold a word of an operand are prescribed.
"""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from .parts import act, gate

ROWS = 16  # of a tile
WORDS: gl.constexpr = gl.constexpr(32)  # of a row, that a chunk has for each warp
MOST: gl.constexpr = gl.constexpr(4194000.0)  # of the whole numbers: below 2**22
MOST_HALF: gl.constexpr = gl.constexpr(32768.0)  # of float16


@gluon.jit
def _digits(near):
    """(T, 4) floats 1.5 * 2**23 + q, |q| < 2**22 -> (T, 4) words: the highest, middle and lowest byte of the four q,
    each from -128 to 127, and 0."""
    return gl.inline_asm_elementwise(
        """{
        .reg .b32 a, b, c, d, s, t, u, v;
        add.u32 a, $4, 0x408080;
        add.u32 b, $5, 0x408080;
        add.u32 c, $6, 0x408080;
        add.u32 d, $7, 0x408080;
        prmt.b32 s, a, b, 0x6240;
        prmt.b32 t, c, d, 0x6240;
        prmt.b32 u, a, b, 0x0051;
        prmt.b32 v, c, d, 0x0051;
        prmt.b32 a, s, t, 0x7632;
        prmt.b32 b, u, v, 0x5410;
        prmt.b32 c, s, t, 0x5410;
        xor.b32 $0, a, 0x80808080;
        xor.b32 $1, b, 0x80808080;
        xor.b32 $2, c, 0x80808080;
        mov.b32 $3, 0;
        }""",
        "=r,=r,=r,=r,r,r,r,r", [near], dtype=gl.int32, is_pure=True, pack=4,
    )  # fmt: skip


@gluon.jit
def _multiplied(top, bottom, vector, total):
    """total + rows times vector: four words of a row and of the row 8 below it a lane, and of a digit of the vector;
    the four sums of a lane are two columns of its row, then the same of the row below."""
    return gl.inline_asm_elementwise(
        """{
        .reg .b32 a, b, c, d;
        mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {a, b, c, d}, {$4, $8, $5, $9}, {$12, $13},
            {$16, $17, $18, $19};
        mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {$0, $1, $2, $3}, {$6, $10, $7, $11}, {$14, $15},
            {a, b, c, d};
        }""",
        "=r,=r,=r,=r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r", [top, bottom, vector, total], dtype=gl.int32, is_pure=False,
        pack=4,
    )  # fmt: skip


@gluon.jit
def _halves(vector):
    """(T, 4) floats up to 2**15 -> (T, 4) words of two float16: the first two elements, what these lack times 2**11,
    and the same of the others."""
    return gl.inline_asm_elementwise(
        """{
        .reg .b16 x, y;
        .reg .b32 h;
        .reg .f32 a, b;
        cvt.rn.f16x2.f32 h, $5, $4;
        mov.b32 {x, y}, h;
        mov.b32 $0, h;
        cvt.f32.f16 a, x;
        cvt.f32.f16 b, y;
        sub.f32 a, $4, a;
        sub.f32 b, $5, b;
        mul.f32 a, a, 0f45000000;
        mul.f32 b, b, 0f45000000;
        cvt.rn.f16x2.f32 $1, b, a;
        cvt.rn.f16x2.f32 h, $7, $6;
        mov.b32 {x, y}, h;
        mov.b32 $2, h;
        cvt.f32.f16 a, x;
        cvt.f32.f16 b, y;
        sub.f32 a, $6, a;
        sub.f32 b, $7, b;
        mul.f32 a, a, 0f45000000;
        mul.f32 b, b, 0f45000000;
        cvt.rn.f16x2.f32 $3, b, a;
        }""",
        "=&r,=&r,=&r,=&r,f,f,f,f", [vector], dtype=gl.int32, is_pure=True, pack=4,
    )  # fmt: skip


@gluon.jit
def _multiplied_floats(top, bottom, first, second, total):
    """As `_multiplied`, of e4m3, which become float16; first, second: two elements each of the vector for a word."""
    return gl.inline_asm_elementwise(
        """{
        .reg .b16 x, y;
        .reg .b32 e, f, o, p;
        .reg .f32 a, b, c, d;
        mov.b32 {x, y}, $4;
        cvt.rn.f16x2.e4m3x2 e, x;
        cvt.rn.f16x2.e4m3x2 o, y;
        mov.b32 {x, y}, $8;
        cvt.rn.f16x2.e4m3x2 f, x;
        cvt.rn.f16x2.e4m3x2 p, y;
        mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {a, b, c, d}, {e, f, o, p}, {$12, $16},
            {$20, $21, $22, $23};
        mov.b32 {x, y}, $5;
        cvt.rn.f16x2.e4m3x2 e, x;
        cvt.rn.f16x2.e4m3x2 o, y;
        mov.b32 {x, y}, $9;
        cvt.rn.f16x2.e4m3x2 f, x;
        cvt.rn.f16x2.e4m3x2 p, y;
        mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {a, b, c, d}, {e, f, o, p}, {$13, $17}, {a, b, c, d};
        mov.b32 {x, y}, $6;
        cvt.rn.f16x2.e4m3x2 e, x;
        cvt.rn.f16x2.e4m3x2 o, y;
        mov.b32 {x, y}, $10;
        cvt.rn.f16x2.e4m3x2 f, x;
        cvt.rn.f16x2.e4m3x2 p, y;
        mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {a, b, c, d}, {e, f, o, p}, {$14, $18}, {a, b, c, d};
        mov.b32 {x, y}, $7;
        cvt.rn.f16x2.e4m3x2 e, x;
        cvt.rn.f16x2.e4m3x2 o, y;
        mov.b32 {x, y}, $11;
        cvt.rn.f16x2.e4m3x2 f, x;
        cvt.rn.f16x2.e4m3x2 p, y;
        mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {$0, $1, $2, $3}, {e, f, o, p}, {$15, $19}, {a, b, c, d};
        }""",
        "=f,=f,=f,=f,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,f,f,f,f", [top, bottom, first, second, total], dtype=gl.float32,
        is_pure=False, pack=4,
    )  # fmt: skip


@gluon.jit
def _product(rows_here, digits_here, c: gl.constexpr, begin: gl.constexpr, total, operand: gl.constexpr,
             FLOAT: gl.constexpr):  # fmt: skip
    top = rows_here.slice(begin, 2, 0).load(operand)
    bottom = rows_here.slice(begin + 2, 2, 0).load(operand)
    if FLOAT:
        first = digits_here.slice(c * 4, 2, 0).load(operand)
        second = digits_here.slice(c * 4 + 2, 2, 0).load(operand)
        total = _multiplied_floats(top, bottom, first, second, total)
    else:
        total = _multiplied(top, bottom, digits_here.slice(c, 1, 0).load(operand), total)
    return total


@gluon.jit
def _ask(
    ring, w, turn, N, K: gl.constexpr, PARTS: gl.constexpr, CHUNKS: gl.constexpr, HALVES: gl.constexpr,
    num_warps: gl.constexpr,
):  # fmt: skip
    """Ask for a part of the columns of 16 rows, or of 16 and the 16 that they gate."""
    W: gl.constexpr = num_warps * WORDS
    by_rows: gl.constexpr = gl.BlockedLayout([1, 1, 4], [1, 1, 32], [num_warps // 4, 4, 1], [2, 1, 0])
    of_rows: gl.constexpr = gl.SliceLayout(2, by_rows)
    eighth = gl.arange(0, CHUNKS * HALVES * 2, gl.SliceLayout(1, of_rows))  # 4 rows of a chunk: half, then chunk
    half = eighth // 2 % HALVES
    row = (gl.program_id(0) + turn // PARTS * gl.num_programs(0)) * 16 + half % 2 * 8 + eighth % 2 * 4
    row = row[:, None] + gl.arange(0, 4, gl.SliceLayout(0, of_rows))[None, :]
    begin = (turn % PARTS * CHUNKS + eighth // (2 * HALVES)) * W
    at = (row + (half // 2 * N)[:, None]).to(gl.int64) * (K // 4) + begin[:, None]
    word = gl.arange(0, W, gl.SliceLayout(0, gl.SliceLayout(1, by_rows)))
    async_copy.async_copy_global_to_shared(
        ring, w + at[:, :, None] + word[None, None, :], (row < N)[:, :, None], eviction_policy="evict_first"
    )


@gluon.jit
def _prefetch(ask, ask_too, lines, layout: gl.constexpr, ASKS: gl.constexpr, num_warps: gl.constexpr):
    """Prefetch this program's share of `lines` lines of 128 bytes of each of ASKS matrices into L2."""
    share = gl.cdiv(lines, gl.num_programs(0))
    begin = gl.program_id(0) * share
    end = gl.minimum(begin + share, lines)
    if ASKS > 0:
        for line in range(begin, end, 32 * num_warps):
            at = gl.minimum(line + gl.arange(0, 32 * num_warps, layout), end - 1).to(gl.int64) * 128
            _prefetch_line(ask.to(gl.int64) + at)
            if ASKS > 1:
                _prefetch_line(ask_too.to(gl.int64) + at)


@gluon.jit
def _prefetch_line(at):
    gl.inline_asm_elementwise(
        "prefetch.global.L2 [$1]; mov.b32 $0, 0;", "=r,l", [at], dtype=gl.int32, is_pure=False, pack=1
    )


@gluon.jit
def _row_sums(total, unit, FLOAT: gl.constexpr, num_warps: gl.constexpr, out: gl.constexpr):
    """(16,) float32 of the sums of all lanes."""
    layout: gl.constexpr = total.type.layout
    W: gl.constexpr = num_warps * WORDS
    at = gl.arange(0, W, gl.SliceLayout(0, gl.SliceLayout(1, layout)))[None, None, :]
    column = at // 4 % 4 * 2 + at % 2
    if FLOAT:  # columns 0 to 3 are the same, and 4 to 7
        weight = gl.where(column == 0, 1.0, gl.where(column == 4, 1 / 2048, 0.0)) * unit
    else:
        weight = gl.where(column == 0, 65536.0, gl.where(column == 1, 256.0, gl.where(column == 2, 1.0, 0.0))) * unit
    found = gl.reshape(total.to(gl.float32) * weight, [2, 4, W // 4, 2, 2])
    found = gl.sum(gl.sum(found, 4), 2)  # (2, 4, 2)
    return gl.convert_layout(gl.reshape(gl.permute(found, (2, 0, 1)), [16]), out)


@gluon.jit
def _both(peak, power, peak_too, power_too):
    return gl.maximum(peak, peak_too), power + power_too


@gluon.jit
def tokendyno_core_product(
    x, norm, w, scale, bias, residual, out, ask, ask_too, N, lines, eps, K: gl.constexpr, NORM: gl.constexpr,
    OFFSET: gl.constexpr, BIAS: gl.constexpr, RESIDUAL: gl.constexpr, GATED: gl.constexpr, ACTED: gl.constexpr,
    GELU: gl.constexpr, FLOAT: gl.constexpr, PARTS: gl.constexpr, CHUNKS: gl.constexpr, DEPTH: gl.constexpr,
    ASKS: gl.constexpr, LATE: gl.constexpr, EARLY: gl.constexpr, num_warps: gl.constexpr,
):  # fmt: skip
    """As `products.tokendyno_stream_product`, with int8 weights in words of four, (N, K / 4), and a scale a row.

    PARTS  in which the columns of a tile are copied; DEPTH: parts under way
    """
    W: gl.constexpr = num_warps * WORDS
    HALVES: gl.constexpr = 4 if GATED else 2
    operand: gl.constexpr = gl.BlockedLayout([1, 1, 4], [2, 4, 4], [1, 1, num_warps], [2, 1, 0])
    fours: gl.constexpr = gl.BlockedLayout([1, 4], [32, 1], [num_warps, 1], [1, 0])
    line: gl.constexpr = gl.BlockedLayout([1], [32], [num_warps], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(16, 1, 2, [2, 1, 0])
    if EARLY:
        gdc_launch_dependents()
    ring = gl.allocate_shared_memory(gl.int32, [DEPTH, CHUNKS * HALVES * 2, 4, W], shared)
    held = gl.allocate_shared_memory(gl.int32, [PARTS, CHUNKS * (4 if FLOAT else 1), 1 if FLOAT else 4, W], shared)
    first = gl.program_id(0)
    step = gl.num_programs(0)
    turns = (gl.cdiv(N, 16) - first + step - 1) // step * PARTS
    for d in gl.static_range(DEPTH):
        if d < turns:
            _ask(ring.index(d), w, d, N, K, PARTS, CHUNKS, HALVES, num_warps)
        async_copy.commit_group()
    if not LATE:
        _prefetch(ask, ask_too, lines, line, ASKS, num_warps)
    rows = first * 16 + gl.arange(0, 16, line)
    inside = rows < N
    units = gl.load(scale + rows, mask=inside, other=0.0).to(gl.float32)
    other_units = units
    constant = gl.zeros([16], gl.float32, line)
    other_constant = constant
    added = constant
    if GATED:
        other_units = gl.load(scale + N + rows, mask=inside, other=0.0).to(gl.float32)
    if BIAS:
        constant = gl.load(bias + rows, mask=inside, other=0.0).to(gl.float32)
        if GATED:
            other_constant = gl.load(bias + N + rows, mask=inside, other=0.0).to(gl.float32)
    columns = gl.arange(0, CHUNKS * W, gl.SliceLayout(1, fours))[:, None] * 4
    columns += gl.arange(0, 4, gl.SliceLayout(0, fours))[None, :]
    learned = ()
    if NORM:
        for c in gl.static_range(PARTS):
            learned += (gl.load(norm + c * (CHUNKS * 4 * W) + columns),)
    if EARLY:
        gdc_wait()
    plain = ()
    for c in gl.static_range(PARTS):
        plain += (gl.load(x + c * (CHUNKS * 4 * W) + columns),)
    if RESIDUAL:
        added = gl.load(residual + rows, mask=inside, other=0.0).to(gl.float32)
    vectors = ()
    peak = gl.full([CHUNKS * W, 4], 1e-30, gl.float32, fours)
    power = gl.zeros([CHUNKS * W, 4], gl.float32, fours)
    for c in gl.static_range(PARTS):
        vector = plain[c].to(gl.float32)
        if NORM:
            power += vector * vector
            vector *= learned[c].to(gl.float32) + OFFSET
        peak = gl.maximum(peak, gl.abs(vector))
        vectors += (vector,)
    if NORM:
        most, powers = gl.reduce((gl.max(peak, 1), gl.sum(power, 1)), 0, _both)
        shrink = gl.rsqrt(powers / K + eps)
    else:
        most = gl.max(gl.max(peak, 1), 0)
        shrink = 1.0
    for c in gl.static_range(PARTS):
        if FLOAT:
            digits = gl.permute(gl.reshape(_halves(vectors[c] * (MOST_HALF / most)), [CHUNKS, W, 4]), (0, 2, 1))
            held.index(c).store(gl.reshape(digits, [CHUNKS * 4, 1, W]))
        else:
            digits = _digits(vectors[c] * (MOST / most) + 12582912.0)
            held.index(c).store(gl.permute(gl.reshape(digits, [CHUNKS, W, 4]), (0, 2, 1)))
    unit = most * shrink / (MOST_HALF if FLOAT else MOST)
    total = gl.zeros([2, 4, W], gl.float32 if FLOAT else gl.int32, operand)
    other = gl.zeros([2, 4, W], gl.float32 if FLOAT else gl.int32, operand)
    for turn in range(turns):
        part = turn % PARTS
        async_copy.wait_group(DEPTH - 1)
        gl.thread_barrier()
        if part == 0:
            total = gl.zeros([2, 4, W], gl.float32 if FLOAT else gl.int32, operand)
            other = gl.zeros([2, 4, W], gl.float32 if FLOAT else gl.int32, operand)
        rows_here = ring.index(turn % DEPTH)
        digits_here = held.index(part)
        for c in gl.static_range(CHUNKS):
            total = _product(rows_here, digits_here, c, c * HALVES * 2, total, operand, FLOAT)
            if GATED:
                other = _product(rows_here, digits_here, c, c * HALVES * 2 + 4, other, operand, FLOAT)
        if turn + DEPTH < turns:
            _ask(rows_here, w, turn + DEPTH, N, K, PARTS, CHUNKS, HALVES, num_warps)
        async_copy.commit_group()
        if LATE and turn == gl.maximum(turns - DEPTH, 0):
            _prefetch(ask, ask_too, lines, line, ASKS, num_warps)
        if part == PARTS - 1:
            result = _row_sums(total, unit, FLOAT, num_warps, line) * units + constant
            if GATED:
                second = _row_sums(other, unit, FLOAT, num_warps, line) * other_units + other_constant
                result = gate(result, second, GELU)
            elif ACTED:
                result = act(result, GELU)
            gl.store(out + rows, (result + added).to(out.dtype.element_ty), mask=rows < N)
            rows += step * 16
            inside = rows < N
            units = gl.load(scale + rows, mask=inside, other=0.0).to(gl.float32)
            if GATED:
                other_units = gl.load(scale + N + rows, mask=inside, other=0.0).to(gl.float32)
            if BIAS:
                constant = gl.load(bias + rows, mask=inside, other=0.0).to(gl.float32)
                if GATED:
                    other_constant = gl.load(bias + N + rows, mask=inside, other=0.0).to(gl.float32)
            if RESIDUAL:
                added = gl.load(residual + rows, mask=inside, other=0.0).to(gl.float32)


def parts(columns: int, per_word: int, how: dict[str, int]) -> int:
    """In how many parts a row of words with `per_word` weights is copied; 0 where CHUNKS do not divide it."""
    chunk = per_word * WORDS.value * how["num_warps"] * how["CHUNKS"]
    whole = how["num_warps"] in (4, 8) and how["CHUNKS"] & (how["CHUNKS"] - 1) == 0 and columns % chunk == 0
    return columns // chunk if whole else 0


def cut(rows: int, columns: int, per_word: int, how: dict[str, object]) -> tuple[int, dict[str, object]]:
    """Programs, and what remains of `how`, which has CHUNKS of a part, DEPTH, CTAS, num_warps and flags, with PARTS;
    ValueError where a row is not made of such parts."""
    found = parts(columns, per_word, how)
    if not found:
        raise ValueError(f"{columns} columns are not parts of {how['CHUNKS']} chunks of {how['num_warps']} warps")
    programs = min(how["CTAS"], triton.cdiv(rows, ROWS))
    return programs, {name: what for name, what in how.items() if name not in ("CTAS", "CENTRED")} | {"PARTS": found}


def asked(
    x: torch.Tensor, ask: tuple[torch.Tensor, ...], early: bool
) -> tuple[torch.Tensor, torch.Tensor, int, int]:  # fmt: skip
    """Two matrices, 128ths of the bytes of each, and how many there are: up to two of one size."""
    lines = {one.numel() * one.element_size() // 128 for one in ask} or {0}
    (first, second), count = [*ask, x, x][:2], len(ask) if early and len(lines) == 1 else 0
    return first, second, max(lines), count


def launch(
    x: torch.Tensor, norm: torch.Tensor, shift: torch.Tensor, w: torch.Tensor, scale: torch.Tensor,
    bias: torch.Tensor, residual: torch.Tensor, out: torch.Tensor, rows: int, eps: float, how: dict[str, object],
    ask: tuple[torch.Tensor, ...] = (),
) -> None:  # fmt: skip
    """`how`: as of `cut`; not CENTRED, so `shift` is not read."""
    programs, flags = cut(rows, w.shape[1], 4, how)
    first, second, lines, count = asked(x, ask, how["EARLY"])
    tokendyno_core_product[(programs,)](
        x, norm, w.view(torch.int32), scale, bias, residual, out, first, second, rows, lines, eps, K=w.shape[1],
        FLOAT=w.dtype == torch.float8_e4m3fn, ASKS=count, **{"LATE": False} | flags,
    )  # fmt: skip
