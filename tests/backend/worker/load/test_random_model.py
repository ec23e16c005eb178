"""Random weights: every number is drawn, those included that transformers' own initialization leaves out."""

import json
from typing import Any

import torch
from torch import nn

from tests.support.tiny_models import build
from tokendyno.backend.worker.load.random_weights import initialize, random_model

ERNIE = {
    "model_type": "ernie4_5_moe", "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 48, "moe_intermediate_size": 32, "moe_num_experts": 4, "moe_k": 2,
    "vocab_size": 300, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip


def drawn() -> Any:
    return random_model(json.dumps(ERNIE), "float32", None, "cpu")


def test_routers_that_the_model_does_not_draw_are_drawn_alike_each_time() -> None:
    first, second = drawn().state_dict(), drawn().state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    router = first["model.layers.2.mlp.gate.weight"]
    assert 0.01 < router.std() < 0.03


def test_what_is_left_out_is_filled_whatever_its_shape_and_the_rest_stays_as_it_was() -> None:
    plain, more = build("llama"), build("llama")
    for model in (plain, more):
        model.to("meta")
    more.extra = nn.Module()
    more.extra.scale = nn.Parameter(torch.empty((), device="meta"))
    more.extra.turned = nn.Parameter(torch.empty(8, 6, device="meta").T)
    more.extra.register_buffer("counts", torch.empty(4, device="meta"))
    expected, found = initialize(plain, "cpu").state_dict(), initialize(more, "cpu").state_dict()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert torch.equal(found["extra.counts"], torch.zeros(4))
    assert found["extra.scale"].isfinite() and 0.005 < found["extra.turned"].std() < 0.05
