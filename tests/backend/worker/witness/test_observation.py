"""Each axis tells by effects what is in effect: right on the real thing, wrong claims are found out."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import DynamicCache, GptOssConfig, LlamaConfig, LlamaForCausalLM, StaticCache

from tests.support.proof import claimed
from tokendyno.backend.counts import counts_of
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import Optimization, all_axes
from tokendyno.backend.plan import DYNAMIC, STATIC, UNWINDOWED, GeneratePlan, LoadPlan, Plan
from tokendyno.backend.worker.prove.observation import Observation, coverage
from tokendyno.backend.worker.prove.profile import REGION, Trace
from tokendyno.backend.worker.witness import find

AXIS: dict[str, Optimization] = {axis.name: axis for axis in all_axes()}
PLAN = Plan(LoadPlan(ModelSource("random")))
SIZES: dict[str, Any] = {
    "vocab_size": 16,
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "max_position_embeddings": 64,
}


def llama(attention: str = "sdpa", dtype: torch.dtype = torch.float32) -> Any:
    config = LlamaConfig(**SIZES)
    return LlamaForCausalLM._from_config(config, attn_implementation=attention, dtype=dtype).eval()


def claims(axis: str, observation: Observation) -> set[str]:
    """Every choice that the axis would call in effect."""
    return claimed(AXIS[axis], observation)


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_dtype_is_counted_from_the_weights(name: str) -> None:
    assert claims("dtype", Observation(llama(dtype=getattr(torch, name)), None, PLAN)) == {name}


def test_dtype_goes_by_the_larger_part_and_names_the_rest() -> None:
    model = llama(dtype=torch.bfloat16)
    model.model.norm.float()
    finding = find("dtype", Observation(model, None, PLAN))
    assert finding.effective == "bfloat16"
    assert "64 bytes in float32" in finding.proof


def filled(cache: Any, layers: int = 4, length: int = 6) -> Any:
    for layer in range(layers):
        cache.update(torch.zeros(1, 1, length, 8), torch.zeros(1, 1, length, 8), layer)
    return cache


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda config: DynamicCache(config=config), "dynamic"),
        (lambda config: DynamicCache(), "unwindowed"),
        (lambda config: StaticCache(config=config, max_cache_len=16), "static"),
    ],
)
def test_the_cache_is_known_by_its_layers_whatever_was_planned(make: Any, name: str) -> None:
    config = GptOssConfig(**{**SIZES, "num_hidden_layers": 4}, sliding_window=4)
    for planned in (DYNAMIC, UNWINDOWED, STATIC):
        plan = Plan(PLAN.load, GeneratePlan(planned))
        observation = Observation(SimpleNamespace(config=config), filled(make(config)), plan)
        assert claims("cache", observation) == {name}


def test_without_sliding_layers_the_two_growing_caches_are_called_the_same() -> None:
    config = LlamaConfig(**SIZES)
    observation = Observation(
        SimpleNamespace(config=config), filled(DynamicCache(), 2), Plan(PLAN.load, GeneratePlan(UNWINDOWED))
    )
    finding = find("cache", observation)
    assert finding.effective == "unwindowed"
    assert "dynamic and unwindowed are the same" in finding.proof
    static = filled(StaticCache(config=config, max_cache_len=16), 2)
    fixed = Observation(observation.model, static, observation.plan)
    assert claims("cache", fixed) == {"static"} and "are the same" not in find("cache", fixed).proof


def test_what_a_class_keeps_in_float32_and_the_cache_are_counted_apart() -> None:
    model = llama(dtype=torch.bfloat16)
    model.model.norm.float()
    plain = find("dtype", Observation(model, None, PLAN))
    assert plain.reached and plain.expected == plain.reached + 1
    for attribute in ("_keep_in_fp32_modules", "_keep_in_fp32_modules_strict"):
        setattr(model, attribute, ["model.norm"])
        kept = find("dtype", Observation(model, None, PLAN))
        assert kept.reached == kept.expected == plain.reached
        setattr(model, attribute, None)
    wide = find("dtype", Observation(model, filled(DynamicCache(), 2), PLAN))
    assert (wide.reached, wide.expected) == (plain.reached, plain.expected + 4)
    assert "KV cache: 4 tensors in float32" in wide.proof


@pytest.mark.parametrize(
    ("seen", "steps", "hidden", "counted"),
    [
        (12, 3, False, (12, 12)),
        (11, 3, False, (11, 12)),
        (13, 3, False, (12, 12)),
        (0, 3, False, (0, 12)),
        (12, 3, True, (12, 12)),  # all of them were seen all the same
        (11, 3, True, (4, 4)),
        (4, 3, True, (4, 4)),
        (3, 3, True, (3, 4)),
        (0, 3, True, (None, None)),
        (4, 0, False, (4, 4)),
        (3, 0, False, (3, 4)),
    ],
)
def test_each_pass_counts_and_where_steps_are_hidden_the_prompts(
    seen: int, steps: int, hidden: bool, counted: tuple[int | None, int | None]
) -> None:
    profile = Trace(Counter(), Counter(), Counter({"cudaGraphLaunch": 3} if hidden else {}), steps)
    assert coverage(Observation(None, None, PLAN, lambda: profile), seen, 4) == counted


@pytest.mark.parametrize(
    ("seen", "hidden", "counted"),
    [(24, False, (24, 24)), (16, False, (16, 24)), (12, True, (12, 12)), (4, True, (4, 12)), (0, True, (None, None))],
)
def test_a_prompt_in_three_chunks_takes_three_passes(seen: int, hidden: bool, counted: Any) -> None:
    """Four tokens in six passes, three of them visible where steps are hidden."""
    ops = Counter({f"{REGION}9/0": 3} if hidden else {})
    profile = Trace(ops, Counter(), Counter(), 4)
    counts = counts_of({"planned_prompt_passes": 3})
    assert coverage(Observation(None, None, PLAN, lambda: profile, counts), seen, 4) == counted
