"""Whether a model's plain tensors hold the numbers of the files that it was loaded from: some rows of each."""

import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import safe_open
from torch import nn
from transformers.conversion_mapping import get_model_conversion_mapping

DRAWN, MOST_STACKED = 8, 64
"""Rows of a tensor that are drawn, and matrices of a stack, such as experts, of each of which one is."""


class Numbers(NamedTuple):
    """How many tensors were compared, and the names of those with other numbers than their file."""

    compared: int = 0
    other: tuple[str, ...] = ()


def held_to_files(folder: Path, model: Any, plain: Any) -> Numbers:
    """`plain`: the model with fused matrices taken apart, whose tensors have the names of a checkpoint. Left out are
    tensors that are packed, that transformers makes of several, or that have another name or shape in their file."""
    tensors = {name: one for name, one in plain.named_parameters(remove_duplicate=False) if _is_plain(one)}
    compared, other = 0, []
    for name, own, stored in of_the_same_name(folder, model, tensors):
        shape = list(stored.get_shape())
        if list(own.shape) != shape or 0 in shape or not shape:
            continue
        compared += 1
        if any(not same_numbers(stored[row], own[row]) for row in _rows(name, shape)):
            other.append(name)
    return Numbers(compared, tuple(sorted(other)))


def of_the_same_name(folder: Path, model: Any, tensors: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Names, tensors of the model and what reads theirs in files, but for those that transformers makes of several."""
    made = made_of_others(model)
    for name, stored in stored_tensors(folder):
        own = tensors.get(name, tensors.get(f"{model.base_model_prefix}.{name}"))
        if own is not None and not made.search(name):
            yield name, own, stored


def _rows(name: str, shape: list[int]) -> list[tuple[slice, ...]]:
    """The first row of a tensor, the last, and some that its name draws, of a stack of matrices of each of the first
    ones; of a vector all of it."""
    if len(shape) == 1:
        return [(slice(None),)]
    chance = random.Random(name)
    sizes = shape[:-1]
    places = [[0] * len(sizes), [size - 1 for size in sizes]]
    for draw in range(max(DRAWN, min(MOST_STACKED, sizes[0]) if len(sizes) > 1 else 0)):
        place = [chance.randrange(size) for size in sizes]
        places.append([draw % sizes[0], *place[1:]] if len(sizes) > 1 else place)
    return [tuple(slice(one, one + 1) for one in place) for place in places]


def stored_tensors(folder: Path) -> Iterator[tuple[str, Any]]:
    """Names of tensors in files, and what reads parts of them."""
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118  # it is no mapping
                yield name, file.get_slice(name)


def made_of_others(model: Any) -> re.Pattern[str]:
    """Finds names whose numbers transformers computes while it loads."""
    every = get_model_conversion_mapping(model) or []
    names = [pattern for one in every if hasattr(one, "operations") for pattern in one.target_patterns]
    return re.compile("|".join(names) or "(?!)")


def _is_plain(tensor: Any) -> bool:
    return type(tensor) in (nn.Parameter, torch.Tensor) and tensor.is_floating_point() and not tensor.is_meta


def same_numbers(stored: Any, own: Any) -> bool:
    """A row as it is stored, and as it is held: in the format that it was loaded in."""
    held = own.detach().to("cpu")
    return stored.is_floating_point() and bool(torch.equal(stored.to(held.dtype), held))
