"""Products of several vectors, a token of each text of a batch: run on a CPU, they are those of double precision."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.support.kernels_on_cpu import kernels_on_cpu

TILES = {"BN": 16, "BK": 64, "num_warps": 4, "num_stages": 2}
LIMITS = {torch.float32: 1e-5, torch.bfloat16: 4e-3}
LARGEST = {torch.int8: 127.0, torch.float8_e4m3fn: 448.0}


@pytest.fixture(scope="module")
def kernels() -> Iterator[Any]:
    with kernels_on_cpu("rows") as loaded:
        yield loaded


@pytest.fixture
def hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))


def packed(w: torch.Tensor, kind: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of 8 bits and their scales."""
    scale = w.abs().amax(1) / LARGEST[kind]
    scaled = w / scale[:, None]
    return (scaled.round() if kind == torch.int8 else scaled).to(kind), scale


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        (torch.float32, None),
        (torch.bfloat16, None),
        (torch.float32, torch.int8),
        (torch.float32, torch.float8_e4m3fn),
        (torch.bfloat16, torch.int8),  # fp8 is widened to bfloat16 in assembly
    ],
)
@pytest.mark.parametrize(("count", "rows", "columns"), [(2, 40, 192), (17, 32, 64), (8, 33, 80)])
@pytest.mark.usefixtures("hopper")
def test_a_product_is_that_of_double_precision(
    kernels: Any, dtype: torch.dtype, kind: torch.dtype | None, turned: int, count: int, rows: int, columns: int
) -> None:
    """Gated, activated or neither; tiles that are whole and not; rows of 8 bits (`kind`) and of the vectors' format."""
    torch.manual_seed(rows)
    x, residual = torch.randn(count, 1, columns).to(dtype), torch.randn(count, 1, rows).to(dtype)
    for gated, acted, gelu in ((0, 0, 0), (1, 0, 0), (1, 0, 1), (0, 1, 1)):
        w, bias, scale = torch.randn(rows * (1 + gated), columns), torch.randn(rows * (1 + gated)).to(dtype), None
        if kind is None:
            w = w.to(dtype)
            whole = w.double()
        else:
            w, scale = packed(w, kind)
            whole = w.double() * scale.double()[:, None]
        assert kernels.rows.fits(w)
        expected = x.double() @ whole.T + bias.double()
        if gated or acted:
            first, second = expected.chunk(2, -1) if gated else (expected, 1)
            act = torch.nn.functional.gelu(first, approximate="tanh") if gelu else torch.nn.functional.silu(first)
            expected = act * second
        expected = expected + residual.double()
        out = kernels.rows.by_tiles(
            x, w, bias, residual, bool(gated), bool(gelu), TILES | {"TURNED": turned}, acted=bool(acted), scale=scale
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
