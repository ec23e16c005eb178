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
    `dtype`: of the activations."""
    import torch

    packed = max(parts, key=lambda part: part.numel() * part.element_size())
    first = packed[: max(1, len(packed) * _OVERWRITTEN // packed.nbytes)]
    with torch.inference_mode():
        given = _given(module, dtype, packed.device)
        before, kept = module(*given).clone(), first.clone()
        try:
            first.zero_()
            after = module(*given)
        finally:
            first.copy_(kept)
    return not torch.equal(before.view(torch.uint8), after.view(torch.uint8))  # bytes: no number equals itself


def _given(module: Any, dtype: Any, device: Any) -> tuple[Any, ...]:
    """One token for a linear layer (1, 1, in); for experts (1, in) with the first of them and their shares (1, top)."""
    import torch

    if hasattr(module, "in_features"):
        return (torch.linspace(-1, 1, module.in_features, device=device).to(dtype).view(1, 1, -1),)
    top = module.config.num_experts_per_tok
    hidden = torch.linspace(-1, 1, module.config.hidden_size, device=device).to(dtype).view(1, -1)
    shares = torch.full((1, top), 1 / top, dtype=dtype, device=device)
    return hidden, torch.arange(top, device=device).view(1, -1), shares
