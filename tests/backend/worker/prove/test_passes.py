"""Passes of a model are counted where they are made, whoever makes them."""

import pytest
import torch

from backend.plan import STATIC, GeneratePlan
from backend.worker.prove.passes import PassCounter
from tests.support.tiny_models import tiny

IDS = torch.tensor([[5, 6, 7]])


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "gpt_oss"])
def test_each_pass_counts_once_even_of_the_part_without_a_head(architecture: str) -> None:
    model = tiny(architecture)
    with PassCounter(model, GeneratePlan()) as passes:
        model.generate(IDS, attention_mask=torch.ones_like(IDS), max_new_tokens=4, do_sample=False, eos_token_id=None)
        assert (passes.count, passes.positions) == (4, 3 + 1 + 1 + 1)
        assert torch.equal(passes.first, IDS)
        model.base_model(torch.cat([IDS, IDS]))
        assert (passes.count, passes.positions) == (5, 9)  # of a row
    model(IDS)
    assert (passes.count, passes.positions) == (5, 9)


@pytest.mark.parametrize("plan", [GeneratePlan(compile_mode="default"), GeneratePlan(STATIC, cuda_graphs="manual")])
def test_what_is_compiled_or_captured_is_left_alone(plan: GeneratePlan) -> None:
    model = tiny("llama")
    with PassCounter(model, plan) as passes:
        model(IDS)
        assert not model.get_input_embeddings()._forward_pre_hooks
    assert passes.count is passes.positions is passes.first is None
