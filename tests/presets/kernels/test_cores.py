"""Products with 8-bit rows on tensor cores, assembly included: run on a CPU, they are those of double precision."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.support.fused_products import in_double
from tests.support.kernels_on_cpu import Kernel, kernels_on_cpu

CUTS = [
    {"CHUNKS": 4, "DEPTH": 1, "CTAS": 1 << 30, "num_warps": 4},
    {"CHUNKS": 1, "DEPTH": 3, "CTAS": 2, "num_warps": 8},
    {"CHUNKS": 2, "DEPTH": 2, "CTAS": 3, "num_warps": 4},
]


@pytest.fixture(scope="module")
def kernels() -> Iterator[Any]:
    with kernels_on_cpu("products") as loaded:
        yield loaded


def weights(kind: str, rows: int, columns: int) -> tuple[Any, Any]:
    """Random rows and a scale each; of floats every value that there is but for NaN."""
    whole = torch.randint(-128, 128, (rows, columns), dtype=torch.int8)
    if kind == "fp8":
        whole = torch.where((whole & 127) == 127, 0, whole).view(torch.float8_e4m3fn)
    return whole, torch.rand(rows) / 1e3


@pytest.mark.parametrize("kind", ["int8", "fp8"])
@pytest.mark.parametrize("how", CUTS)
def test_rows_are_multiplied_however_they_are_cut(kernels: Any, kind: str, how: dict[str, int]) -> None:
    """One element of the vector is far larger than the others, as in trained models."""
    torch.manual_seed(0)
    for rows, ride in ((37, ""), (37, "nbr"), (32, "nbrg")):
        total, columns = 2 * rows if "g" in ride else rows, 2048
        w, scale = weights(kind, total, columns)
        x, norm, bias, residual = (torch.randn(n) for n in (columns, columns, total, rows))
        x[columns // 3] *= 300
        x *= 1e-3  # so that the norm's eps counts
        offset = 1.0 if ride == "nbr" else 0.0
        expected = in_double(w.float().double() * scale.double()[:, None], x, ride, norm, bias, residual, offset=offset)
        out = torch.full((rows,), float("nan"))
        Kernel.launched.clear()
        kernels.products.product(
            x,
            w,
            out,
            norm=norm if "n" in ride else None,
            eps=1e-5,
            scale=scale,
            bias=bias if "b" in ride else None,
            residual=residual if "r" in ride else None,
            gated="g" in ride,
            tuned=how,
            offset=offset,
        )
        assert Kernel.launched == ["tokendyno_core_product"]
        assert float((out.double() - expected).norm() / expected.norm()) < 2e-5, ride
