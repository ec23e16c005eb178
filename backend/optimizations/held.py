"""Bytes that a cache holds and where they lie, counted from its tensors, whatever they are wrapped in. Without torch:
whatever has `nbytes` and no inner tensors is one."""

from collections import Counter
from collections.abc import Iterator
from typing import Any


def layer_bytes(layer: Any) -> int:
    """Bytes of a layer's keys and values. Cheap enough for each token: plain tensors are not searched."""
    plain = 0 if layer.keys is None else int(layer.keys.nbytes + layer.values.nbytes)
    return plain + sum(int(tensor.nbytes) for part in packed_parts(layer) for tensor in inner_tensors(part))


def packed_parts(layer: Any) -> list[Any]:
    """Keys and values of a layer as its quantizer holds them; nothing where it has none."""
    parts = getattr(layer, "_quantized_keys", None), getattr(layer, "_quantized_values", None)
    return [part for part in parts if part is not None]


def inner_tensors(part: Any) -> Iterator[Any]:
    """The plain tensors in a tensor subclass, a tuple or a dict: codes, scales and zero points of quantized keys."""
    if isinstance(part, tuple | list):
        for one in part:
            yield from inner_tensors(one)
    elif isinstance(part, dict):
        yield from inner_tensors(list(part.values()))
    elif hasattr(part, "__tensor_flatten__"):
        yield from inner_tensors([getattr(part, name) for name in part.__tensor_flatten__()[0]])
    elif hasattr(part, "nbytes"):
        yield part


def cache_tensors(cache: Any) -> Iterator[Any]:
    """Every plain tensor of keys and values in a cache."""
    for layer in cache.layers:
        yield from inner_tensors([layer.keys, layer.values, *packed_parts(layer)])


def bytes_by_device(cache: Any) -> Counter[str]:
    """Bytes of a cache's tensors by the type of the device that they are on, such as "cpu" and "cuda"."""
    found: Counter[str] = Counter()
    for tensor in cache_tensors(cache):
        found[tensor.device.type] += tensor.nbytes
    return found
