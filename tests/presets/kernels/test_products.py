"""Products of one vector, by slabs, by blocks and by whole rows: run on a CPU, they are those of double precision."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.support.fused_products import in_double
from tests.support.kernels_on_cpu import Kernel, kernels_on_cpu

SLAB = {"ROWS": 2, "num_warps": 4}
BLOCKS = {"BN": 4, "BK": 128, "STAGES": 1, "AHEAD": 0, "num_warps": 2}
ROWS = {"BN": 2, "STAGES": 1, "CTAS": 1 << 30, "num_warps": 4}
PERSISTENT = {"BN": 4, "STAGES": 3, "CTAS": 3, "num_warps": 4}
KERNELS = {"slab": SLAB, "block": BLOCKS, "stream": ROWS, "persistent": PERSISTENT}
RIDES = ("", "n", "nbr", "nbrg", "lbra", "br")
"""Letters of what a product is fused with: norm, layer norm, bias, residual, gate (SiLU), activation (GELU)."""


@pytest.fixture(scope="module")
def kernels() -> Iterator[Any]:
    with kernels_on_cpu("products", "slabs") as loaded:
        yield loaded


def error(
    kernels: Any,
    ride: str,
    how: dict[str, int] | None,
    rows: int,
    columns: int,
    dtype: Any = torch.float32,
    eight_bits: bool = False,
    offset: float = 0.0,
) -> float:
    """Relative, against double precision; outputs hold no numbers before."""
    torch.manual_seed(rows)

    def random(*shape: int) -> Any:
        return torch.randn(*shape).to(dtype)

    total = 2 * rows if "g" in ride else rows
    x, norm, shift, bias, residual = random(columns) + 1, random(columns), random(columns), random(total), random(rows)
    w, scale = random(total, columns) * 0.05, None
    if eight_bits:
        w, scale = torch.randint(-128, 128, w.shape, dtype=torch.int8), random(total).abs() / 1e3
    whole = w.double() if scale is None else w.double() * scale.double()[:, None]
    expected = in_double(whole, x, ride, norm, bias, residual, shift, offset)
    out = torch.full((rows,), float("nan"), dtype=dtype)
    kernels.products.product(
        x,
        w,
        out,
        norm=norm if set("nl") & set(ride) else None,
        eps=1e-5,
        scale=scale,
        bias=bias if "b" in ride else None,
        residual=residual if "r" in ride else None,
        gated="g" in ride,
        shift=shift if "l" in ride else None,
        acted="a" in ride,
        gelu="a" in ride,
        tuned=how,
        offset=offset,
    )
    return float((out.double() - expected).norm() / expected.norm())


@pytest.mark.parametrize(("rows", "columns"), [(37, 384), (8, 128), (33, 256)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_product_is_that_of_double_precision(kernels: Any, kernel: str, rows: int, columns: int) -> None:
    for ride in RIDES:
        Kernel.launched.clear()
        assert error(kernels, ride, KERNELS[kernel], rows, columns) < 1e-5, ride
        assert Kernel.launched == [f"tokendyno_{kernel.replace('persistent', 'stream')}_product"]
    assert error(kernels, "nbrg", KERNELS[kernel], rows, columns, offset=1.0) < 1e-5


@pytest.mark.parametrize("kernel", ["block", "stream"])
def test_columns_that_are_no_multiple_of_a_block_are_multiplied_too(kernels: Any, kernel: str) -> None:
    for ride in RIDES:
        assert error(kernels, ride, KERNELS[kernel], 9, 208) < 1e-5, ride


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_it_is_rounded_in_its_format_alone(kernels: Any, kernel: str, dtype: str) -> None:
    for ride in RIDES:
        found = error(kernels, ride, KERNELS[kernel], 33, 256, getattr(torch, dtype))
        assert found < {"bfloat16": 4e-3, "float16": 5e-4}[dtype], ride


def test_8_bits_and_a_scale_are_multiplied_as_they_are(kernels: Any) -> None:
    """By blocks; the kernels of whole rows do it in assembly."""
    for ride in ("", "n", "nbr", "nbrg"):
        assert error(kernels, ride, BLOCKS, 37, 384, eight_bits=True) < 1e-5, ride


def test_the_kernels_for_this_card_multiply_its_shapes(kernels: Any) -> None:
    """As they are cut without being asked."""
    for rows, columns in ((33, 1024), (16, 1152), (9, 3072), (12, 4096)):
        for ride in ("nbr", "nbrg"):
            assert error(kernels, ride, None, rows, columns) < 1e-5, (rows, columns, ride)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_slab_adds_up_its_vector_as_a_kernel_of_its_own_does(kernels: Any, dtype: str) -> None:
    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    part, old, norm, after = (torch.randn(1152).to(kind) for _ in range(4))
    w = (torch.randn(2 * 40, 1152) * 0.05).to(kind)
    middle, sums = (torch.full_like(old, float("nan")) for _ in range(2))
    out, both = (torch.full((40,), float("nan"), dtype=kind) for _ in range(2))
    kernels.products.add_norm(part, norm, old, middle, 1e-6, 1.0)
    normed = part.double() * torch.rsqrt(part.double().pow(2).mean() + 1e-6) * (norm.double() + 1)
    assert torch.allclose(middle.double(), old.double() + normed, rtol=1e-2, atol=1e-6 if dtype == "float32" else 0.02)
    more = {"norm": after, "eps": 1e-6, "gated": True, "gelu": True, "offset": 1.0, "tuned": SLAB}
    kernels.products.product(middle, w, out, **more)
    kernels.products.product(part, w, both, added=(norm, old, sums), **more)
    assert torch.equal(sums, middle) and torch.equal(both, out)
