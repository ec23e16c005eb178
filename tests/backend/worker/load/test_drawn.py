"""Tensors that are drawn when a rank reads its part of them."""

import torch
from transformers import GptOssConfig, GptOssForCausalLM

from tokendyno.backend.worker.load.random_weights import Scratch, drawn_state


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
    one, other = drawn_state(model(), "cpu"), drawn_state(model(), "cpu")
    name = "model.layers.1.mlp.experts.gate_up_proj"
    whole = one[name][...]
    part = other[name][(slice(2, 4), slice(None), slice(None))]
    assert torch.equal(whole[2:], part) and part.untyped_storage().nbytes() == part.nbytes
    assert one[name].get_shape() == [4, 32, 64] and one[name].get_dtype() == "F32"


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
    largest = max(sum(one.nbytes for one in part._parameters.values() if one is not None) for part in whole.modules())
    scratch, experts = Scratch(whole.modules(), "cpu"), whole.model.layers[0].mlp.experts
    parts = scratch.parameters(experts)
    assert len({one.untyped_storage().data_ptr() for one in parts.values()}) == 1
    assert parts["down_proj"].untyped_storage().nbytes() < 1.1 * largest
    with torch.no_grad():
        for number, one in enumerate(parts.values()):
            one.fill_(number)
    assert all(bool((one == number).all()) for number, one in enumerate(parts.values()))
    assert {name: one.shape for name, one in parts.items()} == {n: one.shape for n, one in experts.named_parameters()}
