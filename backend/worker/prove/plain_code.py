"""A second model of the same weights, made of transformers' file of its architecture as it lies on disk.

Whatever was patched into functions, classes or modules of the first one is not in the second: its file is run anew and
registers nothing, its modules are new and hold the same tensors, attention is written out and experts are looped over.
"""

import copy
import functools
import importlib.util
import sys
from typing import Any

import torch
from torch import nn

_PRODUCT = nn.functional.linear
"""As it is when this module is imported."""


class Unlike(Exception):
    """The model is not built as its file says; the text says where, as the end of a sentence."""


def plain_copy(model: Any) -> Any:
    """That second model; takes no memory of its own. Unlike where it has other modules than the first."""
    kind = type(model)
    config = copy.deepcopy(model.config)
    config._attn_implementation = config._experts_implementation = "eager"
    with torch.device("meta"):
        bare = getattr(_read_anew(kind.__module__), kind.__name__)(config)
    _share(model, bare, "")
    return bare.eval()


@functools.cache
def _read_anew(name: str) -> Any:
    """The module of that name from its file, known to nobody else; what it imports is shared."""
    spec = importlib.util.spec_from_file_location(name, sys.modules[name].__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _share(own: Any, bare: Any, path: str) -> None:
    """Give `bare` the tensors of `own`, module by module; packed weights come with the module that unpacks them."""
    bare._parameters.update(own._parameters)
    bare._buffers.update(own._buffers)
    if type(bare) is nn.Linear:
        _multiplies(bare)
    apart = _taken_apart(own)
    for name, child in bare.named_children():
        theirs = own._modules.get(name)
        if theirs is None:
            raise Unlike(f"its {type(own).__name__} has no {path}{name}")
        if name in apart or not _alike(theirs, child):
            bare._modules[name] = apart.get(name, theirs)
        else:
            _share(theirs, child, f"{path}{name}.")


def _multiplies(linear: Any) -> Any:
    """The same layer, whatever the method of its class has become."""
    linear.forward = functools.partial(_PRODUCT, weight=linear.weight, bias=linear.bias)
    return linear


def _alike(theirs: Any, child: Any) -> bool:
    """Whether it is such a module, with plain tensors of the same names."""
    tensors = [one for one in (*theirs._parameters.values(), *theirs._buffers.values()) if one is not None]
    plain = all(type(one) in (nn.Parameter, torch.Tensor, nn.Buffer) for one in tensors)
    return (
        plain
        and type(theirs).__name__ == type(child).__name__
        and theirs._parameters.keys() == child._parameters.keys()
    )


def _taken_apart(own: Any) -> dict[str, Any]:
    """Linear layers of `own` that were fused, each with its rows of the weight, by name. Of packed weights none: what
    multiplies with them is left as it is."""
    found: dict[str, Any] = {}
    for name, child in own.named_children():
        if type(child).__name__ != "Fused" or type(child.whole.weight) is not nn.Parameter:
            continue
        names = [name, *(n for n, one in own.named_children() if one is not child and _follows(one, child))]
        biases = [None] * len(names) if child.whole.bias is None else child.whole.bias.split(child.sizes)
        for part, rows, bias in zip(names, child.whole.weight.split(child.sizes), biases, strict=True):
            linear = nn.Linear(1, 1, device="meta")
            linear._parameters.update(weight=rows, bias=bias)
            found[part] = _multiplies(linear)
    return found


def _follows(one: Any, fused: Any) -> bool:
    """Whether it hands out what the fused layer has computed for it."""
    return getattr(one, "later", None) is fused.later
