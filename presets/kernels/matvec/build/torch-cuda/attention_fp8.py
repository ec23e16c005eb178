"""Keys and values in 8 bits, float8_e4m3fn with a scale for each token and head, as `attention_long` reads them.

Tensor cores before Blackwell multiply no such number with float16, so each becomes one in registers, by an instruction
for two. Bytes are copied and loaded in pairs, as 16-bit words, which `ldmatrix` hands out as an operand wants them: of
keys a pair are two dimensions of a token, so that the query is dealt out likewise; of values they belong to different
columns of the result, which are sorted at the end. Scales are multiplied with scores and weights, of which there are
far fewer.
"""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from .attention_parts import fits
from .parts import capability

LARGEST: gl.constexpr = gl.constexpr(448.0)  # number of float8_e4m3fn
LEAST: gl.constexpr = gl.constexpr(1e-12)  # that a vector is scaled by
MOST_PROGRAMS = 128
BLOCK, STAGES, WARPS, REGISTERS = 128, 3, 8, 255  # slots of a block of heads of 128, see `attention_long`


@gluon.jit
def halves(pairs):
    """Words (.., j, ..) of four bytes a register -> float16 of the first two and of the last two."""
    return gl.inline_asm_elementwise(
        """{
        .reg .b16 x, y;
        mov.b32 {x, y}, $2;
        cvt.rn.f16x2.e4m3x2 $0, x;
        cvt.rn.f16x2.e4m3x2 $1, y;
        }""",
        "=r,=r,r",
        [pairs],
        dtype=(gl.float16, gl.float16),
        is_pure=True,
        pack=2,
    )


@gluon.jit
def sides(pairs):
    """The same of the lower bytes of both words, and of the upper."""
    return gl.inline_asm_elementwise(
        """{
        .reg .b16 x, y;
        .reg .b32 both;
        prmt.b32 both, $2, 0, 0x3120;
        mov.b32 {x, y}, both;
        cvt.rn.f16x2.e4m3x2 $0, x;
        cvt.rn.f16x2.e4m3x2 $1, y;
        }""",
        "=&r,=r,r",
        [pairs],
        dtype=(gl.float16, gl.float16),
        is_pure=True,
        pack=2,
    )


@gluon.jit
def scales_of(scales, places, end):
    return gl.load(scales + places, mask=places < end, other=0.0, cache_modifier=".cg")


@gluon.jit
def unit(vector):
    """What a vector is divided by, so that its largest number is that of the format."""
    return gl.maximum(gl.max(gl.abs(vector), 0), LEAST) / LARGEST


@gluon.jit
def rounded(vector):
    """Numbers up to 448 as float8_e4m3fn has them, in float32.

    Not by conversions of the language: a compiler (ptxas of CUDA 12.8) that joins them with those that are stored took
    half of the numbers from registers that were not yet written.
    """
    return gl.inline_asm_elementwise(
        """{
        .reg .b16 code, x, y;
        .reg .b32 both;
        .reg .f32 none;
        mov.b32 none, 0f00000000;
        cvt.rn.satfinite.e4m3x2.f32 code, none, $1;
        cvt.rn.f16x2.e4m3x2 both, code;
        mov.b32 {x, y}, both;
        cvt.f32.f16 $0, x;
        }""",
        "=f,f",
        [vector],
        dtype=gl.float32,
        is_pure=True,
        pack=1,
    )


def reads(attention: object, norm: torch.Tensor | None, dtype: torch.dtype) -> bool:
    """Whether the kernel is for this attention, whose queries have such a norm: from Ada Lovelace on."""
    group, size = getattr(attention, "num_key_value_groups", 1), attention.head_dim
    return fits(group, size, dtype, norm is not None and norm.numel() != size) and capability() >= (8, 9)
