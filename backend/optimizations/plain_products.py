"""Number formats of the products with plain weights in a trace."""

import re
from collections import Counter
from typing import Any

from tokendyno.backend.optimizations.proof import Observation
from tokendyno.backend.optimizations.tensor_bytes import local_part


def formats_of_products(observation: Observation) -> Counter[str]:
    """Number formats of the traced products with a matrix as large as a plain linear layer's, but for those that have
    the format of such a weight which the model's class keeps in float32. Products of compiled code, of kernels and of
    packed weights do not show; routers, which some models compute in float32, are other modules."""
    from torch import Tensor, nn

    sizes: dict[tuple[int, ...], set[str]] = {}
    kept = kept_in_float32(observation.model)
    for name, module in observation.model.named_modules():
        weight: Any = local_part(module.weight) if isinstance(module, nn.Linear) else None
        if type(weight) in (nn.Parameter, Tensor) and weight.is_floating_point():
            formats = sizes.setdefault(tuple(weight.shape), set())
            formats |= {"float32"} if kept and kept.search(f"{name}.weight") else set()
    found: Counter[str] = Counter()
    for (shape, dtype), n in observation.trace().formats.items():
        allowed = sizes.get(shape[::-1])  # a product takes it transposed
        if allowed is not None and dtype not in allowed:
            found[dtype] += n
    return found


def narrowed(device: str) -> str:
    """The format to which torch may round the factors of float32 products: "tf32" or "bf16"; "" where it does not."""
    import torch

    backend: Any = torch.backends.cuda if device == "cuda" else torch.backends.mkldnn
    found = str(backend.matmul.fp32_precision)
    return found if found in ("tf32", "bf16") else ""


def autocast(device: str) -> str:
    """The format in which torch.autocast computes products on this device; "" where it is off."""
    import torch

    enabled = torch.is_autocast_enabled(device)
    return str(torch.get_autocast_dtype(device)).removeprefix("torch.") if enabled else ""


def kept_in_float32(model: Any) -> re.Pattern[str] | None:
    """Names of parameters that transformers keeps in float32 for this class, whatever the dtype."""
    names = [*(getattr(model, "_keep_in_fp32_modules", None) or ())]
    names += getattr(model, "_keep_in_fp32_modules_strict", None) or ()
    return re.compile("|".join(map(re.escape, names))) if names else None
