"""Bytes of a quantized weight matrix, for each choice of the axis `quantization`.

Read from the quantization code of bitsandbytes 0.50, torchao 0.18, optimum-quanto 0.2.7 and transformers 5.22; tests
load small models and count the tensors. Embeddings, the output head, norms, biases and routers are never quantized.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from tokendyno.backend.models.stored import StoredFormat

INT4_GROUP = 128
"""Columns that share a scale in torchao's int4."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How a choice stores quantized weights.

    matrix_bytes    (rows, columns, bytes of a dense element) -> bytes of one quantized matrix, scales included
    scratch_copies  dense copies of its largest matrix that exist at once while it multiplies (4-bit bitsandbytes makes
                    one where more than one row is multiplied: bitsandbytes/autograd/_functions.py)
    """

    library: str
    kinds: frozenset[str]
    matrix_bytes: Callable[[int, int, int], int]
    scratch_copies: int = 0


def _bnb_4bit(rows: int, columns: int, size: int) -> int:
    """Two weights per byte, a float32 scale for 64 weights, a table of 16 float32 values."""
    numbers = rows * columns
    return ceil(numbers / 2) + 4 * ceil(numbers / 64) + 16 * 4


def _bnb_4bit_double(rows: int, columns: int, size: int) -> int:
    """The scales as bytes, with a float32 scale for 256 of them, a table of 256 values and an offset."""
    numbers = rows * columns
    blocks = ceil(numbers / 64)
    return ceil(numbers / 2) + blocks + 4 * ceil(blocks / 256) + (16 + 256 + 1) * 4


def _quanto_int4(rows: int, columns: int, size: int) -> int:
    """Two weights per byte, a scale and a zero point per group of up to 128 columns (per row if no group size fits)."""
    groups = next((columns // group for group in (128, 96, 64, 32) if not columns % group), 1)
    return ceil(rows * columns / 2) + 2 * size * rows * groups + _QUANTO_SCALES


def _torchao_int4(rows: int, columns: int, size: int) -> int:
    """Tinygemm's layout: rows padded to 8 and columns to 1,024, a bfloat16 scale and zero point for each group."""
    if columns % INT4_GROUP:
        return rows * columns * size
    numbers = 8 * ceil(rows / 8) * 1024 * ceil(columns / 1024)
    return numbers // 2 + 4 * numbers // INT4_GROUP


def _mxfp4(rows: int, columns: int, size: int) -> int:
    """Two weights per byte and one byte of scale for 32 of them (OCP Microscaling Formats v1.0, table 1).

    The kernels also turn one bias per row into float32. Hopper's layout pads rows to 16 and columns to 64; this is not
    counted, because no published gpt-oss needs it, only the embedded model.
    """
    return rows * columns // 2 + rows * columns // 32 + rows * (4 - size)


_QUANTO_SCALES = 2 * 4  # of input and output, float32, unused
_LINEAR = frozenset({"linear"})
_BNB = frozenset({"linear", "conv1d"})

PACKINGS: dict[str, Packing] = {
    "bnb-int8": Packing("bitsandbytes", _BNB, lambda rows, columns, size: rows * columns + 4 * rows, 1),
    "bnb-nf4": Packing("bitsandbytes", _BNB, _bnb_4bit, 1),
    "bnb-nf4-double": Packing("bitsandbytes", _BNB, _bnb_4bit_double, 1),
    "bnb-fp4": Packing("bitsandbytes", _BNB, _bnb_4bit, 1),
    "bnb-fp4-double": Packing("bitsandbytes", _BNB, _bnb_4bit_double, 1),
    "torchao-int8": Packing("torchao", _LINEAR, lambda rows, columns, size: rows * columns + (4 + 1) * rows, 1),
    "torchao-fp8": Packing("torchao", _LINEAR, lambda rows, columns, size: rows * columns + 4 * rows, 1),
    "torchao-int4": Packing("torchao", _LINEAR, _torchao_int4),
    "quanto-int8": Packing(
        "quanto", _LINEAR, lambda rows, columns, size: rows * columns + size * rows + _QUANTO_SCALES, 1
    ),
    "quanto-int4": Packing("quanto", _LINEAR, _quanto_int4, 1),
    "mxfp4": Packing("mxfp4", frozenset({"expert"}), _mxfp4),
}


# --- checkpoints that are packed already ------------------------------------------------------------


def stored_packing(stored: StoredFormat) -> Packing | None:
    """How a packed checkpoint stores its matrices once loaded; None if they are dense then.

    Of GPTQ and AWQ: the layout in the file (`qweight`, `qzeros`, `scales`), which gptqmodel's kernels rearrange without
    changing its size by more than a few percent. Of FP8: `FP8Linear` and `FP8Experts` of transformers.
    """
    match stored.layout:
        case "choice":
            return PACKINGS[stored.choice]
        case "gptq":
            return Packing("gptqmodel", _LINEAR, lambda rows, columns, size: _awq(stored, rows, columns) + 4 * columns)
        case "awq":
            return Packing("gptqmodel", _LINEAR, lambda rows, columns, size: _awq(stored, rows, columns))
        case "fp8":
            return Packing("fp8", _LINEAR | {"expert"}, lambda rows, columns, size: _fp8(stored, rows, columns))
    return None


def _awq(stored: StoredFormat, rows: int, columns: int) -> int:
    """Codes, and a packed zero point and a float16 scale for each group and row."""
    groups = ceil(columns / stored.group) if stored.group else 1
    return ceil(rows * columns * stored.bits / 8) + ceil(groups * rows * stored.bits / 8) + 2 * groups * rows


def _fp8(stored: StoredFormat, rows: int, columns: int) -> int:
    """A byte a number and a float32 scale for each block."""
    high, wide = stored.block
    blocks = ceil(rows / high) * ceil(columns / wide) if high else 1
    return rows * columns + 4 * blocks


def library_of(quantization: str) -> str:
    """The library that quantizes like that; "" for a choice that leaves weights dense."""
    packing = PACKINGS.get(quantization)
    return packing.library if packing else ""
