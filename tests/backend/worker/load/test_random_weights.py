"""Random weights: every number is drawn, alike each time, on every rank and when it is read alone; and ids read as
words."""

import json
import re
from typing import Any

import pytest
import torch
from torch import nn
from transformers import GptOssConfig, GptOssForCausalLM

from tests.backend.worker.load.test_quantization import small_llama
from tests.support.tiny_models import build
from tokendyno.backend.models import resolve
from tokendyno.backend.plan import LoadPlan
from tokendyno.backend.worker.load.device import Observed
from tokendyno.backend.worker.load.random_weights import (
    WORDS,
    RandomBytes,
    Scratch,
    byte_tokenizer,
    drawn_state,
    initialize,
    load_as_checkpoint,
    random_checkpoint,
    random_model,
    word_of,
)

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
    plain, extended = build("llama"), build("llama")
    for model in (plain, extended):
        model.to("meta")
    extended.extra = nn.Module()
    extended.extra.scale = nn.Parameter(torch.empty((), device="meta"))
    extended.extra.turned = nn.Parameter(torch.empty(8, 6, device="meta").T)
    extended.extra.register_buffer("counts", torch.empty(4, device="meta"))
    expected, filled = initialize(plain, "cpu").state_dict(), initialize(extended, "cpu").state_dict()
    assert all(torch.equal(expected[name], filled[name]) for name in expected)
    assert torch.equal(filled["extra.counts"], torch.zeros(4))
    assert filled["extra.scale"].isfinite() and 0.005 < filled["extra.turned"].std() < 0.05


def test_every_id_has_a_plain_word_of_its_own() -> None:
    assert len(WORDS) == len(set(WORDS)) == 128
    words = [word_of(number) for number in range(262_208)]
    assert len(set(words)) == len(words)
    assert words[:128] == WORDS and words[128] == f"{WORDS[0]}-{WORDS[0]}"
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+){0,2}", word) for word in words)
    assert word_of(128 + 128**2).count("-") == 2


def test_ids_read_as_words_and_a_prompt_as_its_bytes() -> None:
    tokenizer = byte_tokenizer(2_000)
    words = [word_of(number) for number in (0, 1, 600, 1_742)]
    assert tokenizer.decode([256, 257, 856, 1_998]) == " " + " ".join(words)
    assert tokenizer.decode([1_999], skip_special_tokens=True) == ""
    ids = tokenizer(f"A {WORDS[0]}, naïve.")["input_ids"]
    assert len(ids) == len(f"A {WORDS[0]}, naïve.".encode()) and max(ids) < 256
    assert tokenizer.decode(ids) == f"A {WORDS[0]}, naïve."


def model() -> GptOssForCausalLM:
    """Tiny, tied, with biases, sinks, norms and experts, on the meta device."""
    config = GptOssConfig(
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        num_local_experts=4,
        vocab_size=64,
        tie_word_embeddings=True,
    )
    with torch.device("meta"):
        return GptOssForCausalLM(config)


def test_every_rank_draws_the_same_and_keeps_its_part() -> None:
    state, other_state = drawn_state(model(), "cpu"), drawn_state(model(), "cpu")
    name = "model.layers.1.mlp.experts.gate_up_proj"
    whole = state[name][...]
    part = other_state[name][(slice(2, 4), slice(None), slice(None))]
    assert torch.equal(whole[2:], part) and part.untyped_storage().nbytes() == part.nbytes
    assert state[name].get_shape() == [4, 32, 64] and state[name].get_dtype() == "F32"


def test_numbers_are_those_of_the_models_own_initialization_and_tied_weights_come_once() -> None:
    state = drawn_state(model(), "cpu")
    assert set(state) == {name for name, _ in model().named_parameters()} - {"lm_head.weight"}
    assert (
        state["model.norm.weight"][...].eq(1).all() and state["model.layers.0.self_attn.q_proj.bias"][...].eq(0).all()
    )
    first, second = (state[f"model.layers.{i}.self_attn.q_proj.weight"][...] for i in (0, 1))
    assert abs(float(first.std()) / 0.02 - 1) < 0.1 and not torch.equal(first, second)


def test_all_are_drawn_in_the_room_of_the_largest_module_without_running_into_each_other() -> None:
    whole = model()
    largest = max(sum(p.nbytes for p in part._parameters.values() if p is not None) for part in whole.modules())
    scratch, experts = Scratch(whole.modules(), "cpu"), whole.model.layers[0].mlp.experts
    parts, _ = scratch.tensors(experts)
    assert len({parameter.untyped_storage().data_ptr() for parameter in parts.values()}) == 1
    assert parts["down_proj"].untyped_storage().nbytes() < 1.1 * largest
    with torch.no_grad():
        for number, parameter in enumerate(parts.values()):
            parameter.fill_(number)
    assert all(bool((parameter == number).all()) for number, parameter in enumerate(parts.values()))
    assert {name: p.shape for name, p in parts.items()} == {name: p.shape for name, p in experts.named_parameters()}


@pytest.fixture
def plan() -> LoadPlan:
    return LoadPlan(resolve(small_llama()).source, quantization="quanto-int8")


def test_the_numbers_are_those_of_the_dense_model(plan: LoadPlan) -> None:
    dense = random_model(plan.source.config_json, "auto", None, "cpu").state_dict()
    _, _, state = random_checkpoint(plan)
    assert set(state) == set(dense)
    assert all(
        torch.equal(state[name][...], dense[name]) and state[name][...].dtype == dense[name].dtype for name in dense
    )


@pytest.mark.parametrize("architecture", ["mamba2", "falcon_h1", "glm4_moe", "ernie4_5_moe", "gpt2", "bert"])
def test_a_part_has_the_numbers_of_the_whole_whatever_else_a_module_has(architecture: str) -> None:
    """States and their convolutions, buffers that are kept, what the model leaves out, and positions."""
    dense, empty = (build(architecture).to("meta") for _ in range(2))
    filled = initialize(dense, "cpu").state_dict()
    for name, tensor in drawn_state(empty, "cpu").items():
        assert torch.equal(tensor[...], filled[name]), name


def test_the_bytes_that_a_rank_reads_are_those_of_the_whole_tensor() -> None:
    whole = RandomBytes("experts.blocks", (4, 6, 2, 16), 0, 255, "cpu")
    assert whole[...].shape == (4, 6, 2, 16) and len(whole[...].unique()) > 200
    for part in (
        (slice(2, 4), slice(0, 6), slice(0, 2), slice(0, 16)),
        (slice(0, 4), slice(3, 6), slice(0, 2), slice(0, 16)),
    ):
        assert torch.equal(whole[part], whole[...][part]) and whole[part].is_contiguous()


def test_tied_weights_are_drawn_once() -> None:
    tied = LoadPlan(resolve(small_llama(tie_word_embeddings=True)).source, quantization="quanto-int8")
    names = set(random_checkpoint(tied)[2])
    assert "model.embed_tokens.weight" in names and "lm_head.weight" not in names
    model = load_as_checkpoint(tied, Observed())
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_mxfp4_experts_are_generated_when_they_are_read() -> None:
    oss = LoadPlan(resolve("random:pocket").source, quantization="mxfp4-dequantized")
    _, _, state = random_checkpoint(oss)
    layers = json.loads(oss.source.config_json)["num_hidden_layers"]
    assert sum(isinstance(part, RandomBytes) for part in state.values()) == 4 * layers
