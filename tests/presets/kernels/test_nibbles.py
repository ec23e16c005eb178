"""Products with bitsandbytes' 4 bits, assembly included, run on a CPU: of exactly what bitsandbytes dequantizes."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.support.fused_products import in_double
from tests.support.kernels_on_cpu import kernels_on_cpu

pytestmark = pytest.mark.slow  # bitsandbytes takes seconds to import

KINDS = [("nf4", False), ("nf4", True), ("fp4", False), ("fp4", True)]
CUTS = [
    {"num_warps": 8, "CTAS": 1 << 30, "KEPT": False, "AHEAD": False},
    {"num_warps": 4, "CTAS": 2, "KEPT": True, "AHEAD": True},
    {"num_warps": 1, "CTAS": 3, "KEPT": False, "AHEAD": True},
]


@pytest.fixture(scope="module")
def kernels() -> Iterator[Any]:
    with kernels_on_cpu("nibbles") as loaded:
        yield loaded


def packed(kernels: Any, rows: int, columns: int, kind: str, double: bool, dtype: Any) -> tuple[Any, Any, Any]:
    """What the kernel reads, and (rows, columns) as bitsandbytes dequantizes it."""
    from bitsandbytes.functional import dequantize_4bit
    from bitsandbytes.nn import Params4bit

    from tokendyno.backend.worker.patch.four_bits import lay_together

    torch.manual_seed(rows)
    numbers = torch.randn(rows, columns, dtype=dtype) * 0.05
    weight = Params4bit(numbers, requires_grad=False, compress_statistics=double, quant_type=kind).to("cpu")
    plain = dequantize_4bit(weight.data, weight.quant_state)
    lay_together(weight.quant_state)
    return *kernels.nibbles.matrix(weight), plain


@pytest.mark.parametrize(("kind", "double"), KINDS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_unit_vector_gives_the_numbers_of_bitsandbytes(kernels: Any, kind: str, double: bool, dtype: str) -> None:
    made = getattr(torch, dtype)
    words, scale, plain = packed(kernels, 24, 192, kind, double, made)
    for how in CUTS:
        for column in (0, 1, 5, 63, 64, 130, 191):
            one, out = torch.zeros(192, dtype=made), torch.full((24,), float("nan"), dtype=made)
            one[column] = 1
            kernels.nibbles.product(one, words, out, scale=scale, tuned=how)
            assert torch.equal(out, plain[:, column]), (how, column)


@pytest.mark.parametrize("how", [None, *CUTS])
def test_a_product_is_that_of_double_precision(kernels: Any, how: dict[str, int] | None) -> None:
    dtype, columns = torch.bfloat16, 576
    for ride in ("", "nbr", "nbrg"):
        rows = 36 if "g" in ride else 41
        total = 2 * rows if "g" in ride else rows
        words, scale, plain = packed(kernels, total, columns, "nf4", "g" in ride, dtype)
        x, norm, bias, residual = (torch.randn(n, dtype=dtype) for n in (columns, columns, total, rows))
        x *= 3e-3  # so that the norm's eps counts
        expected = in_double(plain, x, ride, norm, bias, residual, offset=1.0, rounded=dtype)
        out = torch.full((rows,), float("nan"), dtype=dtype)
        kernels.nibbles.product(
            x,
            words,
            out,
            norm=norm if "n" in ride else None,
            eps=1e-5,
            scale=scale,
            bias=bias if "b" in ride else None,
            residual=residual if "r" in ride else None,
            gated="g" in ride,
            tuned=how,
            offset=1.0,
        )
        assert float((out.double() - expected).norm() / expected.norm()) < 4e-3, ride
