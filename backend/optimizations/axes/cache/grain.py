"""Whether keys and values have the precision of their number format: what was rounded further keeps few values."""

from typing import Any

from backend.optimizations.tensor_bytes import keeps_tokens, quantized_parts

_NUMBERS = 2_048
"""Numbers of a tensor that are looked at."""
_LEAST = 512
"""Fewer tell nothing."""
_TOKENS = 64
_OF_8_BITS = 128
"""Magnitudes that 8 bits have, whatever their scale. Of 2,048 normally distributed numbers 700 differ in bfloat16; of a
text that is one token over and over, 300."""
_OF_4_BITS, _WIDTH = 8, 32
"""Magnitudes in a row of so many numbers at least, which share a scale."""


def is_coarse(layer: Any, of_16_bits: bool = False) -> bool:
    """Whether the keys or values that this layer holds as numbers were rounded to 8 bits with one scale, or to 4; in
    float32 also those rounded to 16, unless they come so (`of_16_bits`), and numbers of 8 bits only if they were
    rounded to 4. False where it holds too few to tell."""
    if not keeps_tokens(layer) or quantized_parts(layer):
        return False
    pair = [part for part in (layer.keys, layer.values) if part is not None and part.is_floating_point()]
    seen = int(layer.get_seq_length()) if hasattr(layer, "get_seq_length") else 0
    return any(_coarse(part[:, :, : seen or None], of_16_bits) for part in pair)


def _coarse(part: Any, of_16_bits: bool) -> bool:
    """Of (B, heads, tokens, D)."""
    if part.ndim != 4 or not part.numel() or part.is_meta:
        return False
    import torch

    tokens = part[0, :, :: max(1, part.shape[2] // _TOKENS)][:, :_TOKENS].transpose(0, 1)  # (tokens, heads, D)
    packed = part.element_size() == 1
    tokens = tokens.float() if packed else tokens
    rows = torch.unique(tokens.flatten(1), dim=0)  # the same tokens give the same values without their place
    rows = rows[(rows != 0).any(-1)].abs()  # (T, heads * D), without slots that nothing was written to
    numbers = rows[_first_seen(rows) & (rows != 0)][:_NUMBERS]  # where a part of a key is not turned, only that part
    if len(numbers) < _LEAST:
        return False
    different = len(torch.unique(numbers))
    fine = part.dtype == torch.float32 and not of_16_bits
    most = len(numbers) // 2 if fine else _OF_8_BITS  # 16 bits keep a third
    if not packed and different <= most:
        return True
    return part.shape[-1] >= _WIDTH and _levels(rows.reshape(-1, part.shape[-1])) <= _OF_4_BITS


def _first_seen(rows: Any) -> Any:
    """Whether a number (T, N) is the first like it in its column."""
    import torch

    numbers, order = rows.sort(dim=0, stable=True)
    new = torch.ones_like(rows, dtype=torch.bool)
    new[1:] = numbers.diff(dim=0) != 0
    return torch.zeros_like(new).scatter_(0, order, new)


def _levels(rows: Any) -> int:
    """Different magnitudes in most of these rows (N, D)."""
    return int(((rows.sort(-1).values.diff(dim=-1) != 0).sum(-1) + 1).median())
