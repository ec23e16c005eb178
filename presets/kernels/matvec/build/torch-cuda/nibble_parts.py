"""What programs of `nibbles` are made of: the instructions, the look-up table, scales, pairs, and sums of the warps."""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


def assembly(kind: str) -> str:
    """PTX of four sums ($0 to $3, before $13 to $16) plus a word each of two rows ($4, $5), with scales $6 and $7,
    times four pairs of the vector ($9 to $12). $8: where this lane's copy of the table begins.

    Byte j of a word has columns 2 j and 2 j + 1. Operands a0 and a2 of an mma are pairs of a row, a1 and a3 of the one
    8 below it.
    """
    lines = [".reg .b32 i, a0, a1, a2, a3;", ".reg .f32 p, q, s0, s1, s2, s3;"]
    for half in (0, 1):
        for operand in range(4):
            word, scale, byte = 4 + operand % 2, 6 + operand % 2, 2 * half + operand // 2
            lines += [
                f"prmt.b32 i, ${word}, 0, 0x444{byte};",
                "mad.lo.u32 i, i, 128, $8;",
                "ld.shared.v2.f32 {p, q}, [i];",
                f"mul.rn.f32 p, p, ${scale};",
                f"mul.rn.f32 q, q, ${scale};",
                f"cvt.rn.{kind}x2.f32 a{operand}, q, p;",
            ]
        old, new = (("$13, $14, $15, $16", "s0, s1, s2, s3"), ("s0, s1, s2, s3", "$0, $1, $2, $3"))[half]
        lines.append(
            f"mma.sync.aligned.m16n8k16.row.col.f32.{kind}.{kind}.f32 {{{new}}}, {{a0, a1, a2, a3}}, "
            f"{{${9 + 2 * half}, ${10 + 2 * half}}}, {{{old}}};"
        )
    return "\n".join(["{", *lines, "}"])


ASSEMBLY = {torch.bfloat16: assembly("bf16"), torch.float16: assembly("f16")}


@gluon.jit
def lookup(code, W: gl.constexpr):
    """Where in shared memory the two numbers of each byte lie, in 16 copies: lanes of half a warp, which are served at
    once, have banks of their own. The address passes through assembly after the barrier, so that no look-up can be
    moved before it."""
    base = gl.inline_asm_elementwise(
        "{ .shared .align 128 .b8 tokendyno_pairs[32768]; mov.u32 $0, tokendyno_pairs; }",
        "=r",
        [],
        dtype=gl.int32,
        is_pure=False,
        pack=1,
    )
    spread: gl.constexpr = gl.BlockedLayout([1, 1], [2, 16], [W, 1], [1, 0])
    byte = gl.arange(0, 256, gl.SliceLayout(1, spread))[:, None]
    copy = gl.arange(0, 16, gl.SliceLayout(0, spread))[None, :]
    first, second = gl.load(code + byte // 16 + 0 * copy), gl.load(code + byte % 16 + 0 * copy)
    gl.inline_asm_elementwise(
        "st.shared.v2.f32 [$1], {$2, $3}; mov.b32 $0, 0;",
        "=r,r,f,f",
        [base + byte * 128 + copy * 8, first, second],
        dtype=gl.int32,
        is_pure=False,
        pack=1,
    )
    gl.thread_barrier()
    return gl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [base], dtype=gl.int32, is_pure=False, pack=1)


@gluon.jit
def scale_of(absmax, codes, units, offset, line, block, known, DOUBLE: gl.constexpr, OFFSETS: gl.constexpr):
    """float32 of a block; with DOUBLE decoded, rounded twice as bitsandbytes does: never as one fma."""
    found = gl.load(absmax + block, mask=known, other=0)
    if DOUBLE:
        number = gl.load(codes + found.to(gl.int32), mask=known, other=0.0)
        unit = gl.load(units + block // 256, mask=known, other=0.0)
        plus = gl.load(offset + (line + 0 * block) * OFFSETS, mask=known, other=0.0)
        found = gl.inline_asm_elementwise(
            "{ .reg .f32 t; mul.rn.f32 t, $1, $2; add.rn.f32 $0, t, $3; }",
            "=f,f,f,f",
            [number, unit, plus],
            dtype=gl.float32,
            is_pure=True,
            pack=1,
        )
    return found


@gluon.jit
def floats(pair, kind: gl.constexpr):
    """Both halves of each word as float32."""
    if kind == gl.bfloat16:
        one, two = (pair << 16).to(gl.float32, bitcast=True), (pair & -65536).to(gl.float32, bitcast=True)
    else:
        one = pair.to(gl.int16).to(kind, bitcast=True).to(gl.float32)
        two = (pair >> 16).to(gl.int16).to(kind, bitcast=True).to(gl.float32)
    return one, two


@gluon.jit
def paired(one, two, kind: gl.constexpr):
    """The reverse, rounded."""
    low = one.to(kind).to(gl.int16, bitcast=True).to(gl.int32) & 0xFFFF
    return low | (two.to(kind).to(gl.int16, bitcast=True).to(gl.int32) << 16)


def room(turns: int, warps: int) -> str:
    """PTX that sets aside shared memory for the sums of so many tiles, 16 numbers of each warp, and gives its address.

    It is of the kernel's own, and not Triton's, which would have all warps wait for each other at each tile.
    """
    return f"{{ .shared .align 16 .b8 tokendyno_sums[{64 * turns * warps}]; mov.u32 $0, tokendyno_sums; }}"


@gluon.jit
def leave(at, top, bottom):
    """Leave a warp's sums of eight rows, where `at` says, and of the eight that follow there; all of one shape."""
    gl.inline_asm_elementwise(
        "st.shared.f32 [$1], $2; st.shared.f32 [$1 + 32], $3; mov.b32 $0, 0;",
        "=r,r,f,f",
        [at, top, bottom],
        dtype=gl.int32,
        is_pure=False,
        pack=1,
    )


@gluon.jit
def collect(sums, turn, row, of_all: gl.constexpr, W: gl.constexpr):
    """(T,) sums of all warps, of a row of a tile each; after a barrier."""
    at = (sums + turn * (64 * W) + row * 4)[:, None] + gl.arange(0, W, gl.SliceLayout(0, of_all))[None, :] * 64
    found = gl.inline_asm_elementwise("ld.shared.f32 $0, [$1];", "=f,r", [at], dtype=gl.float32, is_pure=False, pack=1)
    return gl.sum(found, 1)
