"""How keys and values of past tokens are kept, and where."""

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, get_args

import msgspec

from backend.messages import Finding
from backend.optimizations import cache_rules as rules
from backend.optimizations.base import Choice, Optimization, Seen, Subject
from backend.optimizations.held import bytes_by_device, cache_tensors, inner_tensors, packed_parts
from backend.plan import CacheKind, Plan
from backend.script import Script

_KINDS: dict[str, CacheKind] = {kind: kind for kind in get_args(CacheKind)}
_BACKENDS = {"Fp8QuantizedLayer": "fp8", "HQQQuantizedLayer": "hqq", "QuantoQuantizedLayer": "quanto"}
_SCRIPTS: dict[CacheKind, tuple[str, str]] = {
    "unwindowed": ("DynamicCache", ""),
    "static": ("StaticCache", "config=model.config, max_cache_len=MAX_LENGTH"),
    "offloaded": ("DynamicCache", "config=model.config, offloading=True"),
    "offloaded_static": ("StaticCache", "config=model.config, max_cache_len=MAX_LENGTH, offloading=True"),
    "quantized-fp8": ("QuantizedCache", '"fp8", model.config'),
    "quantized-hqq4": ("QuantizedCache", '"hqq", model.config, nbits=4'),
    "quantized-quanto4": ("QuantizedCache", '"quanto", model.config, nbits=4'),
}


class Cache(Optimization):
    """Told apart by the classes of the cache's layers, by where their tensors lie and by how many bits they take."""

    name = "cache"
    title = "KV cache"
    summary = "How keys and values of past tokens are kept."
    default = "dynamic"
    order = 30
    leading = True
    decoders_only = True
    choices = (
        Choice("dynamic", "dynamic", "Grows token by token, and knows the windows: a sliding layer keeps window - 1."),
        Choice(
            "unwindowed",
            "unwindowed",
            "The old ever-growing cache: every layer keeps every token, needed or not.",
            (rules.SAME_AS_DYNAMIC,),
        ),
        Choice("static", "static", "Allocated once at its full length: shapes never change, so it can be compiled."),
        Choice(
            "offloaded",
            "offloaded",
            "Grows in host memory: only the layer at work and the next one are on the GPU.",
            rules.OFFLOADED,
        ),
        Choice(
            "offloaded_static",
            "offloaded, static",
            "Allocated once, in host memory; sliding layers, which are small, stay on the GPU.",
            rules.OFFLOADED_STATIC,
        ),
        Choice("quantized-fp8", "quantized, fp8", "A byte a number, with one scale a layer.", rules.FP8),
        Choice(
            "quantized-hqq4",
            "quantized, hqq 4 bits",
            "4 bits a number; the newest 127 tokens stay in full precision.",
            rules.HQQ,
        ),
        Choice(
            "quantized-quanto4",
            "quantized, quanto 4 bits",
            "4 bits a number; the newest 127 tokens stay in full precision.",
            rules.QUANTO,
        ),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        generate = msgspec.structs.replace(plan.generate, cache=_KINDS[name])
        return msgspec.structs.replace(plan, generate=generate)

    def write(self, script: Script, plan: Plan) -> None:
        if plan.generate.cache in _SCRIPTS:
            made, arguments = _SCRIPTS[plan.generate.cache]
            script.imports.add(f"from transformers import {made}")
            script.cache = f"{made}({arguments})"

    def find(self, seen: Seen) -> Finding:
        layers = Counter(type(layer).__name__ for layer in seen.cache.layers)
        proof = ", ".join(f"{n} x {name}" for name, n in sorted(layers.items())) + f"; {_bytes_text(seen)}"
        backend = next((_BACKENDS[name] for name in layers if name in _BACKENDS), "")
        if backend:
            bits = sorted({_bits(part) for layer in seen.cache.layers for part in packed_parts(layer)})
            told = " and ".join(f"{n} bits" for n in bits)
            suffix = "" if backend == "fp8" and bits == [8] else "/".join(map(str, bits))
            return Finding(self.name, f"quantized-{backend}{suffix}", f"{proof}; codes of {told} a number")
        offloaded = _on_host(seen) > 0
        if any(name.startswith("Static") for name in layers):
            return Finding(self.name, "offloaded_static" if offloaded else "static", proof)
        if offloaded:
            return Finding(self.name, "offloaded", proof)
        kinds = getattr(seen.model.config.get_text_config(decoder=True), "layer_types", None) or []
        windowed = sum("Sliding" in name for name in layers.elements())
        sliding = sum(kind == "sliding_attention" for kind in kinds)
        if not kinds and getattr(seen.model.config, "sliding_window", None):
            sliding = len(seen.cache.layers)
        if sliding == 0:
            same = "unwindowed" if seen.plan.generate.cache == "unwindowed" else "dynamic"
            return Finding(self.name, same, proof + " (no sliding layers: dynamic and unwindowed are the same)")
        return Finding(self.name, "dynamic" if windowed else "unwindowed", proof)


def _on_host(seen: Seen) -> int:
    """Bytes of the cache that are not where the model is."""
    device = str(getattr(seen.model, "device", "cpu")).partition(":")[0]
    return bytes_by_device(seen.cache)["cpu"] if device != "cpu" else 0


def _bytes_text(seen: Seen) -> str:
    held = bytes_by_device(seen.cache)
    if _on_host(seen) == 0:
        return f"{held.total():,} bytes"
    pinned = all(tensor.is_pinned() for tensor in cache_tensors(seen.cache) if tensor.device.type == "cpu")
    return f"{held.total():,} bytes, {held['cpu']:,} of them in {'pinned ' if pinned else ''}host memory"


def _bits(part: Any) -> int:
    """Bits of a code, a power of two: the bytes of the largest tensor over the numbers that it stands for. Rows that
    are filled up (optimum-quanto) may make it a little more."""
    codes = max(inner_tensors(part), key=lambda tensor: int(tensor.nbytes))
    numbers = next(_numbers(part), 0) or codes.numel()
    return 1 << max(0, int(8 * codes.nbytes // numbers).bit_length() - 1)


def _numbers(part: Any) -> Iterator[int]:
    """How many numbers were quantized: the shape that a quantizer notes, or that its tensor pretends to have."""
    if hasattr(part, "__tensor_flatten__"):
        yield part.numel()
    elif isinstance(part, tuple | list):
        for one in part:
            if isinstance(one, dict) and "shape" in one:
                yield math.prod(one["shape"])


AXIS = Cache()
