"""Whether a layer multiplies with its packed weight, and not with a copy beside it.

Its output must change where the packed bytes are overwritten for a moment. On a CPU alone: there it is tried with each
library.
"""

from collections.abc import Sequence
from typing import Any


def multiplies_with(module: Any, parts: Sequence[Any], dtype: Any) -> bool:
    """`parts`: the plain tensors of the module's packed weight, of which the largest is overwritten and restored.
    `dtype`: of the activations."""
    import torch

    packed = max(parts, key=lambda part: part.numel() * part.element_size()).view(torch.uint8)
    with torch.inference_mode():
        given = torch.linspace(-1, 1, module.in_features).to(dtype).view(1, 1, -1)
        before, kept = module(given).clone(), packed.clone()
        try:
            packed.zero_()
            after = module(given)
        finally:
            packed.copy_(kept)
    return not torch.equal(before, after)
