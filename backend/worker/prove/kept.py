"""Holds the keys and values that the measured run kept against those of one pass over its text."""

from typing import Any, NamedTuple

import torch
from transformers import Cache

APART = 0.5
"""How far a token's keys or values may lie apart, as a share of their length: layers before them are rounded otherwise.
Those of another token lie 1.4 apart, and zeros 1."""
FEW = 1 / 16
"""Share of tokens that may lie further: a router that is rounded otherwise sends a token elsewhere."""

_CACHES = ("DynamicCache", "StaticCache", "StaticSlotCache")
_LAYERS = ("DynamicLayer", "DynamicSlidingWindowLayer", "StaticLayer", "StaticSlidingWindowLayer", "StaticSlotLayer",
           "StaticFp8SlotLayer", "RingSlotLayer")  # fmt: skip


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
    """Whether it is of a usual kind, all of its layers keep tokens, and some of them where it can be told. Models with
    a kind of their own take no other one."""
    usual = cache is not None and type(cache).__name__ in _CACHES
    return usual and all(map(_plain, cache.layers)) and any(map(_told, cache.layers))


def compare(cache: Any, one_pass: OnePass, padding: int, prompt: int = 0) -> Kept:
    """padding: places before the text in a row of the cache; prompt: tokens of it that all rows of a batch have."""
    compared = strange = 0
    for place, layer in enumerate(cache.layers):
        if _told(layer) and place in one_pass.pairs:
            pairs = zip(_states(layer), one_pass.pairs[place], strict=True)
            compared += 1
            strange += any(
                _apart(*_same_tokens(layer, row, found[0][:, : prompt if i else None], padding))
                for kept, found in pairs
                for i, row in enumerate(kept)
            )
    return Kept(compared, strange)


def _plain(layer: Any) -> bool:
    keys = getattr(layer, "keys", None) if type(layer).__name__ in _LAYERS else None
    return isinstance(keys, torch.Tensor) and keys.ndim == 4 and keys.numel() > 0


def _states(layer: Any) -> tuple[Any, Any]:
    """Keys and values, those in 8 bits as what they stand for."""
    if not hasattr(layer, "key_scales"):
        return layer.keys, layer.values
    return layer.keys.float() * layer.key_scales[..., None], layer.values.float() * layer.value_scales[..., None]


def _told(layer: Any) -> bool:
    """Not of a window in fixed memory: its tokens are shifted, or go round."""
    return not (_slides(layer) and hasattr(layer, "max_cache_len"))


def _slides(layer: Any) -> bool:
    return bool(getattr(layer, "is_sliding", False))


def _same_tokens(layer: Any, kept: Any, found: Any, padding: int) -> tuple[Any, Any]:
    """Both (heads, tokens, D). A window holds the newest ones, any other layer all of them from the first on."""
    first = int(layer.get_seq_length()) - kept.shape[1] - padding if _slides(layer) else 0
    kept = kept[:, max(0, padding if not _slides(layer) else -first) :]
    found = found[:, max(0, first) :]
    tokens = min(kept.shape[1], found.shape[1])
    return kept[:, :tokens].to(found.device), found[:, :tokens]


def _apart(kept: Any, found: Any) -> bool:
    far = (kept.float() - found.float()).norm(dim=(0, 2)) > APART * found.float().norm(dim=(0, 2))
    return bool(far.sum() > len(far) * FEW)
