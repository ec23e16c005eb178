"""Positions that passes of a model are given are counted where they are made, whoever makes them."""

from typing import Any

import pytest
import torch

from tests.support.tiny_models import tiny
from tokendyno.backend.counts import RunCounts
from tokendyno.backend.plan import STATIC, GeneratePlan
from tokendyno.backend.worker.prove.passes import PassCounter

IDS = torch.tensor([[5, 6, 7]])


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "gpt_oss"])
def test_each_pass_counts_once_even_of_the_part_without_a_head(architecture: str) -> None:
    model = tiny(architecture)
    with PassCounter(model, GeneratePlan(), IDS) as passes:
        model.generate(IDS, attention_mask=torch.ones_like(IDS), max_new_tokens=4, do_sample=False, eos_token_id=None)
        assert passes.positions == 3 + 1 + 1 + 1
        model.base_model(torch.cat([IDS, IDS]))
        assert passes.positions == 9  # of a row
    model(IDS)
    assert passes.positions == 9


def test_rows_that_are_left_out_count_as_positions_that_are() -> None:
    """Of a batch of four, of which one is computed in the steps."""
    model, rows = tiny("llama"), IDS.repeat(4, 1)
    with PassCounter(model, GeneratePlan(), rows) as passes:
        model(rows)
        model(rows[:, :2])
        assert passes.positions == 5
        model(rows[:1, :2])
        assert passes.positions == 5


@pytest.mark.parametrize("plan", [GeneratePlan(compile_mode="default"), GeneratePlan(STATIC, cuda_graphs="manual")])
def test_what_is_compiled_or_captured_is_left_alone(plan: GeneratePlan) -> None:
    model = tiny("llama")
    with PassCounter(model, plan, IDS) as passes:
        model(IDS)
        assert not model.get_input_embeddings()._forward_pre_hooks
    assert passes.positions is None
    assert passes.counts() == RunCounts()


HIDDEN = [{"compile_mode": "default"}, {"cache": STATIC, "cuda_graphs": "manual"}]


@pytest.mark.parametrize("hidden", [{}, *HIDDEN])
def test_a_prompt_in_chunks_is_seen_even_before_compiled_steps(hidden: Any) -> None:
    """Once it is read, nothing hooks the model that steps are compiled from."""
    model, plan = tiny("llama"), GeneratePlan(**hidden, prefill_chunk=2)
    with PassCounter(model, plan, IDS) as passes:
        model(IDS[:, :2])
        assert model.get_input_embeddings()._forward_pre_hooks
        model(IDS[:, 2:])
        assert bool(model.get_input_embeddings()._forward_pre_hooks) is not bool(hidden)
    assert not model.get_input_embeddings()._forward_pre_hooks
    seen = RunCounts(prompt_passes=2, widest_prompt_pass=2, planned_prompt_passes=2)
    assert passes.counts() == (seen if hidden else seen.filled_from(RunCounts(model_positions=3)))


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ([[5, 6], [7]], 2),
        ([[5, 6], [7, 8, 9]], 2),
        ([[5, 6, 7]], 0),
        ([[5], [6], [7]], 0),
        ([[5, 7], [6]], 0),
        ([[5, 6], [5, 6]], 1),
        ([[5, 6], [8]], 1),
    ],
)
def test_passes_are_those_of_the_plan_or_others(given: list[list[int]], right: int) -> None:
    """Drafts may be behind the last one."""
    model = tiny("llama")
    with PassCounter(model, GeneratePlan(prefill_chunk=2), IDS) as passes:
        for ids in given:
            model(torch.tensor([ids]))
    assert passes.counts().planned_prompt_passes == right
