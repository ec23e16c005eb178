"""Lists the weight matrices of a model on the meta device, by kind and shape."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from transformers.pytorch_utils import Conv1D
from transformers.quantizers.base import get_keys_to_not_convert
from transformers.quantizers.quantizers_utils import should_convert_module

from tokendyno.backend.models.facts import Matrix, Use


def list_matrices(model: Any, ran: set[str]) -> list[Matrix]:
    """All of them, the input embedding first. `ran`: names of the modules that a pass over text calls.

    Experts are matrices in a stack (a three-dimensional parameter) or modules below `experts`. A module outside of
    them that text does not call, such as a vision tower's, is part of the memory but of no step.
    """
    table = model.get_input_embeddings()
    head = model.get_output_embeddings()
    counted: Counter[Matrix] = Counter()
    shared: set[int] = set()
    first: list[Matrix] = []
    skipped = [*get_keys_to_not_convert(model), *(model._keep_in_fp32_modules or ())]  # quantizers/base.py
    for name, module in model.named_modules():
        routed = ".experts." in f".{name}." and "shared" not in name
        use: Use = "routed" if routed else "always" if name in ran else "never"
        dense_in: tuple[str, ...] = () if should_convert_module(name, skipped) else ("bitsandbytes", "quanto")
        dense_in += () if should_convert_module(f"{name}.weight", skipped) else ("torchao",)
        for matrix, weight in _own(module, module is head):
            if id(weight) in shared:
                continue
            shared.add(id(weight))
            if module is table:
                first.append(matrix)
            else:
                use = "routed" if matrix.kind == "expert" else use
                left = dense_in if matrix.kind in ("linear", "conv1d") else ()
                counted[replace(matrix, count=1, use=use, dense_in=left)] += matrix.count
    return first + [replace(matrix, count=many) for matrix, many in counted.items()]


def _own(module: Any, is_head: bool) -> Iterator[tuple[Matrix, Any]]:
    """The matrices of one module, without its children's."""
    bias = getattr(module, "bias", None) is not None
    if isinstance(module, torch.nn.Linear):
        rows, columns = module.weight.shape
        yield Matrix("head" if is_head else "linear", 1, rows, columns, bias=bias), module.weight
    elif isinstance(module, Conv1D):
        columns, rows = module.weight.shape
        yield Matrix("conv1d", 1, rows, columns, bias=bias), module.weight
    elif isinstance(module, torch.nn.Embedding):
        rows, columns = module.weight.shape
        yield Matrix("embedding", 1, rows, columns), module.weight
    elif "expert" in type(module).__name__.lower():
        for weight in module._parameters.values():
            if weight is not None and weight.dim() == 3:
                count, rows, columns = weight.shape
                yield Matrix("expert", count, rows, columns), weight
