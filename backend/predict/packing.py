"""Bytes of a weight matrix once it is packed, for each choice of the axis `quantization`.

Read from the packing code of bitsandbytes 0.50, torchao 0.18, optimum-quanto 0.2.7 and transformers 5.22; tests load
small models and count the tensors. Which matrices are packed at all is `PACKED_KINDS`: embeddings, the output head,
norms, biases and routers never are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True, slots=True)
class Packing:
    """How a choice packs.

    kinds         kinds of matrices that it packs; all others stay as they are
    matrix_bytes  (rows, columns, bytes of one dense number) -> bytes of one packed matrix, scales included
    """

    kinds: frozenset[str]
    matrix_bytes: Callable[[int, int, int], int]


def _bnb_4bit(rows: int, columns: int, size: int) -> int:
    """Two numbers a byte, a float32 scale for 64 numbers, a table of 16 float32 values."""
    numbers = rows * columns
    return ceil(numbers / 2) + 4 * ceil(numbers / 64) + 16 * 4


def _bnb_4bit_double(rows: int, columns: int, size: int) -> int:
    """The scales as bytes too, with a float32 scale for 256 of them, a table of 256 values and an offset."""
    numbers = rows * columns
    blocks = ceil(numbers / 64)
    return ceil(numbers / 2) + blocks + 4 * ceil(blocks / 256) + (16 + 256 + 1) * 4


def _quanto_int4(rows: int, columns: int, size: int) -> int:
    """Two numbers a byte, a scale and a shift for each group of up to 128 columns (for a row where none divides it)."""
    group = 128
    while columns > 128 and columns % group and group > 32:
        group -= 32
    groups = columns // group if columns % group == 0 else 1
    return ceil(rows * columns / 2) + 2 * size * rows * groups + _QUANTO_SCALES


def _torchao_int4(rows: int, columns: int, size: int) -> int:
    """Tinygemm's layout: rows filled up to 8 and columns to 1,024, a bfloat16 scale and zero for 128 columns.

    A matrix whose columns are no multiple of 128 is left as it is.
    """
    if columns % 128:
        return rows * columns * size
    rows, columns = 8 * ceil(rows / 8), 1024 * ceil(columns / 1024)
    return rows * columns // 2 + 4 * rows * columns // 128


def _mxfp4(rows: int, columns: int, size: int) -> int:
    """Two numbers a byte and one byte of scale for 32 of them (OCP Microscaling Formats v1.0, table 1).

    Then the kernels' own: one bias a row becomes float32. Hopper's layout fills rows up to 16 and columns to 64, which
    no published gpt-oss needs and the embedded model does: not counted.
    """
    return rows * columns // 2 + rows * columns // 32 + rows * (4 - size)


_QUANTO_SCALES = 2 * 4  # of input and output, float32, unused here
_LINEAR = frozenset({"linear"})
_BNB = frozenset({"linear", "conv1d"})

PACKINGS: dict[str, Packing] = {
    "bnb-int8": Packing(_BNB, lambda rows, columns, size: rows * columns + 4 * rows),
    "bnb-nf4": Packing(_BNB, _bnb_4bit),
    "bnb-nf4-double": Packing(_BNB, _bnb_4bit_double),
    "bnb-fp4": Packing(_BNB, _bnb_4bit),
    "bnb-fp4-double": Packing(_BNB, _bnb_4bit_double),
    "torchao-int8": Packing(_LINEAR, lambda rows, columns, size: rows * columns + (4 + 1) * rows),
    "torchao-fp8": Packing(_LINEAR, lambda rows, columns, size: rows * columns + 4 * rows),
    "torchao-int4": Packing(_LINEAR, _torchao_int4),
    "quanto-int8": Packing(_LINEAR, lambda rows, columns, size: rows * columns + size * rows + _QUANTO_SCALES),
    "quanto-int4": Packing(_LINEAR, _quanto_int4),
    "mxfp4": Packing(frozenset({"expert"}), _mxfp4),
}
