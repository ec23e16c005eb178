"""Whether a model's layers fit into slots, against the caches that have to take them."""

from typing import Any

import pytest

SHAPE: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "intermediate_size": 32,
    "head_dim": 16,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
}


def layer_types() -> list[str]:
    from transformers.cache_utils import STATIC_LAYER_TYPE_MAPPING

    return sorted(STATIC_LAYER_TYPE_MAPPING)


@pytest.mark.parametrize("kind", layer_types())
def test_layers_fit_into_slots_where_the_custom_loop_makes_a_cache_of_them(kind: str) -> None:
    """Of every kind that transformers has, those of a newer version included."""
    from transformers import LlamaConfig

    from tokendyno.backend.counter.forms import fits_slots
    from tokendyno.backend.errors import InputError
    from tokendyno.backend.worker.loop.cache import StaticSlotCache

    config = LlamaConfig(**SHAPE, sliding_window=8, attention_chunk_size=8)
    config.layer_types = ["full_attention", kind]
    try:
        StaticSlotCache(config, 16)
    except (InputError, TypeError):
        made = False
    else:
        made = True
    assert fits_slots(config) is made


def test_windows_of_several_sizes_do_not_fit_into_slots() -> None:
    from transformers import LlamaConfig

    from tokendyno.backend.counter.forms import fits_slots

    config = LlamaConfig(**SHAPE, sliding_window=8, attention_chunk_size=4)
    config.layer_types = ["sliding_attention", "chunked_attention"]
    assert not fits_slots(config)
