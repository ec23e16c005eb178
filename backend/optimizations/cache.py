"""How keys and values of past tokens are kept."""

from collections import Counter

import msgspec

from backend.messages import Finding
from backend.optimizations.base import Choice, Optimization, Rule, Seen, Subject
from backend.plan import CacheKind, Plan

_DOCS = "https://huggingface.co/docs/transformers/kv_cache"
_KINDS: dict[str, CacheKind] = {"dynamic": "dynamic", "unwindowed": "unwindowed", "static": "static"}


class Cache(Optimization):
    """Windowed, ever-growing or static, told apart by the classes of the cache's layers."""

    name = "cache"
    title = "KV cache"
    summary = "How keys and values of past tokens are kept."
    default = "dynamic"
    order = 30
    choices = (
        Choice("dynamic", "dynamic", "Grows token by token, and knows the windows: a sliding layer keeps window - 1."),
        Choice(
            "unwindowed",
            "unwindowed",
            "The old ever-growing cache: every layer keeps every token, needed or not.",
            (
                Rule(
                    "note",
                    lambda s: "sliding" not in s.facts.layer_kinds,
                    "This model has no sliding-window layers, so this is the same as dynamic.",
                    _DOCS,
                ),
            ),
        ),
        Choice("static", "static", "Allocated once at its full length: shapes never change, so it can be compiled."),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        generate = msgspec.structs.replace(plan.generate, cache=_KINDS[name])
        return msgspec.structs.replace(plan, generate=generate)

    def find(self, seen: Seen) -> Finding:
        """Looks at the classes of the cache's layers, and at the bytes of their tensors."""
        layers = Counter(type(layer).__name__ for layer in seen.cache.layers)
        tensors = [t for layer in seen.cache.layers for t in (layer.keys, layer.values) if t is not None]
        held = sum(t.nbytes for t in tensors)
        proof = ", ".join(f"{n} x {name}" for name, n in sorted(layers.items())) + f"; {held:,} bytes"
        if any(name.startswith("Static") for name in layers):
            return Finding(self.name, "static", proof)
        kinds = getattr(seen.model.config.get_text_config(decoder=True), "layer_types", None) or []
        windowed = sum("Sliding" in name for name in layers.elements())
        sliding = sum(kind == "sliding_attention" for kind in kinds)
        if not kinds and getattr(seen.model.config, "sliding_window", None):
            sliding = len(seen.cache.layers)
        if sliding == 0:
            same = seen.plan.generate.cache if seen.plan.generate.cache != "static" else "dynamic"
            return Finding(self.name, same, proof + " (no sliding layers: dynamic and unwindowed are the same)")
        return Finding(self.name, "dynamic" if windowed else "unwindowed", proof)


AXIS = Cache()
