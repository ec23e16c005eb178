"""Whether a model's layers fit into caches of a fixed form: static ones, the slots of the custom decode loop, and the
pages of transformers' continuous batching.

transformers is asked, not a list of architectures: `generate` and a step of continuous batching run without values, the
static cache says of which class each layer is, and continuous batching how it groups layers and how large it takes keys
and values to be.
"""

from collections.abc import Sequence
from typing import Any

import torch
from transformers import GenerationConfig, StaticCache
from transformers.cache_utils import StaticLayer, StaticSlidingWindowLayer
from transformers.generation.continuous_batching.cache import PagedAttentionCache, group_layers_by_attn_type
from transformers.generation.continuous_batching.utils import find_head_dim, find_num_key_value_heads

from tokendyno.backend.counter.cache import LONG, observed
from tokendyno.backend.optimizations.axes.loop import slot_masks

LONGEST = 1 << 40
"""Longer than every window: nothing is allocated before the first update."""

SLOTTED = {
    "StaticLayer",
    "StaticSlidingWindowLayer",
    "LinearAttentionLayer",
    "LinearAttentionAndStaticFullAttentionLayer",
    "LinearAttentionAndStaticSlidingWindowAttentionLayer",
}
"""Classes of layers that `backend/worker/loop/cache.py: StaticSlotCache` takes; a test compares them."""


def fits_static(model: Any, filled: Any) -> bool:
    """Whether `generate` reads a prompt into a static cache. filled: a dynamic one after a pass over `LONG` tokens."""
    keys = [one for layer in filled.layers if (one := getattr(layer, "keys", None)) is not None]
    if any(one.shape[2] > LONG for one in keys):
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


def fits_slots(layers: Sequence[Any]) -> bool:
    """Whether the custom decode loop has a layer for each of a static cache, and slots for any tokens."""
    windows = {layer.max_cache_len for layer in layers if isinstance(layer, StaticSlidingWindowLayer)}
    slotted = any(isinstance(layer, StaticLayer) for layer in layers)
    return slotted and len(windows) <= 1 and {type(layer).__name__ for layer in layers} <= SLOTTED


def slot_step(model: Any) -> bool | None:
    """Whether a decode step over slots waits for the device; None: the custom decode loop has no such step for it."""
    config = model.config.get_text_config(decoder=True)
    ids = torch.zeros((1, LONG), dtype=torch.long, device="meta")
    try:
        if not fits_slots(StaticCache(config=config, max_cache_len=LONGEST).layers):
            return None
        cache = StaticCache(config=config, max_cache_len=2 * LONG)
        cache.get_seq_length = lambda *_, **__: 0
        with observed():
            model(input_ids=ids, position_ids=ids, past_key_values=cache, use_cache=True)
        cache.get_mask_sizes = None  # slots are in no order: what asks where a token lies would be wrong
        sizes = {layer.is_sliding: layer.max_cache_len for layer in cache.layers if isinstance(layer, StaticLayer)}
        full, sliding = (
            torch.ones((1, 1, 1, sizes[slides]), dtype=torch.bool, device="meta") if slides in sizes else None
            for slides in (False, True)
        )
        with observed() as answers:
            model(
                input_ids=ids[:, :1],
                attention_mask=slot_masks(config, full, sliding),
                position_ids=ids[:, :1],
                past_key_values=cache,
                use_cache=True,
            )
    except Exception:  # of any model's code
        return None
    return answers.waited


class _Pages(PagedAttentionCache):  # type: ignore[misc]
    """Pages that hold nothing: each layer finds as many tokens there as it brings. size: KV heads, and their width."""

    def __init__(self, size: tuple[int, int]) -> None:
        self.size, self.layers = size, set[int]()

    def update(self, key_states: Any, value_states: Any, layer_idx: int, kwargs: dict[str, Any]) -> tuple[Any, Any]:
        for states in (key_states, value_states):
            if states.shape[1::2] != self.size:
                raise ValueError("not as large as a page's tokens")
        self.layers.add(layer_idx)
        return torch.cat([key_states] * 2, 2), torch.cat([value_states] * 2, 2)


def fits_pages(model: Any, filled: Any) -> bool:
    """Whether a step of continuous batching writes into pages in each layer. filled: a dynamic cache after a pass."""
    config = model.config.get_text_config()
    try:
        groups = group_layers_by_attn_type(config)
        pages = _Pages((find_num_key_value_heads(config), find_head_dim(config)))
        if config._attn_implementation == "eager":
            model.set_attn_implementation("paged|eager")
        ids = torch.zeros((1, LONG), dtype=torch.long, device="meta")
        mask = torch.zeros((1, 1, LONG, 2 * LONG), dtype=model.dtype, device="meta")
        with observed():
            model(
                input_ids=ids,
                position_ids=ids,
                cache=pages,
                use_cache=False,
                attention_mask=dict.fromkeys(groups, mask) if len(groups) > 1 else mask,
            )
    except Exception:  # other kinds of layers, layers of several sizes, and whatever a model's code makes of the rest
        return False
    return len(pages.layers) == sum(map(len, groups.values())) == len(filled.layers)
