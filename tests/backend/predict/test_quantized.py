"""Bytes of one quantized matrix, added up by hand from the libraries' layouts; the slow tier counts real tensors."""

from dataclasses import replace

import pytest

from tokendyno.backend.models import resolve
from tokendyno.backend.models.facts import Matrix
from tokendyno.backend.models.stored import StoredFormat
from tokendyno.backend.plan import CACHES
from tokendyno.backend.predict.memory import peak_bytes
from tokendyno.backend.predict.quantized import PACKINGS, stored_packing
from tokendyno.backend.predict.setup import Setup
from tokendyno.backend.predict.shape import Shape

SQUARE = 256 * 256
TABLE = 16 * 4  # a lookup table of 16 float32 values
MATRICES = [
    # choice, rows, columns, bytes of a dense element, bytes: codes, then scales and what else there is
    ("bnb-int8", 256, 256, 2, SQUARE + 256 * 4),
    ("bnb-nf4", 256, 256, 2, SQUARE // 2 + (SQUARE // 64) * 4 + TABLE),
    ("bnb-nf4", 3, 43, 2, 65 + 3 * 4 + TABLE),  # 129 weights: 65 bytes, 3 blocks
    ("bnb-fp4", 256, 256, 4, SQUARE // 2 + (SQUARE // 64) * 4 + TABLE),
    ("bnb-nf4-double", 256, 256, 2, SQUARE // 2 + 1024 + 4 * 4 + TABLE + 256 * 4 + 4),
    ("bnb-nf4-double", 257, 64, 2, 257 * 32 + 257 + 2 * 4 + TABLE + 256 * 4 + 4),
    ("torchao-int8", 256, 256, 2, SQUARE + 256 * 4 + 256),  # a scale and a zero point per row
    ("torchao-fp8", 256, 256, 2, SQUARE + 256 * 4),
    ("torchao-int4", 256, 1024, 2, 256 * 512 + 256 * 8 * 2 * 2),
    ("torchao-int4", 4, 128, 2, 8 * 512 + 8 * 8 * 2 * 2),  # padded to 8 rows and 1,024 columns
    ("torchao-int4", 8, 1152, 2, 8 * 1024 + 8 * 16 * 2 * 2),
    ("torchao-int4", 256, 192, 2, 256 * 192 * 2),  # left dense
    ("quanto-int8", 256, 256, 2, SQUARE + 256 * 2 + 8),
    ("quanto-int8", 256, 256, 4, SQUARE + 256 * 4 + 8),
    ("quanto-int4", 256, 256, 2, SQUARE // 2 + 256 * 2 * (2 + 2) + 8),
    ("quanto-int4", 256, 192, 2, 256 * 96 + 256 * 2 * (2 + 2) + 8),  # groups of 96
    ("quanto-int4", 256, 160, 2, 256 * 80 + 256 * 5 * (2 + 2) + 8),  # groups of 32
    ("quanto-int4", 256, 320, 2, 256 * 160 + 256 * 5 * (2 + 2) + 8),  # groups of 64
    ("quanto-int4", 3, 150, 2, 225 + 3 * (2 + 2) + 8),
    ("quanto-int4", 256, 64, 2, 256 * 32 + 256 * (2 + 2) + 8),  # one group for each row
    ("quanto-int4", 256, 150, 2, 256 * 75 + 256 * (2 + 2) + 8),  # no group size fits
    ("mxfp4", 256, 256, 2, SQUARE // 2 + SQUARE // 32 + 256 * 2),
    ("mxfp4", 256, 256, 4, SQUARE // 2 + SQUARE // 32),
]  # fmt: skip


@pytest.mark.parametrize(("choice", "rows", "columns", "size", "expected"), MATRICES)
def test_a_matrix_takes_its_codes_and_scales(choice: str, rows: int, columns: int, size: int, expected: int) -> None:
    assert PACKINGS[choice].matrix_bytes(rows, columns, size) == expected


def test_what_is_multiplied_in_its_codes_needs_no_dense_copy_and_the_others_need_one_of_the_largest_matrix() -> None:
    facts = replace(
        resolve("random:Qwen3-0.6B"),
        matrices=(Matrix("linear", 2, 512, 256), Matrix("linear", 2, 128, 128), Matrix("embedding", 1, 9, 256)),
    )
    for choice in PACKINGS:
        if choice == "mxfp4":
            continue
        copies = 0 if choice == "torchao-int4" else 1
        assert PACKINGS[choice].scratch_copies == copies
        one, two = (
            peak_bytes(Shape(facts, Setup(quantization=choice, dtype=dtype, cache=CACHES["static"]), 1, 1)).workspace
            - peak_bytes(Shape(facts, Setup(dtype=dtype, cache=CACHES["static"]), 1, 1)).workspace
            for dtype in ("bfloat16", "float32")
        )
        assert (one, two) == (copies * 512 * 256 * 2, copies * 512 * 256 * 4), choice


def test_a_dense_copy_of_gate_and_up_is_one_if_they_are_fused() -> None:
    """Of the equal matrices of each layer, but not of those after them, of which one may be larger."""
    layers = resolve("random:Qwen3-0.6B").layers
    rows, columns = Matrix("linear", 2 * layers, 512, 256), Matrix("linear", layers, 512, 256, "columns")
    wider = Matrix("linear", layers, 256, 1536, "columns")
    for matrices, apart, fused in (((rows, columns), 1, 2), ((rows, wider), 3, 3), ((columns,), 1, 1)):
        facts = replace(resolve("random:Qwen3-0.6B"), matrices=matrices)
        dense, packed, joined = (
            peak_bytes(Shape(facts, Setup(quantization=choice, cache=CACHES["static"], fused=one), 1, 1)).workspace
            for choice, one in (("none", False), ("bnb-nf4", False), ("bnb-nf4", True))
        )
        assert (packed - dense, joined - dense) == (apart * 512 * 256 * 2, fused * 512 * 256 * 2)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (StoredFormat("awq", "awq", bits=4, group=64), SQUARE // 2 + 4 * 256 // 2 + 2 * 4 * 256),
        (StoredFormat("awq", "awq", bits=4), SQUARE // 2 + 256 // 2 + 2 * 256),
        (StoredFormat("gptq", "gptq", bits=8, group=128), SQUARE + 2 * 256 + 2 * 2 * 256 + 4 * 256),
        (StoredFormat("fp8", "fp8", block=(128, 64)), SQUARE + 4 * 2 * 4),
        (StoredFormat("fp8", "fp8"), SQUARE + 4),
    ],
)
def test_a_matrix_of_a_packed_checkpoint_takes_codes_scales_and_zero_points(
    stored: StoredFormat, expected: int
) -> None:
    packing = stored_packing(stored)
    assert packing is not None and packing.matrix_bytes(256, 256, 2) == expected
