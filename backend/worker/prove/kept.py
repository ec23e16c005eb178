"""Holds the keys and values that the measured run kept against those of one pass over its text."""

import math
from collections.abc import Collection
from typing import Any, NamedTuple

import torch
from transformers import Cache

APART = {torch.float32: 0.01, torch.float16: 0.05}
APART_OTHERWISE, APART_ROUNDED = 0.2, 0.5
"""How far a token's keys or values may lie apart, as a share of their length: layers before them are rounded otherwise.
Measured in 32 layers were 1e-6 in float32, 0.005 in float16, 0.07 in bfloat16, and 0.31 with packed weights or in 8
bits. Those of another token lie 1.4 apart, zeros 1."""
OF_FIRST, OF_FIRST_ROUNDED = 0.03, 0.1
"""The same in the first layer, before which nothing is rounded: measured were 0.005, rounded 0.03. Keys of the next
position lie 0.2 to 0.3 apart."""
SMALL = 0.1
"""Tokens whose numbers are shorter than this share of the median count as that long: values of a token that all attend
to are almost nothing, and what rounding adds to them is not."""
FEW, FEW_OF_STEPS, FARTHEST = 1 / 16, 1 / 8, 0.8
"""Share of the prompt's tokens, and of those that steps wrote, that may lie further, or one, where a router that is
rounded otherwise sends a token elsewhere: in 16 bits and fewer, behind the first layer. Elsewhere none may, and nowhere
further than FARTHEST; measured were 0.42.

Quantized caches have groups of tokens, of which one that is much larger takes the others' bits: in 4 bits a few of a
real model's lay 0.2 to 0.79 apart, so these may lie anywhere. Steps attend to what was rounded: behind the first layer
they lay up to 0.64 apart with 32 layers of random weights, and are not compared."""

_CACHES = ("DynamicCache", "StaticCache", "StaticSlotCache", "QuantizedCache")
_PACKED = ("Fp8QuantizedLayer", "HQQQuantizedLayer", "QuantoQuantizedLayer")
_LAYERS = ("DynamicLayer", "DynamicSlidingWindowLayer", "StaticLayer", "StaticSlidingWindowLayer", "StaticSlotLayer",
           "StaticFp8SlotLayer", "RingSlotLayer", *_PACKED)  # fmt: skip


class Kept(NamedTuple):
    """Layers that were compared, and those of them that kept something else."""

    compared: int
    strange: int


class OnePass(Cache):  # type: ignore[misc]
    """Takes the keys and values (B, heads, tokens, D) of one pass over a text, by layer, and hands out the same."""

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.pairs: dict[int, tuple[Any, Any]] = {}

    def update(self, key_states: Any, value_states: Any, layer_idx: int, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """As a cache is called; nothing was there before."""
        self.pairs[layer_idx] = key_states, value_states
        return key_states, value_states


def can_be_compared(cache: Any) -> bool:
    """Whether it is of a usual kind, and all of its layers keep tokens. Models with a kind of their own take no other
    one."""
    usual = cache is not None and type(cache).__name__ in _CACHES
    return usual and bool(cache.layers) and all(map(_plain, cache.layers))


def compare(
    cache: Any, one_pass: OnePass, padding: int, prompt: int = 0, rows: Collection[int] = (0,), packed: bool = False,
    routed: bool = False, window: int = 0,
) -> Kept:  # fmt: skip
    """padding: places before the text in a row of the cache; prompt: tokens of it that all rows of a batch have; rows:
    those with the whole text; packed: whether weights are; routed: whether there are mixtures; window: tokens that a
    layer with a window must keep, 0 if that is not known."""
    compared = strange = 0
    for place, layer in enumerate(cache.layers):
        if place not in one_pass.pairs:
            continue
        rounded, dtype = packed or hasattr(layer, "key_scales"), layer.keys.dtype
        may = _May(_limit(dtype, place == 0, rounded), routed and place > 0 and (rounded or dtype != torch.float32))
        whole = rows
        if type(layer).__name__ in _PACKED:
            may = _May(FARTHEST if place else APART_ROUNDED, few=True, farthest=math.inf)
            whole = () if place else rows
        states, first, short = _in_order(layer, window)
        compared += 1
        strange += short or any(
            _apart(row, found[0, :, : None if i in whole else prompt], first - padding, prompt, may)
            for kept, found in zip(states, one_pass.pairs[place], strict=True)
            for i, row in enumerate(kept)
        )
    return Kept(compared, strange)


class _May(NamedTuple):
    """How far a token may lie apart, whether a few may lie further, and how far these."""

    limit: float
    few: bool
    farthest: float = FARTHEST


def _limit(dtype: torch.dtype, first: bool, rounded: bool) -> float:
    if rounded:
        return OF_FIRST_ROUNDED if first else APART_ROUNDED
    limit = APART.get(dtype, APART_OTHERWISE)
    return min(limit, OF_FIRST) if first else limit


def _plain(layer: Any) -> bool:
    if type(layer).__name__ in _PACKED:
        return getattr(layer, "_quantized_keys", None) is not None
    keys = getattr(layer, "keys", None) if type(layer).__name__ in _LAYERS else None
    return isinstance(keys, torch.Tensor) and keys.ndim == 4 and keys.numel() > 0


def _in_order(layer: Any, window: int) -> tuple[tuple[Any, Any], int, bool]:
    """Keys and values (B, heads, tokens, D) from the oldest token on, rounded ones as what they stand for; how many
    tokens were before it, padding included; whether fewer are kept than attention needs."""
    keys, values = layer.keys, layer.values
    if type(layer).__name__ in _PACKED:  # and the newest tokens as they are
        packed = map(layer._dequantize, (layer._quantized_keys, layer._quantized_values))
        keys, values = (
            torch.cat([old, new], 2) if new.numel() else old for old, new in zip(packed, (keys, values), strict=True)
        )
    if hasattr(layer, "key_scales"):
        keys, values = keys.float() * layer.key_scales[..., None], values.float() * layer.value_scales[..., None]
    if not getattr(layer, "is_sliding", False):
        return (keys, values), 0, False
    tokens, size = int(layer.get_seq_length()), keys.shape[2]
    fixed = hasattr(layer, "max_cache_len")
    if hasattr(layer, "oldest"):  # a ring buffer
        tokens, oldest = layer.oldest()
        keys, values = (one.roll(-oldest, 2) for one in (keys, values))
    short = size < min(tokens, window if fixed else window - 1)  # what grows adds the newest one as it attends
    if fixed and tokens < size:
        keys, values = keys[:, :, :tokens], values[:, :, :tokens]
    return (keys, values), max(0, tokens - size), short


def _apart(kept: Any, found: Any, first: int, prompt: int, may: _May) -> bool:
    """Whether more tokens lie further apart than may, of the prompt or of those behind it.

    kept: (heads, tokens, D), whose first one is at this place of the text; found: those of the text
    """
    kept, found = kept[:, max(0, -first) :], found[:, max(0, first) :]
    tokens = min(kept.shape[1], found.shape[1])
    kept, found = kept[:, :tokens].to(found.device).float(), found[:, :tokens].float()
    lengths = found.norm(dim=(0, 2))
    if not tokens:
        return False
    least = max(SMALL * float(lengths.median()), torch.finfo(torch.float32).tiny)
    apart = (kept - found).norm(dim=(0, 2)) / lengths.clamp(min=least)
    far = ~(apart <= may.limit)  # NaN is far
    behind = max(0, prompt - max(0, first))
    return not bool((apart <= may.farthest).all()) or any(
        int(part.sum()) > (max(1, len(part) * few) if may.few else 0)
        for part, few in ((far[:behind], FEW), (far[behind:], FEW_OF_STEPS))
    )
