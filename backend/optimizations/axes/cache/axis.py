"""How the KV cache is stored, and where."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.axes.cache import rules as rules
from tokendyno.backend.optimizations.axes.cache.construct import CONFIG, LENGTH, cache_construct
from tokendyno.backend.optimizations.base import Choice, Optimization
from tokendyno.backend.optimizations.proof import Observation
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.optimizations.tensor_bytes import (
    bytes_by_device,
    cache_tensors,
    inner_tensors,
    keeps_tokens,
    quantized_parts,
)
from tokendyno.backend.plan import CACHES, STATIC_FP8, Plan
from tokendyno.backend.script.parts import Script

_WINDOWED = ("sliding_attention", "chunked_attention", "hybrid_sliding")
_PATCHES = {
    "quanto": ("worker/patch/quantized.py", "unpack_with_torch"),
    "fp8": ("worker/patch/quantized.py", "saturate_fp8_cache"),
}
"""What the worker changes in the package that quantizes: file and function."""
_FP8_SLOTS = "StaticFp8SlotLayer"
_BACKENDS = {"Fp8QuantizedLayer": "fp8", "HQQQuantizedLayer": "hqq", "QuantoQuantizedLayer": "quanto"}


class Cache(Optimization):
    """Told by the class of every layer of the cache, the devices of its tensors, and bytes per element."""

    name = "cache"
    title = "KV cache"
    summary = "How keys and values of past tokens are stored."
    default = "dynamic"
    witness = "kv"
    order = 30
    leading = True
    decoders_only = True
    in_fit_table = True
    aliases = {
        "": ("cache_implementation", "past_key_values", "cache_config"),
        "dynamic": ("DynamicCache(config=model.config)",),
        "unwindowed": ("DynamicCache()", "sliding_window"),
        "static": ("StaticCache", "max_cache_len"),
        "offloaded": ("OffloadedCache", "DynamicCache(offloading=True)"),
        "offloaded_static": ("OffloadedStaticCache", "StaticCache(offloading=True)"),
        "quantized-fp8": ("QuantizedCache", "float8", "8-bit"),
        "quantized-hqq4": ("QuantizedCache", "4bit", "4-bit"),
        "quantized-quanto4": ("QuantizedCache", "4bit", "4-bit"),
    }
    renamed = {
        "OffloadedCache": "past_key_values=DynamicCache(offloading=True)",
        "OffloadedStaticCache": "past_key_values=StaticCache(offloading=True)",
    }
    wish = "context"
    wishes = {"static": "faster", "unwindowed": "reference"}
    costs = {
        "static": "memory for the full length from the start",
        "unwindowed": "memory that grows past the window",
        "offloaded": "time: each layer is copied for each token",
        "offloaded_static": "time: each layer is copied for each token",
        "static-fp8": "little quality, and memory for the full length from the start",
        "quantized-fp8": "little quality",
        "quantized-hqq4": "some quality, and time",
        "quantized-quanto4": "some quality, and time",
    }
    choices = (
        Choice(
            "dynamic", "dynamic", "Grows with each token; sliding-window layers keep window - 1 tokens.", loss=2
        ),
        Choice(
            "unwindowed", "full (no sliding window)", "Grows with each token, and every layer keeps every token.",
            (*rules.UNWINDOWED, rules.SAME_AS_DYNAMIC), tried_on_several_gpus=False,
        ),
        Choice(
            "static", "static", "Allocated once at its full length: shapes stay fixed, so steps compile.",
            (*rules.STATIC, rules.COMPILES_BY_ITSELF), loss=3,
        ),
        Choice(
            "static-fp8", "static, fp8",
            "Allocated once, 1 byte per element, with a scale for each token and head.",
            rules.STATIC_FP8, loss=40, tried_on_several_gpus=False,
        ),
        Choice(
            "offloaded", "offloaded", "Grows in host memory; only the current and the next layer are on the GPU.",
            rules.OFFLOADED, loss=21, tried_on_several_gpus=False,
        ),
        Choice(
            "offloaded_static", "offloaded, static",
            "Allocated once in host memory; sliding-window layers, which are small, stay on the GPU.",
            rules.OFFLOADED_STATIC, loss=22, tried_on_several_gpus=False,
        ),
        Choice(
            "quantized-fp8", "quantized, fp8",
            "1 byte per element, with one scale per layer, taken from the prompt; larger numbers are cut off.",
            rules.FP8, loss=41, tried_on_several_gpus=False,
        ),
        Choice(
            "quantized-hqq4", "quantized, hqq 4 bits",
            "4 bits per element; the newest 127 tokens stay in full precision.",
            rules.HQQ, loss=51, tried_on_several_gpus=False,
        ),
        Choice(
            "quantized-quanto4", "quantized, quanto 4 bits",
            "4 bits per element; the newest 127 tokens stay in full precision.",
            rules.QUANTO, loss=52, tried_on_several_gpus=False,
        ),
    )  # fmt: skip

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        generate = msgspec.structs.replace(plan.generate, cache=CACHES[name])
        return msgspec.structs.replace(plan, generate=generate)

    def write(self, script: Script, plan: Plan) -> None:
        if plan.generate.cache not in (CACHES[self.default], STATIC_FP8):  # the loop writes its own
            cache = cache_construct(plan.generate.cache)
            script.imports.update(cache.imports())
            script.cache = cache.source(**{CONFIG: "model.config", LENGTH: "MAX_LENGTH"})
            if plan.generate.cache.backend in _PATCHES:
                file, name = _PATCHES[plan.generate.cache.backend]
                script.define(file, name)
                script.patch.append(f"{name}()")

    def find(self, observation: Observation) -> Finding:
        """Every layer of the cache that the measured run filled: its class, its position in the model, its tensors."""
        layers = observation.cache.layers
        offloaded = _on_host(observation) > 0
        sliding = _sliding_positions(observation.model.config, len(layers))
        of_images = (
            getattr(observation.model.config.get_text_config(decoder=True), "cross_attention_layers", None) or ()
        )
        told = [
            _choices_of(layer, slides, offloaded)
            for i, (layer, slides) in enumerate(zip(layers, sliding, strict=True))
            if keeps_tokens(layer) and i not in of_images  # these hold what an image gave, and a text has none
        ]
        counted = Counter(type(layer).__name__ for layer in layers)
        proof = ", ".join(f"{n} x {name}" for name, n in sorted(counted.items())) + f"; {_bytes_text(observation)}"
        bits = sorted({_bits(part) for layer in layers for part in quantized_parts(layer)})
        if bits:
            proof += f"; {' and '.join(f'{n} bits' for n in bits)} per element"
        planned = observation.plan.generate.cache.name
        votes = Counter(name for names in told for name in names)
        decided = Counter(names[0] for names in told if len(names) == 1) or votes
        effective = planned if decided[planned] else next((name for name, _ in decided.most_common()), "unknown")
        moved = observation.counts.passes.moved_layers if effective in ("static", STATIC_FP8.name) else 0
        stayed = _stayed(layers) if effective.startswith("offloaded") else 0
        reached = max(0, votes[effective] - moved - stayed)
        if moved:
            proof += f"; {moved} of {len(told)} layers moved to other addresses during the run"
        elif stayed:
            proof += f"; {stayed} of {len(told)} layers stayed on the GPU, beside the one that is fetched next"
        elif reached < len(told):
            proof += f"; {reached} of {len(told)} layers hold their tokens like that"
        elif {"dynamic", "unwindowed"} <= votes.keys() and votes["dynamic"] == votes["unwindowed"]:
            proof += " (no sliding layers: dynamic and unwindowed are the same)"
        return Finding(self.name, effective, proof, reached, len(told))


def _sliding_positions(config: Any, layers: int) -> list[bool]:
    """Which layers of the model attend to a window, in their order."""
    text = config.get_text_config(decoder=True)
    kinds = getattr(text, "layer_types", None)
    if kinds:
        return [kind in _WINDOWED for kind in kinds[:layers]] + [False] * (layers - len(kinds))
    return [bool(getattr(text, "sliding_window", None))] * layers


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
    if name == _FP8_SLOTS:
        return (STATIC_FP8.name,) if _is_rounded(layer) else ()
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


def _is_rounded(layer: Any) -> bool:
    """Whether each number of keys and values takes a byte, and each token and head has a scale in use."""
    pairs = ((layer.keys, layer.key_scales), (layer.values, layer.value_scales))
    return all(
        codes.element_size() == 1 and scales.shape == codes.shape[:3] and bool(scales.any()) for codes, scales in pairs
    )


def _stayed(layers: Sequence[Any]) -> int:
    """Layers of an offloaded cache that are not in host memory, but for the next one, and windows of a static one."""
    movable = [one for one in layers if keeps_tokens(one) and not type(one).__name__.startswith("StaticSliding")]
    here = [one for one in movable if one.keys is not None and one.keys.device.type != "cpu"]
    return max(0, len(here) - 1)


def _on_host(observation: Observation) -> int:
    """Bytes of the cache in host memory, of a model on a GPU."""
    device = str(getattr(observation.model, "device", "cpu")).partition(":")[0]
    return bytes_by_device(observation.cache)["cpu"] if device != "cpu" else 0


def _bytes_text(observation: Observation) -> str:
    held = bytes_by_device(observation.cache)
    if _on_host(observation) == 0:
        return f"{held.total():,} bytes"
    pinned = all(tensor.is_pinned() for tensor in cache_tensors(observation.cache) if tensor.device.type == "cpu")
    return f"{held.total():,} bytes, {held['cpu']:,} of them in {'pinned ' if pinned else ''}host memory"


def _bits(part: Any) -> int:
    """Bits per element, a power of two: bytes of the codes over the elements that they encode, scales apart."""
    tensors = list(inner_tensors(part))
    of_codes = [one for one in tensors if one.element_size() == 1 or not one.is_floating_point()]
    codes = max(of_codes or tensors, key=lambda tensor: int(tensor.nbytes))
    packed: Any = getattr(part, "_data", None)
    if (bits := getattr(packed, "_bits", 0)) and len(codes) == -(-len(packed) * bits // 8):
        return int(bits)
    numbers = next(_numbers(part), 0) or codes.numel()
    return 1 << max(0, int(8 * codes.nbytes // numbers).bit_length() - 1)


def _numbers(part: Any) -> Iterator[int]:
    """How many elements were quantized: by the shape that the quantizer records, or that its tensor reports."""
    if hasattr(part, "__tensor_flatten__"):
        yield part.numel()
    elif isinstance(part, tuple | list):
        for one in part:
            if isinstance(one, dict) and "shape" in one:
                yield math.prod(one["shape"])


AXIS = Cache()
