"""Which attention the run's own steps called, counted in the trace by operators and the shapes of their inputs."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from tokendyno.backend.optimizations.proof import Observation, Trace, layers_without_own_keys, regions

_SDPA = "aten::scaled_dot_product_attention"
_FUSED = (
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_cudnn_attention",
)
_MATH = "aten::_scaled_dot_product_attention_math"
_FLASH = ("flash_fwd", "flashattnfwd", "flashattentionforward")
_NOT_FLASH = ("pytorch_flash", "combine", "prepare")


@dataclass(frozen=True, slots=True)
class Heads:
    """Query heads of a model, and the KV heads that they share."""

    queries: int
    keys: int


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of attention in a trace.

    sdpa      PyTorch's scaled_dot_product_attention
    repeated  those of them, of a single new token, whose KV heads had been copied for each query head
    grouped   softmax over scores (B, KV heads, group, S): products written out by groups of heads
    eager     softmax over other scores of attention; a router's have fewer dimensions
    """

    sdpa: int
    repeated: int
    grouped: int
    eager: int
    flex: int

    def of(self, choice: str) -> int:
        """Calls that this choice makes; 0 for flash kernels, which are no operators of torch: see `flash_calls`."""
        match choice:
            case "sdpa":
                return self.sdpa
            case "sdpa-gqa":
                return self.sdpa - self.repeated + self.grouped
            case "flex_attention":
                return self.flex
            case "eager":
                return self.eager + self.grouped
        return 0

    def others(self, choice: str) -> Counter[str]:
        """Calls that another choice makes, by choice."""
        found = Counter(sdpa=self.sdpa, eager=self.eager, flex_attention=self.flex)
        match choice:
            case "sdpa-gqa":
                found["sdpa"] = self.repeated
            case "eager":
                found["eager"] = 0
            case "sdpa":
                found["eager"] += self.grouped
        if choice != "sdpa-gqa":
            found[choice] = 0
        return +found


def calls(trace: Trace, heads: Heads, inline: bool = False) -> Calls:
    """Count them. Compiled code calls fused kernels without the operator in front; math is torch's own softmax.

    inline: the layers' code calls no function of attention, so that scores may have texts and heads in one dimension.
    """
    sdpa = repeated = softmax = grouped = 0
    for (name, shapes), n in trace.shapes.items():
        if name == _SDPA:
            sdpa += n
            query, key = shapes[0], shapes[1]
            one = len(query) == 4 and query[2] == 1
            repeated += n * (one and key[1] == query[1] == heads.queries != heads.keys)
        elif name == "aten::softmax" and len(shapes[0]) == 4:
            _, first, second, _ = shapes[0]
            mine = heads.keys < heads.queries and first == heads.keys and first * second == heads.queries
            grouped, softmax = grouped + n * mine, softmax + n * (not mine)
        elif name == "aten::softmax" and inline and len(shapes[0]) == 3:
            softmax += n * (shapes[0][0] % heads.queries == 0)
    fused = sum(trace.ops[name] for name in _FUSED)
    flex = regions(trace, lambda graph: graph.co_name == "flex_attention").total()
    return Calls(max(sdpa, fused), repeated, grouped, max(0, softmax - trace.ops[_MATH]), flex)


def flash_calls(trace: Trace) -> int:
    """Calls of FlashAttention 2, 3 or 4, by the one kernel of each that computes, in replayed graphs too."""
    return sum(
        n
        for name, n in trace.kernels.items()
        if any(mark in name.lower() for mark in _FLASH) and not any(mark in name.lower() for mark in _NOT_FLASH)
    )


def heads_of(model: Any) -> Heads:
    """As the config says it."""
    config = model.config.get_text_config(decoder=True)
    queries = int(config.num_attention_heads)
    return Heads(queries, int(getattr(config, "num_key_value_heads", None) or queries))


def layers(observation: Observation) -> int:
    """Layers that attend: those whose keys the run cached, and those that take another one's; without a cache all."""
    held = getattr(observation.cache, "layers", ())
    if not held:
        return int(observation.model.config.get_text_config(decoder=True).num_hidden_layers)
    cached = sum(getattr(layer, "keys", None) is not None for layer in held)
    return cached + layers_without_own_keys(observation.model)
