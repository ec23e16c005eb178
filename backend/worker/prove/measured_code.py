"""Which code and which tensors the measured run ended with: proofs of further steps are proofs of these alone.

What is looked at takes a millisecond of a large model, once, when the last token of the run is known.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import torch
from torch.nn.modules import module as every
from transformers.integrations import moe, sdpa_attention
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from backend.optimizations.proof import Held, PartKind
from backend.worker.prove.parts import part_with, parts_of

_KINDS: dict[str, PartKind] = {
    "attention": "attention", "rotary": "attention", "experts": "mixture", "integrations.moe": "mixture"
}  # fmt: skip
"""What functions with such a word in their name compute."""
THE_MODEL = "the model"
_SETTINGS: dict[str, Callable[[], Any]] = {
    "autocast": lambda: [
        (one, torch.get_autocast_dtype(one)) for one in ("cpu", "cuda") if torch.is_autocast_enabled(one)
    ],
    "float32 products on a GPU": lambda: torch.backends.cuda.matmul.fp32_precision,
    "float32 products on a CPU": lambda: torch.backends.mkldnn.matmul.fp32_precision,
    "kernels for scaled dot-product attention": lambda: [
        torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.mem_efficient_sdp_enabled(),
        torch.backends.cuda.math_sdp_enabled(), torch.backends.cuda.cudnn_sdp_enabled(),
    ],
    "modes that see every operator": lambda: [
        torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()
    ],
}  # fmt: skip
"""Of torch, for every product, for attention, and for all that it computes."""


class MeasuredCode:
    """Taken at the end of a measured run, and held against the same model when its proof begins."""

    def __init__(self, model: Any, cache: Any = None) -> None:
        self._functions, self._modules = dict(_functions(model)), dict(_modules(model))
        self._cache = _of_cache(cache)

    def changed_layers(self, cache: Any) -> int:
        """How many layers of the run's cache have other code than when it ended."""
        return len(_changed(self._cache, _of_cache(cache)))

    def add_to(self, held: Held, model: Any, now: "MeasuredCode | None" = None) -> Held:
        """With the parts in which something has been exchanged since then. now: what was taken of further steps that
        set something for as long as they run."""
        now = now or MeasuredCode(model)
        parts = parts_of(model)
        swapped = defaultdict[PartKind, list[str]](list)
        modules = _changed(self._modules, now._modules)
        for name in dict.fromkeys(part_with(module, parts) for module in modules):
            swapped[parts.get(name, "other")].append(name)
        for function in _changed(self._functions, now._functions):
            kind: PartKind = next((its for word, its in _KINDS.items() if word in function), "other")
            of = [name for name, its in parts.items() if its == kind] if kind != "other" else [function]
            swapped[kind] = list(dict.fromkeys(swapped[kind] + of))
        known = held.parts or Counter(parts.values())
        return replace(held, parts=known, swapped=dict(swapped), modules=frozenset(modules))


def _functions(model: Any) -> Iterator[tuple[str, Any]]:
    """Those that the model's file and its modules call by name."""
    for space in (torch.nn.functional, sys.modules[type(model).__module__], moe, sdpa_attention):
        yield from ((f"{space.__name__}.{name}", one) for name, one in vars(space).items() if callable(one))
    for name in ALL_ATTENTION_FUNCTIONS:
        yield f"attention {name}", ALL_ATTENTION_FUNCTIONS[name]
    for name in ALL_EXPERTS_FUNCTIONS:
        yield f"experts {name}", ALL_EXPERTS_FUNCTIONS[name]
    for config in (model.config, *(getattr(model.config, name) for name in model.config.sub_configs)):
        yield f"attention of {type(config).__name__}", getattr(config, "_attn_implementation", None)
        yield f"experts of {type(config).__name__}", getattr(config, "_experts_implementation", None)
    for functions, kind in ((ALL_ATTENTION_FUNCTIONS, "attention"), (ALL_EXPERTS_FUNCTIONS, "experts")):
        yield f"{kind}, how it is found", getattr(type(functions), "get_interface", None)
    yield from ((f"torch.nn.Module.{name}", getattr(torch.nn.Module, name)) for name in ("__call__", "_call_impl"))
    for hooks in (every._global_forward_pre_hooks, every._global_forward_hooks):
        yield from ((f"hook {number} of every module", hook) for number, hook in hooks.items())
    for name in _SETTINGS:
        yield name, _SETTINGS[name]()


def _modules(model: Any) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Of each module what it is, what it calls, and the tensors that it holds."""
    for name, module in model.named_modules():
        tensors = (*module._parameters.values(), *module._buffers.values())
        hooks = (*module._forward_pre_hooks.values(), *module._forward_hooks.values())
        own = module.__dict__.get("forward")
        code = own if own is None else getattr(own, "__func__", own)
        of_class = type(module).forward, type(module).__call__
        yield name or THE_MODEL, (module, *of_class, code, *hooks, *tensors, *map(_address, tensors))


def _of_cache(cache: Any) -> dict[str, tuple[Any, ...]]:
    """Of each layer its methods, and those of the whole cache."""
    layers = getattr(cache, "layers", ())
    return {str(place): (*_methods(cache), *_methods(layer)) for place, layer in enumerate(layers)}


def _methods(one: Any) -> Iterator[Any]:
    """Also those that were set on the object itself."""
    for space in (*(vars(its) for its in type(one).__mro__[:-1]), vars(one)):
        yield from (method for method in space.values() if isinstance(method, FunctionType | MethodType | partial))


def _address(tensor: Any) -> Any:
    """Where its numbers lie; None of packed ones, which may not tell."""
    return tensor.data_ptr() if type(tensor) in (torch.nn.Parameter, torch.Tensor) and not tensor.is_meta else None


def _changed(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Names with other objects than before, and those that came or went."""
    return [name for name in {**before, **now} if not _same(before.get(name), now.get(name))]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return one is other or (isinstance(one, int | str | list) and one == other)
