"""A model's parts are named and told apart by what they are."""

from collections import Counter

import pytest

from backend.worker.prove.parts import part_with, parts_of
from tests.support.tiny_models import CONFIGS, tiny

LAYERS = 4


@pytest.mark.parametrize("architecture", CONFIGS)
def test_every_layer_has_one_attention_and_every_mixture_is_one(architecture: str) -> None:
    found = Counter(parts_of(tiny(architecture)).values())
    assert found["attention"] == LAYERS
    assert found["mixture"] == (LAYERS if architecture == "gpt_oss" else 0)


def test_parts_have_names_in_the_order_of_the_model_and_layers_come_first() -> None:
    parts = parts_of(tiny("llama"))
    assert list(parts)[:6] == [
        "model.embed_tokens", "model.layers.0", "model.layers.0.self_attn", "model.layers.0.mlp",
        "model.layers.0.input_layernorm", "model.layers.0.post_attention_layernorm",
    ]  # fmt: skip
    assert list(parts)[-3:] == ["model.norm", "model.rotary_emb", "lm_head"]


@pytest.mark.parametrize(
    ("module", "part"),
    [
        ("model.layers.1.mlp.up_proj", "model.layers.1.mlp"), ("model.layers.1.mlp", "model.layers.1.mlp"),
        ("model.layers.1", "model.layers.1"), ("lm_head", "lm_head"), ("model", "model"), ("gone", "gone"),
    ],
)  # fmt: skip
def test_a_module_is_in_the_smallest_part_around_it(module: str, part: str) -> None:
    assert part_with(module, parts_of(tiny("llama"))) == part
