"""Holds the keys and values that the measured run kept against those of one pass over its text."""

from collections.abc import Collection
from typing import Any, NamedTuple

import torch
from transformers import Cache

APART, APART_16_BITS, APART_ROUNDED = 0.01, 0.2, 0.5
"""How far a token's keys or values may lie apart, as a share of their length: layers before them are rounded otherwise.
Measured were 1e-6 in float32, 0.01 in bfloat16 with eight layers, 0.04 in codes of 8 bits. Those of another token lie
1.4 apart, zeros 1, keys of the next position about 0.3."""
FEW, FEW_OF_STEPS = 1 / 16, 1 / 8
"""Share of the prompt's tokens, and of those that steps wrote, that may lie further in 16 bits and fewer, or one: a
router that is rounded otherwise sends a token elsewhere, and values of a token that all attend to are almost nothing.
In float32 none may."""

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


def compare(
    cache: Any, one_pass: OnePass, padding: int, prompt: int = 0, rows: Collection[int] = (0,), packed: bool = False
) -> Kept:
    """padding: places before the text in a row of the cache; prompt: tokens of it that all rows of a batch have; rows:
    those with the whole text; packed: whether weights are."""
    compared = strange = 0
    for place, layer in enumerate(cache.layers):
        if _told(layer) and place in one_pass.pairs:
            limit = APART_ROUNDED if packed or hasattr(layer, "key_scales") else _limit(layer.keys.dtype)
            pairs = zip(_states(layer), one_pass.pairs[place], strict=True)
            compared += 1
            strange += any(
                _apart(*_same_tokens(layer, row, found[0], padding, None if i in rows else prompt), prompt, limit)
                for kept, found in pairs
                for i, row in enumerate(kept)
            )
    return Kept(compared, strange)


def _limit(dtype: torch.dtype) -> float:
    return APART if dtype == torch.float32 else APART_16_BITS


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


def _same_tokens(layer: Any, kept: Any, found: Any, padding: int, end: int | None) -> tuple[Any, Any, int]:
    """Both (heads, tokens, D), up to this place of the text, and where the first of them is in it. A window holds the
    newest ones, any other layer all of them from the first on."""
    first = int(layer.get_seq_length()) - kept.shape[1] - padding if _slides(layer) else 0
    kept = kept[:, max(0, padding if not _slides(layer) else -first) :]
    found = found[:, max(0, first) : end]
    tokens = min(kept.shape[1], found.shape[1])
    return kept[:, :tokens].to(found.device), found[:, :tokens], max(0, first)


def _apart(kept: Any, found: Any, first: int, prompt: int, limit: float) -> bool:
    """Whether more tokens lie further apart than may, of the prompt or of those behind it."""
    far = (kept.float() - found.float()).norm(dim=(0, 2)) > limit * found.float().norm(dim=(0, 2))
    behind = max(0, prompt - first)
    return any(
        int(part.sum()) > (0 if limit == APART else max(1, len(part) * few))
        for part, few in ((far[:behind], FEW), (far[behind:], FEW_OF_STEPS))
    )
