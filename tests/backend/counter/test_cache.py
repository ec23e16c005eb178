"""Whether a model's layers fit into slots, against the caches that have to take them."""

from typing import Any

import pytest

from tests.support.tiny_models import LATENTS, STATES

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
    from transformers import LlamaConfig, StaticCache

    from tokendyno.backend.counter.cache import fits_slots
    from tokendyno.backend.errors import InputError
    from tokendyno.backend.worker.loop.cache import StaticSlotCache

    config = LlamaConfig(**SHAPE, sliding_window=8, attention_chunk_size=8)
    config.layer_types = ["full_attention", kind]
    try:
        layers = StaticCache(config, 16).layers
    except TypeError:  # transformers makes no static cache of a Llama's config with it
        return
    try:
        StaticSlotCache(config, 16)
    except InputError:
        fits = False
    else:
        fits = True
    assert fits_slots(layers) is fits


def test_windows_of_several_sizes_and_states_alone_do_not_fit_into_slots() -> None:
    from transformers import LlamaConfig, StaticCache

    from tokendyno.backend.counter.cache import fits_slots

    config = LlamaConfig(**SHAPE, sliding_window=8, attention_chunk_size=4)
    for kinds in (["sliding_attention", "chunked_attention"], ["linear_attention", "conv"]):
        config.layer_types = kinds
        assert not fits_slots(StaticCache(config, 16).layers)


@pytest.mark.parametrize(
    ("architecture", "waits"),
    [
        *((name, False) for name in ("llama", "gemma3_text", *STATES, *LATENTS) if name != "gemma3n_text"),
        ("gemma3n_text", True),  # makes a number on the host and copies it
        ("jetmoe", True),  # asks how many tokens each expert has
        ("dbrx", True),  # asks which experts were routed to
        ("llama4_text", None),  # attends in chunks
        ("bloom", None),  # asks how many tokens there are
        ("inkling_text", None),  # asks where each token lies
    ],
)
def test_a_step_over_slots_is_told_from_one_that_waits_and_from_none(architecture: str, waits: bool | None) -> None:
    """On a GPU: tests/gpu/test_states.py."""
    from tokendyno.backend.counter.cache import slot_step
    from tokendyno.backend.counter.model import build, read_config
    from tools.tiny_config import tiny_config

    assert slot_step(build(read_config(tiny_config(architecture)), False)) is waits
