"""Bytes of weights and KV caches, counted from their tensors, whatever wraps them.

`get_memory_footprint()` and `.dtype` report torchao and quanto weights as they were before quantization, and leave out
the scales of bitsandbytes.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from torch import Tensor, nn

from tokendyno.backend.optimizations.axes.cache import keeps_latents

# --- KV cache -------------------------------------------------------------------------------------


def layer_bytes(layer: Any) -> int:
    """Bytes of all that a cache layer keeps. Cheap enough to call for each token: plain tensors are not searched."""
    keys = getattr(layer, "keys", None)  # a layer of linear attention has none
    size = 0 if keys is None else int(keys.nbytes + layer.values.nbytes)
    return size + total_bytes(inner_tensors([*extra_parts(layer), *quantized_parts(layer)]))


class CacheBytes(NamedTuple):
    """Bytes of a cache by kind. `full` has all of the layers without a window: `latent`, `state` and `indexed` too."""

    sliding: int
    full: int
    latent: int = 0
    state: int = 0
    indexed: int = 0


def cache_bytes(layers: Iterable[tuple[bool, Any, int]]) -> CacheBytes:
    """Sum over cache layers, each given as (has a sliding window, layer, how many are like it)."""
    sliding = full = latent = state = indexed = 0
    for slides, layer, count in layers:
        size = layer_bytes(layer) * count
        if slides:
            sliding += size
            continue
        states = _named_bytes(layer, "conv_states", "recurrent_states") * count
        index = _named_bytes(layer, "indexer_keys") * count
        full, state, indexed = full + size, state + states, indexed + index
        latent += size - states - index if keeps_latents(layer) else 0
    return CacheBytes(sliding, full, latent, state, indexed)


def _named_bytes(layer: Any, *names: str) -> int:
    return total_bytes(inner_tensors(_present(layer, *names)))


def _present(layer: Any, *names: str) -> list[Any]:
    """Those attributes of a cache layer that are there, and not None."""
    return [part for name in names if (part := getattr(layer, name, None)) is not None]


def quantized_parts(layer: Any) -> list[Any]:
    """Quantized keys and values of a cache layer; empty for a plain layer."""
    return _present(layer, "_quantized_keys", "_quantized_values")


def extra_parts(layer: Any) -> list[Any]:
    """What a cache layer keeps besides keys and values: states of linear attention, the keys of an indexer, scales."""
    return _present(layer, "conv_states", "recurrent_states", "indexer_keys", "key_scales", "value_scales")


def inner_tensors(part: Any) -> Iterator[Any]:
    """The plain tensors inside a tensor subclass, a tuple or a dict: codes, scales and zero points."""
    if isinstance(part, tuple | list):
        for item in part:
            yield from inner_tensors(item)
    elif isinstance(part, dict):
        yield from inner_tensors(list(part.values()))
    elif hasattr(part, "__tensor_flatten__"):
        yield from inner_tensors([getattr(part, name) for name in part.__tensor_flatten__()[0]])
    elif hasattr(part, "nbytes"):
        yield part


def cache_tensors(cache: Any) -> Iterator[Any]:
    for layer in cache.layers:
        yield from inner_tensors([*_present(layer, "keys", "values"), *extra_parts(layer), *quantized_parts(layer)])


def bytes_on(device: str, tensors: Iterable[Any]) -> int:
    """Bytes of those tensors that lie on that device, such as "cpu" or "cuda:0"."""
    return total_bytes(tensor for tensor in tensors if str(tensor.device) == device)


def local_part(tensor: Any) -> Any:
    """This rank's part of a tensor that is distributed; any other tensor itself."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


# --- weights --------------------------------------------------------------------------------------


def bnb_scales(holder: Any) -> list[Any]:
    """Scales and lookup tables of both levels of a bitsandbytes weight, which are no parameters: they lie on the
    parameter, after the first step on the module's `state`."""
    pending = [getattr(holder, name, None) for name in ("SCB", "CB", "quant_state")]
    scales: list[Any] = []
    while pending:
        value = pending.pop()
        if isinstance(value, Tensor):
            scales.append(value)
        elif type(value).__name__ == "QuantState":
            pending += vars(value).values()
    return scales


def triton_weights(module: Any) -> dict[str, list[Any]]:
    """MXFP4 experts of gpt-oss by name, each [values, scales]: the Hub kernel's own objects, or parameters."""
    parameters = module._parameters
    names = (name.removesuffix("_blocks") for name in parameters if name.endswith("_blocks"))
    pairs = ((name, parameters[f"{name}_blocks"], parameters.get(f"{name}_scales")) for name in names)
    weights = {name: [blocks, scales] for name, blocks, scales in pairs if scales is not None}
    for name, value in vars(module).items():
        data = getattr(getattr(value, "storage", None), "data", None)
        if not isinstance(value, Tensor) and isinstance(data, Tensor):
            weights[name] = [data, vars(module)[f"{name}_precision_config"].weight_scale.storage.data]
    return weights


def weight_tensors(model: Any) -> Iterator[Any]:
    """Plain tensors of all parameters and buffers with their scales; tensors that share memory come once."""
    yielded: set[int] = set()
    for module in model.modules():
        own = [part for part in (*module._parameters.values(), *module._buffers.values()) if part is not None]
        tensors = [*inner_tensors(own), *bnb_scales(getattr(module, "state", None))]
        tensors += [tensor for part in own for tensor in bnb_scales(part)]
        tensors += [local_part(part) for parts in triton_weights(module).values() for part in parts]
        for tensor in tensors:
            if tensor.numel() and tensor.data_ptr() not in yielded:
                yielded.add(tensor.data_ptr())
                yield tensor


def parameter_count(model: Any) -> int:
    """Parameters of a model, however few bytes hold them."""
    mxfp4 = [parts for module in model.modules() for parts in triton_weights(module).values()]
    total = sum(2 * int(values.numel()) for values, *_ in mxfp4)
    packed = {id(part) for parts in mxfp4 for part in parts}
    for weight in model.parameters():
        if id(weight) not in packed:
            state = getattr(weight, "quant_state", None)  # 4-bit weights: two parameters in one byte
            total += weight.numel() if state is None else state.shape.numel()
    return total


def total_bytes(tensors: Iterable[Any]) -> int:
    return sum(int(tensor.nbytes) for tensor in tensors)


def has_packed_weights(model: Any) -> bool:
    """Whether some parameters are packed or integers: products with them may round the other factor, too."""
    parts = map(local_part, model.parameters())
    return any(type(part) not in (nn.Parameter, Tensor) or not part.is_floating_point() for part in parts)
