"""Random weights of a model that several ranks share and whose host memory could not hold a copy for each: a tensor is
drawn on the device when its part is read, and nothing else is kept."""

import copy
import threading
import zlib
from collections.abc import Iterator
from typing import Any

import torch

from backend.plan import RANDOM_SEED

_TURN = threading.Lock()
"""Readers are several threads, and the seed is the process's."""


class Drawn:
    """A parameter that does not exist yet, by the interface of a slice of a safetensors file.

    The model's own initialization draws it as a whole, from a seed of its name: every rank draws the same one and keeps
    its part.
    """

    def __init__(self, model: Any, path: str, name: str, device: str) -> None:
        self._model, self._module, self._name, self._device = model, model.get_submodule(path), name, device
        self._seed = RANDOM_SEED + zlib.crc32(f"{path}.{name}".encode())
        self._shape = tuple(self._module._parameters[name].shape)
        self._format = {torch.float32: "F32", torch.float16: "F16"}.get(self._module._parameters[name].dtype, "BF16")

    def get_dtype(self) -> str:
        """The dtype's name."""
        return self._format

    def get_shape(self) -> list[int]:
        """Of the whole tensor."""
        return list(self._shape)

    def __getitem__(self, index: Any) -> torch.Tensor:
        owner = copy.copy(self._module)
        owner._modules = {}
        owner._parameters = {
            name: one if one is None else torch.nn.Parameter(torch.empty_like(one, device=self._device), False)
            for name, one in self._module._parameters.items()
        }
        with _TURN, torch.no_grad():
            torch.manual_seed(self._seed)
            self._model._init_weights(owner)
            return owner._parameters[self._name].data[index].clone()  # a view would keep the whole


def drawn_state(model: Any, device: str) -> dict[str, Drawn]:
    """All parameters of a model on the meta device but tied ones, by name."""
    found = {f"{path}.{name}": Drawn(model, path, name, device) for path, name in _owners(model)}
    return {name: one for name, one in found.items() if name not in model.all_tied_weights_keys}


def _owners(model: Any) -> Iterator[tuple[str, str]]:
    for path, module in model.named_modules():
        yield from ((path, name) for name, one in module._parameters.items() if one is not None)
