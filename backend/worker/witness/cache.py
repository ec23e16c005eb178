"""Told by the class of every layer of the cache, the devices of its tensors, and bytes per element."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tokendyno.backend.evidence import Finding
from tokendyno.backend.plan import STATIC_FP8
from tokendyno.backend.worker.measure.meter import sliding_layers
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.prove.tensor_bytes import (
    bytes_on,
    cache_tensors,
    inner_tensors,
    quantized_parts,
    total_bytes,
)

_BACKENDS = {"Fp8QuantizedLayer": "fp8", "HQQQuantizedLayer": "hqq", "QuantoQuantizedLayer": "quanto"}


def find(observation: Observation) -> Finding:
    """Every layer of the cache that the measured run filled: its class, its position in the model, its tensors."""
    layers = observation.cache.layers
    tensors = list(cache_tensors(observation.cache))
    on_host = 0 if str(getattr(observation.model, "device", "cpu")).startswith("cpu") else bytes_on("cpu", tensors)
    config = observation.model.config.get_text_config(decoder=True)
    of_images = getattr(config, "cross_attention_layers", None) or ()
    sliding = sliding_layers(config) + [False] * len(layers)  # a cache may have more than the config names
    by_layer = [
        _choices_of(layer, slides, on_host > 0)
        for i, (layer, slides) in enumerate(zip(layers, sliding, strict=False))
        if hasattr(layer, "keys") and i not in of_images  # these hold what an image gave, and a text has none
    ]
    counted = Counter(type(layer).__name__ for layer in layers)
    proof = ", ".join(f"{n} x {name}" for name, n in sorted(counted.items())) + f"; {total_bytes(tensors):,} bytes"
    if on_host:
        pinned = all(tensor.is_pinned() for tensor in tensors if tensor.device.type == "cpu")
        proof += f", {on_host:,} of them in {'pinned ' if pinned else ''}host memory"
    planned = observation.plan.generate.cache.name
    votes = Counter(name for names in by_layer for name in names)
    decided = Counter(names[0] for names in by_layer if len(names) == 1) or votes
    effective = planned if decided[planned] else next((name for name, _ in decided.most_common()), "unknown")
    stayed = _stayed(layers) if effective.startswith("offloaded") else 0
    reached = max(0, votes[effective] - stayed)
    if stayed:
        proof += f"; {stayed} of {len(by_layer)} layers stayed on the GPU, beside the one that is fetched next"
    elif reached < len(by_layer):
        proof += f"; {reached} of {len(by_layer)} layers hold their tokens like that"
    elif {"dynamic", "unwindowed"} <= votes.keys() and votes["dynamic"] == votes["unwindowed"]:
        proof += " (no sliding layers: dynamic and unwindowed are the same)"
    return Finding("cache", effective, proof, reached, len(by_layer))


def _choices_of(layer: Any, slides: bool, offloaded: bool) -> tuple[str, ...]:
    """The choices that keep a layer's tokens as this one does; none for a layer that holds no token."""
    name = type(layer).__name__
    parts = quantized_parts(layer)
    if name in _BACKENDS:
        backend, bits = _BACKENDS[name], sorted({_bits(part) for part in parts})
        suffix = "" if backend == "fp8" and bits == [8] else "/".join(map(str, bits))
        return (f"quantized-{backend}{suffix}",) if len(parts) == 2 else ()  # keys and values
    if layer.keys is None or not layer.keys.numel():
        return ()
    if name == "StaticFp8SlotLayer":
        return (STATIC_FP8.name,) if layer.keys.element_size() == layer.values.element_size() == 1 else ()
    windowed = "Sliding" in name or "Ring" in name
    if "Static" in name or "Slot" in name:
        if slides != windowed:
            return ()
        return ("offloaded_static",) if offloaded else ("static",)
    if offloaded:
        return ("offloaded",)
    if not slides:
        return () if windowed else ("dynamic", "unwindowed")
    return ("dynamic",) if windowed else ("unwindowed",)


def _stayed(layers: Sequence[Any]) -> int:
    """Layers of an offloaded cache that stayed on the GPU, without the one that is needed next, and without windows of
    a static cache, which always stay."""
    movable = [layer for layer in layers if not type(layer).__name__.startswith("StaticSliding")]
    keys = [layer.keys for layer in movable if getattr(layer, "keys", None) is not None]
    return max(0, len([part for part in keys if part.device.type != "cpu"]) - 1)


def _bits(part: Any) -> int:
    """Bits per element, a power of two: bytes of the codes over the elements that they encode, scales apart."""
    tensors = list(inner_tensors(part))
    codes_only = [tensor for tensor in tensors if tensor.element_size() == 1 or not tensor.is_floating_point()]
    codes = max(codes_only or tensors, key=lambda tensor: int(tensor.nbytes))
    packed: Any = getattr(part, "_data", None)
    if (bits := getattr(packed, "_bits", 0)) and len(codes) == -(-len(packed) * bits // 8):
        return int(bits)
    records = [item for item in part if isinstance(item, dict)] if isinstance(part, tuple | list) else []
    shapes = [record["shape"] for record in records if "shape" in record]  # as the quantizer records it
    if hasattr(part, "__tensor_flatten__"):
        shapes = [part.shape]
    numbers = math.prod(shapes[0]) if shapes else codes.numel()
    return 1 << max(0, int(8 * codes.nbytes // numbers).bit_length() - 1)
