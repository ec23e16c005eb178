"""Whether packed matrices multiply as the numbers of the files that they were made from would: some rows of each."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers.pytorch_utils import Conv1D

from backend.optimizations.tensor_bytes import inner_tensors
from backend.worker.prove.file_numbers import made_of_others, stored_tensors

ROWS = 16
"""Of a matrix, whose products are compared together: what rounding adds to one of them is chance."""


def packed_beside_files(folder: Path, model: Any, plain: Any) -> dict[str, float]:
    """For each packed matrix that has a tensor of plain numbers in the files: how far its product with a drawn vector
    lies from that with rows of the file, as a share of its length.

    `plain`: the model's plain copy, in which packed matrices have the names of a checkpoint.
    """
    found: dict[str, float] = {}
    places = {f"{name}.weight": place for place, name in _packed(plain)}
    given: dict[int, Any] = {}
    for name, stored in stored_tensors(folder):
        own = next((one for one in (name, f"{model.base_model_prefix}.{name}") if one in places), None)
        shape = list(stored.get_shape())
        if own is None or len(shape) != 2 or made_of_others(model).search(name):
            continue
        module, part = places[own]
        x = given.setdefault(shape[1], _drawn(shape[1], model))
        with torch.inference_mode():
            product = module(x)[0, 0, part].float().cpu()
        chance = random.Random(name)
        rows = [0, shape[0] - 1, *(chance.randrange(shape[0]) for _ in range(ROWS - 2))]
        numbers = torch.cat([stored[row : row + 1] for row in rows])
        if product.numel() != shape[0] or not numbers.is_floating_point() or numbers.element_size() == 1:
            continue
        bias = getattr(module, "bias", None)
        if bias is not None:
            product = product - bias.detach()[part].float().cpu()
        wanted = numbers.float() @ x[0, 0].float().cpu()
        found[own.removesuffix(".weight")] = float((product[rows] - wanted).norm() / wanted.norm())
    return found


def _packed(plain: Any) -> Iterator[tuple[tuple[Any, slice], str]]:
    """What multiplies with each packed matrix, the part of its product that is this matrix's, and its name."""
    for parent_name, parent in plain.named_modules():
        children = dict(parent.named_children())
        for name, child in children.items():
            path = f"{parent_name}.{name}" if parent_name else name
            if type(child).__name__ == "Fused":
                followers = [one for one, other in children.items() if getattr(other, "later", None) is child.later]
                begin = 0
                for one, size in zip([name, *(one for one in followers if one != name)], child.sizes, strict=True):
                    yield (child.whole, slice(begin, begin + size)), f"{path.removesuffix(name)}{one}"
                    begin += size
            elif getattr(child, "source_cls", None) is Conv1D:  # its rows in the file are those of the input
                continue
            elif hasattr(child, "in_features") and _is_packed(child._parameters.get("weight")):
                yield (child, slice(None)), path


def _is_packed(weight: Any) -> bool:
    if weight is None:
        return False
    return next(iter(inner_tensors(weight)), weight) is not weight or weight.element_size() == 1


def _drawn(size: int, model: Any) -> Any:
    """(1, 1, size)"""
    numbers = torch.randn(1, 1, size, generator=torch.Generator().manual_seed(size))
    return numbers.to(model.device, model.dtype)
