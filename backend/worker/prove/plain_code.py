"""A second model of the same weights, made of transformers' file of its architecture as it lies on disk.

Whatever was patched into functions, classes or modules of the first one is not in the second: its file is run anew and
registers nothing, torch's functions are the first ones (`as_imported`), its modules are new and hold the same tensors,
attention is written out, experts are looped over, and frequencies of rotary positions come from the config.
"""

import copy
import functools
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, activations, masking_utils, modeling_rope_utils
from transformers.utils import output_capturing

from backend.models.files.config_fields import decode_config
from backend.models.source import ModelSource
from backend.optimizations.tensor_bytes import triton_weights

_SPACES = (torch, nn.functional, masking_utils, modeling_rope_utils, activations)
_IMPORTED = [(space, {name: one for name, one in vars(space).items() if callable(one)}) for space in _SPACES]
"""Functions as they are when this module is imported: before any model is loaded."""
_PRODUCT = nn.functional.linear


_ATTEND = "eager_attention_forward"


class Unlike(Exception):
    """The model is not built as its file says; the text says where, as the end of a sentence."""


@contextmanager
def as_imported() -> Iterator[None]:
    """Functions that any model's file may call are those that were imported first, whatever has replaced them since."""
    changed = [
        (space, name, vars(space).get(name), one)
        for space, functions in _IMPORTED
        for name, one in functions.items()
        if vars(space).get(name) is not one
    ]
    for space, name, _, one in changed:
        setattr(space, name, one)
    try:
        yield
    finally:
        for space, name, other, _ in changed:
            setattr(space, name, other)


def config_of(source: ModelSource, folder: Path | None) -> Any:
    """The config as it is stored: the model's own may have been changed. None where there is none to read."""
    if source.kind == "random":
        values = decode_config(source.config_json)
        return AutoConfig.for_model(values.pop("model_type"), **values)
    return folder and AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)


def plain_copy(model: Any, stored: Any = None) -> Any:
    """That second model; takes no memory of its own. `stored`: its config, the model's own if it is of another kind.
    Unlike where it has other modules than the first."""
    kind = type(model)
    config = copy.deepcopy(stored if type(stored) is type(model.config) else model.config)
    wide = model.config._attn_implementation != "eager"
    config._experts_implementation = "eager"
    if hasattr(
        sys.modules[kind.__module__], _ATTEND
    ):  # Falcon's layers compute attention themselves: eager is not sdpa
        config._attn_implementation = "eager"
    with torch.device("meta"), _registering_nothing():
        bare = getattr(_read_anew(kind.__module__, wide), kind.__name__)(config)
    _share(model, bare, "")
    for module in bare.modules():
        _turned_anew(module, model.device)
    return bare.eval()


@functools.cache
def _read_anew(name: str, wide: bool) -> Any:
    """The module of that name from its file, known to nobody else; what it imports is shared. `wide`: its attention
    computes in float32, as fused kernels do inside: scores that are rounded to 16 bits are another thing than theirs.
    """
    spec = importlib.util.spec_from_file_location(name, sys.modules[name].__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if wide and hasattr(module, _ATTEND):
        setattr(module, _ATTEND, _in_float32(getattr(module, _ATTEND)))
    return module


@contextmanager
def _registering_nothing() -> Iterator[None]:
    """A new model puts its classes where compiled code of the other one, whose class has the same name, looks for its
    own: that code would be compiled again at its next call."""
    registry = output_capturing._CAN_RECORD_REGISTRY
    known = dict(registry)
    try:
        yield
    finally:
        registry.clear()
        registry.update(known)


def _in_float32(attend: Any) -> Any:
    @functools.wraps(attend)
    def wide(module: Any, query: Any, key: Any, value: Any, *rest: Any, **more: Any) -> Any:
        found, weights = attend(module, query.float(), key.float(), value.float(), *rest, **more)
        return found.to(query.dtype), weights

    return wide


def _share(own: Any, bare: Any, path: str) -> None:
    """Give `bare` the tensors of `own`, module by module; packed weights come with the module that unpacks them.
    What holds no tensor, such as an activation, is new."""
    bare._parameters.update(own._parameters)
    bare._buffers.update(own._buffers)
    if type(bare) is nn.Linear:
        _multiplies(bare)
    apart = _taken_apart(own)
    for name, child in bare.named_children():
        theirs = own._modules.get(name)
        if theirs is None:
            raise Unlike(f"its {type(own).__name__} has no {path}{name}")
        if name in apart:
            bare._modules[name] = apart[name]
        elif _alike(theirs, child):
            _share(theirs, child, f"{path}{name}.")
        elif any(True for _ in child.parameters()):
            if not _multiplies_packed(theirs):
                raise Unlike(f"{path}{name} is a {type(theirs).__name__} and no {type(child).__name__}")
            bare._modules[name] = theirs


def _multiplies_packed(theirs: Any) -> bool:
    """Whether a module has packed weights of its own, or what it computes is a part of one that has: nothing else takes
    another's place."""
    if type(theirs).__name__ == "Slice":
        return True
    whole = theirs.whole if type(theirs).__name__ == "Fused" else theirs
    deep = whole is not theirs or type(theirs).__name__ == "PackedExperts"
    tensors = [*whole.parameters(deep), *whole.buffers(deep), *vars(whole).values()]
    packed = any(isinstance(one, torch.Tensor) and not _is_plain(one) for one in tensors)
    return packed or bool(triton_weights(theirs))


def _is_plain(tensor: torch.Tensor) -> bool:
    kinds = (nn.Parameter, torch.Tensor, nn.Buffer)
    return type(tensor) in kinds and tensor.is_floating_point() and tensor.element_size() > 1


def _turned_anew(module: Any, device: Any) -> None:
    """Give a module of rotary positions its frequencies by its own code, from the config, in their own format: those of
    a model that was cast as a whole are rounded."""
    names = [name for name in module._non_persistent_buffers_set if "inv_freq" in name]
    if names and hasattr(module, "config"):
        with torch.device("cpu"):
            anew = type(module)(module.config)
        for name in names:
            module._buffers[name] = anew._buffers[name].to(device)


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
