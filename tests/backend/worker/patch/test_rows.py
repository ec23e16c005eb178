"""GPT-2's matrices are stored by rows in the memory that they had, and its layers are offered to kernels."""

from typing import Any

import pytest
import torch
from transformers.pytorch_utils import Conv1D

from tests.support.decode_loop import greedy, prompt
from tests.support.tiny_models import CONFIGS, build, tiny
from tokendyno.backend.worker.patch.kernels import store_by_rows


def matrices(model: Any) -> list[Any]:
    return [module.weight for module in model.modules() if type(module) is Conv1D]


def offered(block: Any) -> str:
    kind = type(block)
    return str(kind.kernel_layer_name) if kind.kernel_condition(block) else ""


@pytest.mark.parametrize("times", [1, 2])
def test_shape_memory_and_text_stay_and_the_rows_are_contiguous(times: int) -> None:
    model = build("gpt2")
    before = [(weight.shape, weight.data_ptr(), weight.detach().clone()) for weight in matrices(model)]
    assert len(before) == 4 * len(model.transformer.h)
    for _ in range(times):
        store_by_rows(model)
    for weight, (shape, address, values) in zip(matrices(model), before, strict=True):
        assert (weight.shape, weight.data_ptr()) == (shape, address)
        assert weight.t().is_contiguous() and torch.equal(weight, values)
    asked = prompt(9, 2, padded=2)
    assert torch.equal(greedy(model, asked), greedy(tiny("gpt2"), asked))


def test_its_layers_are_offered_once_their_matrices_are_stored_so() -> None:
    model = build("gpt2")
    store_by_rows(model)
    assert {offered(block) for block in model.transformer.h} == {"DecoderLayerOfGPT2"}
    assert not offered(build("gpt2").transformer.h[0])


def test_layers_of_phi3_are_offered_as_they_come_and_others_once_they_are_fused() -> None:
    phi, llama = (tiny(name) for name in ("phi3", "llama"))
    for model in (phi, llama):
        store_by_rows(model)
    assert {offered(layer) for layer in phi.model.layers} == {"DecoderLayer"}
    assert not offered(llama.model.layers[0])


def test_layers_that_the_kernels_do_not_compute_are_not() -> None:
    from bitsandbytes.nn import Linear4bit

    model = build("gpt2")
    store_by_rows(model)
    first, second, *others = model.transformer.h
    first.attn.c_attn = Linear4bit(32, 96)
    second.attn.config = second.attn.config.__class__(activation_function="relu")
    assert [bool(offered(block)) for block in model.transformer.h] == [False, False, *(True for _ in others)]
    second.attn.config = second.attn.config.__class__(add_cross_attention=True)
    assert not offered(second)


@pytest.mark.parametrize("architecture", sorted(CONFIGS.keys() - {"gpt2"}))
def test_other_models_are_left_alone(architecture: str) -> None:
    model = build(architecture)
    before = [weight.stride() for weight in model.parameters()]
    store_by_rows(model)
    assert [weight.stride() for weight in model.parameters()] == before
