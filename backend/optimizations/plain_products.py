"""The products with plain weights in a trace: their number formats, and those that should be there and are not."""

import re
from collections import Counter, defaultdict
from typing import Any

from backend.optimizations.expert_rows import tokens_of_passes
from backend.optimizations.proof import (
    PRODUCTS,
    Observation,
    Shape,
    hides,
    layers_without_own_keys,
    rows_of,
    traced_passes,
    weight_of,
)
from backend.optimizations.tensor_bytes import local_part

_IN_EACH_PASS = re.compile(
    r"^(?!.*experts).*\b(?:(?:q|k|v|o|qkv)_proj|(?:gate|up|down|gate_up)_proj|lm_head)(?:\.whole)?$"
)
"""Names of linear layers that every pass of a decoder goes through; which experts it takes depends on the text."""
_HEAD = "lm_head"
"""The one that not every token of a pass reaches."""


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


def absent_products(observation: Observation) -> int:
    """How many products with matrices that each pass multiplies with, whatever the text, the trace does not show, or
    shows with fewer rows than the pass has tokens, of all texts of its batch. 0 where products are hidden, where layers
    take keys and values of others, or where others share the work."""
    from torch import Tensor, nn

    trace = observation.trace()
    many = observation.plan.load.parallel.ranks > 1 or observation.counts.batch_requests
    if observation.cache is None or not trace.formats or many or hides(observation):
        return 0
    if layers_without_own_keys(observation.model):
        return 0
    in_a_pass: Counter[Shape] = Counter()
    heads: set[Shape] = set()
    for name, module in observation.model.named_modules():
        weight: Any = module.weight if isinstance(module, nn.Linear) and _IN_EACH_PASS.search(name) else None
        if type(weight) in (nn.Parameter, Tensor):
            in_a_pass[tuple(weight.shape)] += 1
            heads |= {tuple(weight.shape)} if name.endswith(_HEAD) else set()
    passes, rows = Counter(tokens_of_passes(observation)), _rows(observation)
    absent = 0
    for shape, n in in_a_pass.items():
        seen = rows[shape]
        missing = max(0, n * traced_passes(observation) - seen.total())
        due = Counter({tokens: n * count for tokens, count in passes.items()})
        if shape not in heads and _sum(seen) < _sum(due):  # more products of fewer rows may make up for it
            missing = max(missing, (due - seen).total())
        absent += missing
    return absent


def _rows(observation: Observation) -> defaultdict[Shape, Counter[int]]:
    """Of the products with a matrix of each shape: how many had how many rows."""
    found: defaultdict[Shape, Counter[int]] = defaultdict(Counter)
    for (name, given), n in observation.trace().shapes.items():
        if name in PRODUCTS:
            found[weight_of(name, given)[::-1]][rows_of(name, given)] += n
    return found


def _sum(counted: Counter[int]) -> int:
    return sum(number * count for number, count in counted.items())


def narrowed(device: str) -> str:
    """The format to which torch may round the factors of float32 products: "tf32" or "bf16"; "" where it does not."""
    import torch

    backend: Any = torch.backends.cuda if device == "cuda" else torch.backends.mkldnn
    found = str(backend.matmul.fp32_precision)
    return found if found in ("tf32", "bf16") else ""


def kept_in_float32(model: Any) -> re.Pattern[str] | None:
    """Names of parameters that transformers keeps in float32 for this class, whatever the dtype."""
    names = [*(getattr(model, "_keep_in_fp32_modules", None) or ())]
    names += getattr(model, "_keep_in_fp32_modules_strict", None) or ()
    return re.compile("|".join(map(re.escape, names))) if names else None
