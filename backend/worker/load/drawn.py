"""Random weights of a model that several ranks share and whose host memory could not hold a copy for each: a tensor is
drawn on the device when its part is read, and nothing else is kept."""

import copy
import threading
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from tokendyno.backend.plan import RANDOM_SEED

_TURN = threading.Lock()
"""Readers are several threads, and the seed is the process's."""


ALIGNED = 512
"""Bytes to which the beginning of a tensor is rounded up, as torch's allocator does."""


class Scratch:
    """Room for the parameters of one module, in which all are drawn, one after the other: several threads read at once,
    and would have as many whole modules in memory."""

    def __init__(self, modules: Iterable[Any], device: str) -> None:
        sizes = [sum(_room(one) for one in module._parameters.values() if one is not None) for module in modules]
        self._bytes = torch.empty(max(sizes, default=0), dtype=torch.uint8, device=device)

    def parameters(self, module: Any) -> dict[str, Any]:
        """Without meaningful numbers, in the shapes and dtypes of this module's."""
        found, begin = {}, 0
        for name, one in module._parameters.items():
            found[name] = one
            if one is not None:
                room = self._bytes[begin : begin + one.nbytes].view(one.dtype).view(one.shape)
                found[name] = torch.nn.Parameter(room, False)
                begin += _room(one)
        return found


def _room(tensor: Any) -> int:
    return -(-int(tensor.nbytes) // ALIGNED) * ALIGNED


class Drawn:
    """A parameter that does not exist yet, by the interface of a slice of a safetensors file.

    The model's own initialization draws it as a whole, from a seed of its name: every rank draws the same one and keeps
    its part.
    """

    def __init__(self, model: Any, path: str, name: str, scratch: Scratch) -> None:
        self._model, self._module, self._name, self._scratch = model, model.get_submodule(path), name, scratch
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
        with _TURN, torch.no_grad():
            owner._parameters = self._scratch.parameters(self._module)
            torch.manual_seed(self._seed)
            self._model._init_weights(owner)
            return owner._parameters[self._name].data[index].clone()


def drawn_state(model: Any, device: str) -> dict[str, Drawn]:
    """All parameters of a model on the meta device but tied ones, by name."""
    scratch = Scratch(model.modules(), device)
    found = {f"{path}.{name}": Drawn(model, path, name, scratch) for path, name in _owners(model)}
    return {name: one for name, one in found.items() if name not in model.all_tied_weights_keys}


def _owners(model: Any) -> Iterator[tuple[str, str]]:
    for path, module in model.named_modules():
        yield from ((path, name) for name, one in module._parameters.items() if one is not None)
