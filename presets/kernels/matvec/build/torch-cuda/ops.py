"""Matrices that the kernels read, and their products as a torch operator."""

import torch
from torch import nn

from . import nibbles, products, rows, settings, tiles

MOST_COLUMNS = 1 << 16


def matrix(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None] | None:
    """What the kernels read: the rows of a weight and None or, for 8 bits, a scale per row; or 4-bit tiles with scales
    and zeros of their groups; or bitsandbytes' rows with its scales. None if no kernel supports this weight."""
    if type(weight).__name__ == "Params4bit":
        return nibbles.matrix(weight)
    if weight.shape[-1] % 16 or weight.shape[-1] > MOST_COLUMNS:
        return None
    if type(weight) in (nn.Parameter, torch.Tensor):
        return (weight, None) if weight.is_floating_point() and weight.is_contiguous() else None
    if type(weight).__name__ == "Int4TilePackedTo4dTensor":
        whole = weight.shape[-1] <= settings.HELD_COLUMNS and tiles.whole(weight)
        return (weight.qdata, weight.scale_and_zero) if whole else None
    if type(weight).__name__ not in ("Int8Tensor", "Float8Tensor") or weight.act_quant_kwargs is not None:
        return None
    if weight.scale.numel() != weight.shape[0] or getattr(weight, "act_pre_scale", None) is not None:
        return None
    if not products.reads(weight.qdata) or not _symmetric(weight):
        return None
    return weight.qdata, weight.scale.reshape(-1)


def sizes(weight: torch.Tensor) -> tuple[int, int]:
    """(rows, columns) of a weight as returned by `matrix`."""
    if weight.dtype == torch.uint8:
        return weight.shape[0], 2 * weight.shape[1]
    return tiles.sizes(weight) if weight.dtype == torch.int32 else (weight.shape[0], weight.shape[1])


def product(
    x: torch.Tensor, weight: torch.Tensor, out: torch.Tensor, ask: tuple[torch.Tensor, ...] = (), **more: object
) -> None:
    """`out` = `weight` @ `x` with fused operations, by the kernel for this kind of weight; see `products.product`."""
    if weight.dtype == torch.int32:
        tiles.product(x, weight, out, **more)
    elif weight.dtype == torch.uint8:
        nibbles.product(x, weight, out, **more)
    else:
        products.product(x, weight, out, ask, **more)


def _symmetric(weight: torch.Tensor) -> bool:
    """Whether all zero points are 0. Read from the device once per weight and stored on it, for the compiler."""
    if not hasattr(weight, "tokendyno_symmetric"):
        if torch.compiler.is_compiling():
            return False
        zeros = getattr(weight, "zero_point", None)
        weight.tokendyno_symmetric = zeros is None or not bool(zeros.any())
    return bool(weight.tokendyno_symmetric)


def few(x: torch.Tensor, weight: torch.Tensor) -> bool:
    """Whether x (..., K) is one token, or one of each of a few texts that a kernel multiplies with these rows."""
    if x.shape[:-1].numel() == 1:
        return True
    return x.ndim == 3 and x.shape[1] == 1 and x.shape[0] <= settings.MOST_VECTORS and rows.fits(weight)


@torch.library.custom_op("tokendyno_matvec::linear", mutates_args=())
def linear(
    x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor | None, bias: torch.Tensor | None
) -> torch.Tensor:
    """(..., K) of one token, or of several where `rows.fits` -> (..., N)."""
    if x.shape[:-1].numel() > 1:
        return rows.product(x.contiguous(), weight, bias=bias, scale=scale)
    out = torch.empty(*x.shape[:-1], sizes(weight)[0], dtype=x.dtype, device=x.device)
    product(x.contiguous(), weight, out, scale=scale, bias=bias)
    return out


@linear.register_fake
def _(x, weight, scale, bias):
    return x.new_empty(*x.shape[:-1], sizes(weight)[0])
