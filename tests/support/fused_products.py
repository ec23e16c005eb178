"""A matrix times a vector, with what a kernel fuses to it, in double precision."""

from typing import Any


def in_double(
    w: Any,
    x: Any,
    ride: str,
    norm: Any,
    bias: Any,
    residual: Any,
    shift: Any = None,
    offset: float = 0.0,
    rounded: Any = None,
    gain: float = 1.0,
) -> Any:
    """(N,) float64. ride: letters of what is fused: norm (RMSNorm), l (LayerNorm, with `shift`), bias, gate (SiLU of
    the first half of the rows, times the second), activation (GELU), residual.

    w        (N, K), or with a gate (2N, K)
    offset   added to the weights of the norm
    rounded  the dtype that a normalized vector has in a model's own code
    gain     of what is added to the residual
    """
    import torch
    from torch.nn.functional import gelu, layer_norm, silu

    wide = x.double()
    if "n" in ride:
        wide = wide * (norm.double() + offset) * torch.rsqrt(wide.pow(2).mean() + 1e-5)
    if "l" in ride:
        wide = layer_norm(wide, wide.shape, norm.double(), shift.double(), 1e-5)
    if rounded is not None and set("nl") & set(ride):
        wide = wide.to(rounded).double()
    found = w.double() @ wide
    if "b" in ride:
        found = found + bias.double()
    if "g" in ride:
        first, second = found.chunk(2)
        found = silu(first) * second
    if "a" in ride:
        found = gelu(found, approximate="tanh")
    return gain * found + residual.double() if "r" in ride else found


def product_error(
    product: Any, w: Any, scale: Any, plain: Any, ride: str, dtype: Any, outlier: float = 1.0, **more: Any
) -> float:
    """Relative, of a kernel's product on a GPU with random vectors, against double precision; its output holds no
    numbers before.

    plain    (N, K), what `w` and `scale` stand for; with a gate (2N, K)
    outlier  factor of one element of the vector: in trained models one is far larger than the others
    more     further arguments of the product
    """
    import torch

    def random(numbers: int) -> Any:
        return torch.randn(numbers, device="cuda", dtype=dtype)

    total, columns = plain.shape
    rows = total // 2 if "g" in ride else total
    x, norm, bias, residual = random(columns), random(columns), random(total), random(rows)
    x[columns // 3] *= outlier
    expected = in_double(plain, x, ride, norm, bias, residual, offset=more.get("offset", 0.0), gain=0.4)
    out = torch.full((rows,), float("nan"), device="cuda", dtype=dtype)
    fused = {"norm": norm if "n" in ride else None, "bias": bias if "b" in ride else None, "eps": 1e-5}
    fused |= {"residual": residual, "gain": 0.4} if "r" in ride else {}
    fused["gated"] = "g" in ride
    product(x, w, out, scale=scale, **fused, **more)
    return float((out.double() - expected).norm() / expected.norm())
