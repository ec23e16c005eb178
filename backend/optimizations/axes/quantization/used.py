"""Whether a layer multiplies with its packed weight, and not with a copy beside it.

Its output must change where packed bytes are overwritten for a moment.
"""

from collections.abc import Sequence
from typing import Any

_OVERWRITTEN = 1 << 20
"""Bytes of a weight: whole rows, or experts, of the beginning."""


def can_be_tried(module: Any) -> bool:
    """Whether it is known what the module takes: a linear layer, or the experts that our kernels compute."""
    return hasattr(module, "in_features") or type(module).__name__ == "PackedExperts"


def multiplies_with(module: Any, parts: Sequence[Any], dtype: Any) -> bool:
    """`parts`: the plain tensors of the module's packed weight, of which the largest is overwritten and restored.
    `dtype`: of the activations. One token and, of a linear layer, several of two texts must all give something else, in
    at least half as many numbers as were overwritten."""
    import torch

    packed = max(parts, key=lambda part: part.numel() * part.element_size())
    first = packed[: max(1, len(packed) * _OVERWRITTEN // packed.nbytes)]
    least = first.nbytes / packed.nbytes / 2
    with torch.inference_mode():
        given = _given(module, dtype, packed.device)
        before, kept = [module(*one).clone() for one in given], first.clone()
        try:
            first.zero_()
            after = [module(*one) for one in given]
        finally:
            first.copy_(kept)
    return all(bool((_other(*pair) >= least).all()) for pair in zip(before, after, strict=True))


def _other(before: Any, after: Any) -> Any:
    """(texts,) share of outputs that changed for some token of a text. By bytes: NaN does not equal itself."""
    import torch

    size = before.element_size()
    apart = (before.contiguous().view(torch.uint8) != after.contiguous().view(torch.uint8)).unflatten(-1, (-1, size))
    changed = apart.any(-1)
    return changed.flatten(1, -2).any(1).float().mean(-1) if changed.ndim > 2 else changed.float().mean(-1)


def _given(module: Any, dtype: Any, device: Any) -> list[tuple[Any, ...]]:
    """For a linear layer one token (1, 1, in), and eight of each of two texts (2, 8, in); for experts (1, in) with the
    first of them and their shares (1, top)."""
    import torch

    def line(size: int) -> Any:
        return torch.linspace(-1, 1, size, device=device).to(dtype)

    if hasattr(module, "in_features"):
        several = line(16 * module.in_features).view(2, 8, -1)
        return [(line(module.in_features).view(1, 1, -1),), (several,)]
    top = module.config.num_experts_per_tok
    shares = torch.full((1, top), 1 / top, dtype=dtype, device=device)
    return [(line(module.config.hidden_size).view(1, -1), torch.arange(top, device=device).view(1, -1), shares)]
