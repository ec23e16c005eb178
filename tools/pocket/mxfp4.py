"""MXFP4: blocks of 32 four-bit floats (E2M1) that share one power of two.

The layout is that of the gpt-oss checkpoints: a weight (experts, in, out) is stored as blocks
(experts, out, in / 32, 16), two values a byte with the first in the low half, and scales (experts, out, in / 32) with
a bias of 127. https://www.opencompute.org/documents/ocp-microscaling-formats-mx-v1-0-spec-final-pdf
"""

import torch
from torch import Tensor

BLOCK = 32
MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def quantize(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Quantize (experts, in, out); of two candidate scales a block takes the one with the smaller squared error."""
    rows = weight.float().transpose(1, 2)  # (E, out, in)
    blocks = rows.reshape(*rows.shape[:2], -1, BLOCK)
    top = blocks.abs().amax(-1, keepdim=True).clamp(min=2.0**-120)
    low = torch.floor(torch.log2(top)) - 2  # 6 = 1.5 * 2 ** 2 is the largest magnitude
    tried = [(_round(blocks, low + more), low + more) for more in (0, 1)]
    errors = [((value(code) * 2.0**power - blocks) ** 2).sum(-1, keepdim=True) for code, power in tried]
    better = errors[1] < errors[0]
    code = torch.where(better, tried[1][0], tried[0][0])
    power = torch.where(better, tried[1][1], tried[0][1])
    packed = code[..., 0::2] | (code[..., 1::2] << 4)
    return packed.contiguous(), (power[..., 0] + 127).to(torch.uint8).contiguous()


def _round(blocks: Tensor, power: Tensor) -> Tensor:
    """Give the four-bit codes nearest to blocks / 2 ** power."""
    scaled = blocks / 2.0**power
    grid = torch.tensor(MAGNITUDES)
    middles = (grid[1:] + grid[:-1]) / 2
    size = torch.bucketize(scaled.abs().contiguous(), middles)
    return (size + 8 * (scaled < 0)).to(torch.uint8)


def value(code: Tensor) -> Tensor:
    """Decode four-bit floats."""
    grid = torch.tensor(MAGNITUDES + tuple(-value for value in MAGNITUDES))
    return grid[code.long()]
