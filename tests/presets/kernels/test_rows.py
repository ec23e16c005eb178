"""Products of several vectors, a token of each text of a batch: run on a CPU, they are those of double precision."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.support.kernels_on_cpu import kernels_on_cpu

TILES = {"BN": 16, "BK": 64, "num_warps": 4, "num_stages": 2}
LIMITS = {torch.float32: 1e-5, torch.bfloat16: 4e-3}


@pytest.fixture(scope="module")
def kernels() -> Iterator[Any]:
    with kernels_on_cpu("rows") as loaded:
        yield loaded


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize(("count", "rows", "columns"), [(2, 40, 192), (17, 32, 64), (8, 33, 80)])
def test_a_product_is_that_of_double_precision(
    kernels: Any, dtype: torch.dtype, turned: int, count: int, rows: int, columns: int
) -> None:
    """Gated, activated or neither; tiles that are whole and not."""
    torch.manual_seed(rows)
    x, residual = torch.randn(count, 1, columns).to(dtype), torch.randn(count, 1, rows).to(dtype)
    for gated, acted, gelu in ((0, 0, 0), (1, 0, 0), (1, 0, 1), (0, 1, 1)):
        w, bias = (torch.randn(rows * (1 + gated), *shape).to(dtype) for shape in ((columns,), ()))
        assert kernels.rows.fits(w)
        expected = x.double() @ w.double().T + bias.double()
        if gated or acted:
            first, second = expected.chunk(2, -1) if gated else (expected, 1)
            act = torch.nn.functional.gelu(first, approximate="tanh") if gelu else torch.nn.functional.silu(first)
            expected = act * second
        expected = expected + residual.double()
        out = kernels.rows.by_tiles(
            x, w, bias, residual, bool(gated), bool(gelu), TILES | {"TURNED": turned}, acted=bool(acted)
        )
        assert float((out.double() - expected).norm() / expected.norm()) < LIMITS[dtype], (gated, acted, gelu)


@pytest.mark.parametrize("offset", [0.0, 1.0])
@pytest.mark.parametrize("centred", [False, True])
def test_a_norm_of_each_row_is_that_of_double_precision(kernels: Any, centred: bool, offset: float) -> None:
    torch.manual_seed(1)
    x, weight, shift, residual = torch.randn(3, 1, 80) + 2, torch.randn(80), torch.randn(80), torch.randn(3, 1, 80)
    wide, learned = x.double(), weight.double() + offset
    if centred:
        expected = torch.nn.functional.layer_norm(wide, (80,), learned, shift.double(), 1e-5)
    else:
        expected = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5) * learned
    for added in (None, residual):
        out = kernels.rows.norm(x, weight, 1e-5, offset, added, shift=shift if centred else None)
        whole = expected if added is None else expected + added.double()
        assert float((out.double() - whole).norm() / whole.norm()) < 1e-5
