"""Matrix-vector products with 4-bit weights in torchao's `tile_packed_to_4d` layout, made for tensor cores.

A tile is 8 rows. For each group of 128 columns, a row has 64 bytes there: 4 quarters of 4 words of 8 elements. Bits
4 * p of word i of quarter j hold column 32 * i + 8 * (p % 4) + 2 * j + p // 4 of the group (PyTorch's int4mm.cu,
matrix_to_m16n8k16_Bint4_layout). Each row has a bfloat16 scale and zero per group: (value - 8) * scale + zero.
"""

import torch

from . import nibbles, settings
from .parts import Fused
from .settings import Settings

GROUP = 128  # columns with one scale and zero
TILE = 8  # rows


def sizes(qdata: torch.Tensor) -> tuple[int, int]:
    """(rows, columns) of a packed matrix (N / 8, K / 128, 32, 4)."""
    return qdata.shape[0] * TILE, qdata.shape[1] * GROUP


def whole(weight: torch.Tensor) -> bool:
    """Whether an Int4TilePackedTo4dTensor has this layout without padding, judged by the sizes of its parts."""
    rows, columns = weight.shape
    return (
        rows % TILE == columns % GROUP == 0
        and weight.act_pre_scale is None
        and list(weight.block_size) == [1, GROUP]
        and tuple(weight.qdata.shape) == (rows // TILE, columns // GROUP, 32, 4)
        and tuple(weight.scale_and_zero.shape) == (columns // GROUP, rows, 2)
        and weight.scale_and_zero.dtype == torch.bfloat16
        and weight.qdata.is_contiguous()
        and weight.scale_and_zero.is_contiguous()
    )


def product(
    x: torch.Tensor, w: torch.Tensor, out: torch.Tensor, tuned: Settings | None = None, **fused: object
) -> None:
    """As `products.product`; scale: (K / 128, N, 2), scales and zeros. ValueError for a LayerNorm (`shift`), an
    activation without a gate (`acted`), or a vector in float32."""
    around = Fused(**fused)
    if around.shift is not None or around.acted:
        raise ValueError("4-bit weights have neither a LayerNorm before them nor an activation without a gate after")
    if around.scale is None or x.dtype not in nibbles.BIASED:
        raise ValueError("torchao's 4-bit weights need their scales and zeros, and a vector in bfloat16 or float16")
    (total, columns), scale = sizes(w), around.scale
    rows = total // 2 if around.gated else total
    if rows % TILE or scale.shape != (columns // GROUP, total, 2):
        raise ValueError(f"{tuple(w.shape)} and {tuple(scale.shape)} are no matrix of whole tiles and groups")
    how = tuned or settings.for_tiles(rows, columns, around.gated)
    nibbles.tiled_product(x, w, scale.view(torch.int32)[..., 0], out, columns, around, how)
