"""Ways to break a model between its load and its first use."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch

from backend.optimizations.tensor_bytes import inner_tensors
from backend.worker.load import loader


@contextlib.contextmanager
def model_changed(change: Callable[[Any], None]) -> Iterator[None]:
    """`change` gets every model that is loaded meanwhile, before anything else sees it."""
    plain = loader.LoadedModel.__init__

    def changed(self: Any, plan: Any, model: Any, *more: Any) -> None:
        change(model)
        plain(self, plan, model, *more)

    with mock.patch.object(loader.LoadedModel, "__init__", changed):
        yield


def layers_of(model: Any) -> list[Any]:
    """The decoder layers."""
    return list(model.model.layers)


def some_layers(model: Any, share: str) -> list[Any]:
    """`share`: "all", "half" or "one" of the decoder layers."""
    layers = layers_of(model)
    return layers[: {"all": len(layers), "half": len(layers) // 2, "one": 1}[share]]


def in_layers(share: str, change: Callable[[Any], None]) -> Callable[[], Any]:
    """A patch that changes some layers of every model that is loaded."""

    def each(model: Any) -> None:
        for layer in some_layers(model, share):
            change(layer)

    return lambda: model_changed(each)


def unpack(layer: Any) -> None:
    """Replace every packed linear layer by a dense one."""
    for parent in list(layer.modules()):
        for name, module in list(parent.named_children()):
            weight = module._parameters.get("weight")
            if weight is None or type(weight) is torch.nn.Parameter or not hasattr(module, "in_features"):
                continue
            bias = module._parameters.get("bias")
            dense = torch.nn.Linear(
                module.in_features, module.out_features, bias is not None, weight.device, torch.bfloat16
            )
            setattr(parent, name, dense)


def other_rows(layer: Any) -> None:
    """Packed codes of each row are those of another one, their scales stay."""
    for module in layer.modules():
        weight = module._parameters.get("weight")
        if weight is not None and type(weight) is not torch.nn.Parameter and hasattr(module, "in_features"):
            codes = max(inner_tensors(weight), key=lambda part: int(part.nbytes))
            with torch.inference_mode():
                codes.copy_(codes.flip(0).clone())


def beside(layer: Any) -> None:
    """Packed weights stay where they are; a dense copy beside each multiplies."""
    for module in layer.modules():
        weight = module._parameters.get("weight")
        if weight is not None and type(weight) is not torch.nn.Parameter and hasattr(module, "in_features"):
            dense = torch.randn(module.out_features, module.in_features, device=weight.device) / 50
            module.forward = lambda x, dense=dense: torch.nn.functional.linear(x, dense.to(x.dtype))
