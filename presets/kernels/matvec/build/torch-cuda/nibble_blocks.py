"""How bitsandbytes keeps 4-bit weights, and what the kernel for them reads."""

import torch

from .nibble_parts import ASSEMBLY
from .products import HELD_COLUMNS

BLOCK, BLOCKS, CODE = 64, 256, 16  # weights with one scale, scales with one, numbers of 4 bits
ALIGNED = 16  # bytes, where each tensor begins


def matrix(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
    """(rows, columns / 2) uint8, and what `parts` takes apart, float32 or uint8; None for a `Params4bit` that no kernel
    reads: in other blocks, in float32, or whose scales do not lie together (backend/worker/patch/quantized.py)."""
    state = weight.quant_state
    if torch.compiler.is_compiling() or state is None or weight.dtype != torch.uint8:
        return None
    if torch.cuda.get_device_capability() < (8, 0):  # whose tensor cores have no such product
        return None
    if state.blocksize != BLOCK or state.dtype not in ASSEMBLY or (state.nested and state.state2.blocksize != BLOCKS):
        return None
    rows, columns = state.shape
    if columns % BLOCK or columns > HELD_COLUMNS:
        return None
    nested = [state.state2.code, state.offset, state.state2.absmax] if state.nested else []
    begin = at = state.code.data_ptr()
    for one in (state.code, *nested, state.absmax):
        if one.data_ptr() != at or not one.is_contiguous():
            return None
        at += one.nbytes + -one.nbytes % ALIGNED
    whole = state.code.as_strided(((at - begin) // 4,), (1,))
    return weight.view(rows, columns // 2), whole.view(torch.uint8) if nested else whole


def parts(scale: torch.Tensor, blocks: int) -> tuple[torch.Tensor, ...]:
    """What lies together, in the order of the kernel: scales of the blocks, float32 or uint8; the 16 numbers; and of
    double quantization, which is told by the dtype, 256 numbers, their scales, and offsets, one for all or one a row.

    Each begins ALIGNED, so up to three numbers of no meaning are at the end of each.
    """
    if scale.dtype != torch.uint8:
        return (scale[CODE:], *[scale] * 4)
    words, codes = scale.view(torch.float32), CODE + 256
    last = words.numel() - _padded(blocks)
    units = last - _padded(4 * -(-blocks // BLOCKS))
    return words[last:].view(torch.uint8), words, words[CODE:codes], words[units:last], words[codes:units]


def _padded(size: int) -> int:
    """Words of a tensor of as many bytes."""
    return (size + -size % ALIGNED) // 4
