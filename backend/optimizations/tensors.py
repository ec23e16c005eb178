"""Every tensor that a model's weights consist of, whatever packs them: counted, never taken from a footprint API.

`get_memory_footprint()` and `.dtype` tell of torchao and quanto weights what they were before, and leave the scales of
bitsandbytes out.
"""

from collections.abc import Iterator
from typing import Any

from backend.optimizations.held import inner_tensors

_KEPT = ("SCB", "CB", "quant_state")  # where bitsandbytes keeps scales: on the parameter, later on the module's state


def beside(weight: Any) -> list[Any]:
    """Scales and tables of a bitsandbytes weight, which are no parameters: double quantization has a second level."""
    held = [getattr(weight, name, None) for name in _KEPT]
    found: list[Any] = []
    while held:
        one = held.pop()
        if _is_tensor(one):
            found.append(one)
        elif type(one).__name__ == "QuantState":
            held += vars(one).values()
    return found


def triton_weights(module: Any) -> dict[str, list[Any]]:
    """The packed experts of gpt-oss by name, [values, scales]: objects of a kernel's own class, no parameters."""
    found = {}
    for name, value in vars(module).items():
        data = getattr(getattr(value, "storage", None), "data", None)
        if not _is_tensor(value) and _is_tensor(data):
            scales = getattr(vars(module).get(f"{name}_precision_config"), "weight_scale", None)
            found[name] = [data, *([scales.storage.data] if scales is not None else [])]
    return found


def weight_tensors(model: Any) -> Iterator[Any]:
    """Plain tensors of all parameters, buffers and what lies beside them, each place in memory once."""
    seen: set[int] = set()
    for module in model.modules():
        own = [*module._parameters.values(), *module._buffers.values()]
        tensors = [part for tensor in own if tensor is not None for part in (*inner_tensors(tensor), *beside(tensor))]
        tensors += beside(getattr(module, "state", None))
        tensors += [part for parts in triton_weights(module).values() for part in parts]
        for tensor in tensors:
            if tensor.numel() and tensor.data_ptr() not in seen:
                seen.add(tensor.data_ptr())
                yield tensor


def numbers(model: Any) -> int:
    """Learned numbers of a model, however few bytes hold them."""
    total: int = 0
    for weight in model.parameters():
        state = getattr(weight, "quant_state", None)  # of 4-bit weights: two numbers are one byte
        total += weight.numel() if state is None else state.shape.numel()
    packed = [parts[0] for module in model.modules() for parts in triton_weights(module).values()]
    return total + sum(2 * int(values.numel()) for values in packed)


def held_bytes(tensors: Any) -> int:
    """Bytes of these tensors."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)
