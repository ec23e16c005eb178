"""What products on tensor cores share: the vector in bytes or halves, the instructions, and how rows are cut."""

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

ROWS = 16  # of a tile
WORDS: gl.constexpr = gl.constexpr(32)  # of a row, that a chunk has for each warp
MOST: gl.constexpr = gl.constexpr(4194000.0)  # of the whole numbers: below 2**22
MOST_HALF: gl.constexpr = gl.constexpr(32768.0)  # of float16


@gluon.jit
def digits(near):
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
        "=r,=r,=r,=r,r,r,r,r",
        [near],
        dtype=gl.int32,
        is_pure=True,
        pack=4,
    )


@gluon.jit
def halves(vector):
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
        "=&r,=&r,=&r,=&r,f,f,f,f",
        [vector],
        dtype=gl.int32,
        is_pure=True,
        pack=4,
    )


@gluon.jit
def multiplied(top, bottom, vector, total):
    """total + rows times vector: four words of a row and of the row 8 below it a lane, and of a digit of the vector.

    The four sums of lane p of four are columns 2 p and 2 p + 1 of its row, then the same of the row below.
    """
    return gl.inline_asm_elementwise(
        """{
        .reg .b32 a, b, c, d;
        mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {a, b, c, d}, {$4, $8, $5, $9}, {$12, $13},
            {$16, $17, $18, $19};
        mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {$0, $1, $2, $3}, {$6, $10, $7, $11}, {$14, $15},
            {a, b, c, d};
        }""",
        "=r,=r,=r,=r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r",
        [top, bottom, vector, total],
        dtype=gl.int32,
        is_pure=False,
        pack=4,
    )


def _floats() -> str:
    """PTX of `multiplied_floats`: a word of each row becomes four float16, two by two, and is multiplied."""
    lines = [".reg .b16 x, y;", ".reg .b32 e, f, o, p;", ".reg .f32 a, b, c, d;"]
    for word in range(4):
        for row, low, high in ((4 + word, "e", "o"), (8 + word, "f", "p")):
            lines.append(f"mov.b32 {{x, y}}, ${row};")
            lines += [f"cvt.rn.f16x2.e4m3x2 {low}, x;", f"cvt.rn.f16x2.e4m3x2 {high}, y;"]
        before = "$20, $21, $22, $23" if word == 0 else "a, b, c, d"
        after = "$0, $1, $2, $3" if word == 3 else "a, b, c, d"
        lines.append(
            f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{{after}}}, {{e, f, o, p}}, "
            f"{{${12 + word}, ${16 + word}}}, {{{before}}};"
        )
    return "\n".join(["{", *lines, "}"])


FLOATS: gl.constexpr = gl.constexpr(_floats())


@gluon.jit
def multiplied_floats(top, bottom, first, second, total):
    """As `multiplied`, of e4m3, which become float16; first, second: two elements each of the vector for a word."""
    return gl.inline_asm_elementwise(
        FLOATS,
        "=f,=f,=f,=f,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,f,f,f,f",
        [top, bottom, first, second, total],
        dtype=gl.float32,
        is_pure=False,
        pack=4,
    )


@gluon.jit
def sums(total, weight, num_warps: gl.constexpr):
    """(8, 8 warps, 2) floats of total (.., W): eight rows, lanes with parts of their sums, and the rows 8 below."""
    layout: gl.constexpr = gl.BlockedLayout([1, 1, 2], [8, 4, 1], [1, num_warps, 1], [2, 1, 0])
    found = gl.reshape(total.to(gl.float32) * weight, [8, 8 * num_warps, 2, 2])
    even, _ = gl.split(found)
    return gl.convert_layout(even, layout, assert_trivial=True)


@gluon.jit
def prepared(plain, learned, eps, K: gl.constexpr, COUNT: gl.constexpr, NORM: gl.constexpr, OFFSET: gl.constexpr):
    """COUNT parts of a vector as floats, times the weights of its norm; their largest magnitude, and what the norm
    multiplies them with, or 1.0."""
    vectors = ()
    layout: gl.constexpr = plain[0].type.layout
    peak = gl.full(plain[0].shape, 1e-30, gl.float32, layout)
    power = gl.zeros(plain[0].shape, gl.float32, layout)
    for c in gl.static_range(COUNT):
        vector = plain[c].to(gl.float32)
        if NORM:
            power += vector * vector
            vector *= learned[c].to(gl.float32) + OFFSET
        peak = gl.maximum(peak, gl.abs(vector))
        vectors += (vector,)
    if NORM:
        most, powers = gl.reduce((gl.max(peak, 1), gl.sum(power, 1)), 0, most_and_sum)
        shrink = gl.rsqrt(powers / K + eps)
    else:
        most = gl.max(gl.max(peak, 1), 0)
        shrink = 1.0
    return vectors, most, shrink


@gluon.jit
def most_and_sum(peak, power, peak_too, power_too):
    return gl.maximum(peak, peak_too), power + power_too


def parts(columns: int, per_word: int, how: dict[str, int]) -> int:
    """In how many parts a row of words with `per_word` weights is copied; 0 where CHUNKS do not divide it."""
    chunk = per_word * WORDS.value * how["num_warps"] * how["CHUNKS"]
    whole = how["num_warps"] in (4, 8) and how["CHUNKS"] & (how["CHUNKS"] - 1) == 0 and columns % chunk == 0
    return columns // chunk if whole else 0


def cut(rows: int, columns: int, per_word: int, how: dict[str, int]) -> tuple[int, dict[str, object]]:
    """Programs, and what remains of `how`, which has CHUNKS of a part, DEPTH, CTAS and num_warps, with PARTS;
    ValueError where a row is not made of such parts."""
    found = parts(columns, per_word, how)
    if not found:
        raise ValueError(f"{columns} columns are not parts of {how['CHUNKS']} chunks of {how['num_warps']} warps")
    programs = min(how["CTAS"], triton.cdiv(rows, ROWS))
    more = {name: what for name, what in how.items() if name != "CTAS"}
    return programs, more | {"PARTS": found, "FULL": rows % ROWS == 0}
