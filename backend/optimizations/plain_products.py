"""Number formats of the products with plain weights in a trace."""

import copy
from collections import Counter
from typing import Any

from tokendyno.backend.optimizations.proof import Observation
from tokendyno.backend.optimizations.tensor_bytes import local_part


def formats_of_products(observation: Observation) -> Counter[str]:
    """Number formats of the traced products with a matrix as large as a plain linear layer's, but for those that have
    the format of such a weight which the model's class has in float32. Products of compiled code, of kernels and of
    packed weights do not show; routers, which some models compute in float32, are other modules."""
    from torch import Tensor, nn

    sizes: dict[tuple[int, ...], set[str]] = {}
    kept = kept_in_float32(observation.model)
    for name, module in observation.model.named_modules():
        weight: Any = local_part(module.weight) if isinstance(module, nn.Linear) else None
        if type(weight) in (nn.Parameter, Tensor) and weight.is_floating_point():
            formats = sizes.setdefault(tuple(weight.shape), set())
            formats |= {"float32"} if f"{name}.weight" in kept else set()
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


def kept_in_float32(model: Any) -> set[str]:
    """Names of parameters that the model's class has or computes with in float32, whatever the dtype: it lists them
    (`_keep_in_fp32_modules`), or builds them so, as Zamba does its `A_log`, and loading leaves them."""
    import torch

    listed = [*(getattr(model, "_keep_in_fp32_modules", None) or ())]
    listed += getattr(model, "_keep_in_fp32_modules_strict", None) or ()
    every = dict(model.named_parameters(remove_duplicate=False))
    kept = {name for name in every if any(one in name for one in listed)}
    wide = {name for name, one in every.items() if one.dtype == torch.float32}
    if wide - kept and wide < every.keys() and hasattr(model, "_from_config"):
        with torch.device("meta"):
            narrow = type(model)._from_config(copy.deepcopy(model.config), dtype=torch.bfloat16)
        kept |= {name for name, one in narrow.named_parameters(remove_duplicate=False) if one.dtype == torch.float32}
    return kept
