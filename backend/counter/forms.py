"""Whether a model's layers fit into caches of a fixed form: static ones, the slots of the custom decode loop, and the
pages of transformers' continuous batching.

transformers is asked, not a list of architectures: `generate` runs without values over its static cache, which says of
which class each layer is; its continuous batching says how it groups layers and how large it takes keys and values to
be.
"""

from typing import Any

import torch
from transformers import GenerationConfig, StaticCache
from transformers.cache_utils import StaticSlidingWindowLayer
from transformers.generation.continuous_batching.cache import group_layers_by_attn_type
from transformers.generation.continuous_batching.utils import find_head_dim, find_num_key_value_heads

from backend.counter.cache import LONG, observed

LONGEST = 1 << 40
"""Longer than every window: nothing is allocated before the first update."""

SLOTTED = {"StaticLayer", "StaticSlidingWindowLayer"}
"""Classes of layers that `backend/worker/loop/cache.py: StaticSlotCache` takes; a test compares them."""


def fits_static(model: Any, filled: Any) -> bool:
    """Whether `generate` reads a prompt into a static cache with one place for each token.

    model: one with few layers is enough; filled: a dynamic cache after a pass over `LONG` tokens.
    """
    if any(keys is not None and keys.shape[2] > LONG for keys in _each(filled, "keys")):
        return False  # it puts tokens of its own in front
    ids = torch.zeros((1, LONG), dtype=torch.long, device="meta")
    try:
        cache = StaticCache(config=model.config.get_text_config(decoder=True), max_cache_len=2 * LONG)
        cache.get_seq_length = lambda *_, **__: 0  # a number that tensors without values do not have
        with observed():
            model.generation_config = GenerationConfig()  # processors of scores would need values
            model.generate(
                ids, attention_mask=torch.ones_like(ids), past_key_values=cache, max_new_tokens=1, disable_compile=True
            )
    except Exception:  # of any model's code
        return False
    return True


def fits_slots(config: Any) -> bool:
    """Whether the custom decode loop has a layer for each of a static cache. config: of the text model."""
    try:
        layers = StaticCache(config=config, max_cache_len=LONGEST).layers
    except Exception:  # a kind of layer without a static form
        return False
    windows = {layer.max_cache_len for layer in layers if isinstance(layer, StaticSlidingWindowLayer)}
    return len(windows) <= 1 and {type(layer).__name__ for layer in layers} <= SLOTTED


def fits_pages(model: Any, filled: Any) -> bool:
    """Whether continuous batching can keep this model's tokens. filled: a dynamic cache after a pass of the model."""
    config = model.config.get_text_config()
    try:
        groups = group_layers_by_attn_type(config)
        size = find_num_key_value_heads(config), find_head_dim(config)
    except Exception:  # another kind of layer, or layers of several sizes
        return False
    shared = sum(map(len, groups.values())) != len(filled.layers)
    if shared or not model._supports_attention_backend:  # attention that does not come through its interface
        return False
    return all(one.shape[1::2] == size for name in ("keys", "values") for one in _each(filled, name))


def _each(cache: Any, name: str) -> list[Any]:
    return [getattr(layer, name, None) for layer in cache.layers]
