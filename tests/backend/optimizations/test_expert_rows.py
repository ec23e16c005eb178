"""Rows that reach the experts are counted against tokens and their experts, in every way of computing a mixture."""

import functools
from collections import Counter
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from backend.models.source import ModelSource
from backend.optimizations import Observation
from backend.optimizations.expert_rows import Rows, expert_rows
from backend.optimizations.proof import Trace
from backend.plan import LoadPlan, ParallelPlan, Plan
from backend.worker.patch.apply import set_experts
from backend.worker.prove.profile import trace
from tests.support.machines import CPU, facts, settled
from tests.support.tiny_models import build, tiny

SHARED: dict[str, Any] = {
    "vocab_size": 97, "hidden_size": 32, "intermediate_size": 64, "moe_intermediate_size": 48, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "num_experts": 8, "num_experts_per_tok": 2,
    "num_shared_experts": 1, "num_dense_layers": 1, "max_position_embeddings": 64,
}  # fmt: skip
PROMPT, NEW, ROWS = 5, 3, 2
TOKENS = ROWS * (PROMPT + NEW - 1)


@functools.cache
def afmoe() -> Any:
    """Its shared expert, in three of four layers, has matrices of the same shape as the routed ones."""
    return AutoModelForCausalLM.from_config(AutoConfig.for_model("afmoe", **SHARED), dtype=torch.float32).eval()


@functools.cache
def gpt_oss() -> Any:
    return build("gpt_oss")


def mixtures(model: Any) -> list[Any]:
    return [module for module in model.modules() if hasattr(module, "_is_expert_parallel")]


def seen(model: Any, made: Trace, routed: int = 2, **load: Any) -> Rows | None:
    plan = Plan(LoadPlan(ModelSource("random"), **load), routed=routed)
    return expert_rows(Observation(model, None, plan, lambda: made), mixtures(model))


@pytest.mark.parametrize("make", [gpt_oss, afmoe])
@pytest.mark.parametrize("way", ["eager", "grouped_mm", "batched_mm"])
def test_rows_are_those_of_all_tokens_and_their_experts(way: str, make: Any) -> None:
    model = make()
    set_experts(model, way)

    def run() -> int:
        ids = torch.arange(5, 5 + PROMPT).repeat(ROWS, 1)
        with torch.inference_mode():
            model.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW, do_sample=False, eos_token_id=None
            )
        return NEW

    made = trace(run, False)
    due = TOKENS * 2 * len(mixtures(model)) * 2
    assert seen(model, made) == (due, due)
    assert seen(model, made, 3) == (due, due // 2 * 3), "one expert more a token would be missed"


EMBEDDING, UP, DOWN = (97, 32), (4, 32, 96), (4, 48, 32)
Calls = dict[tuple[str, tuple[tuple[int, ...], ...]], int]


def calls(rows: int, n: int = 4) -> Calls:
    """Grouped products of so many rows, in four layers."""
    return {("aten::_grouped_mm", ((rows, 32), UP, (4,))): n, ("aten::_grouped_mm", ((rows, 48), DOWN, (4,))): n}


def looked_up(*tokens: int, weight: tuple[int, ...] = EMBEDDING) -> Calls:
    return {("aten::embedding", (weight, (1, n), ())): tokens.count(n) for n in tokens}


def made(shapes: Calls, replayed: bool = False, steps: int = 2) -> Trace:
    graphs = Counter({"cudaGraphLaunch": 3} if replayed else {})
    return Trace(Counter(), Counter(), graphs, steps, shapes=Counter(shapes))


def test_where_steps_are_hidden_the_prompts_rows_are_counted() -> None:
    prompt = calls(10) | looked_up(5)
    assert seen(tiny("gpt_oss"), made(prompt, replayed=True, steps=8)) == (80, 80)
    assert seen(tiny("gpt_oss"), made(calls(5) | looked_up(5), replayed=True, steps=8)) == (40, 80)
    kept = calls(10) | looked_up(5, 1, 1)  # the embedding of a step may be seen though its layers are not
    assert seen(tiny("gpt_oss"), made(kept, replayed=True, steps=3)) == (80, 80)
    assert seen(tiny("gpt_oss"), made(kept, steps=3)) == (80, 112)


@pytest.mark.parametrize(
    ("shapes", "more"),
    [
        (calls(10) | looked_up(5), {"routed": 0}),
        (calls(10) | looked_up(5), {"parallel": ParallelPlan("expert", 2)}),
        (looked_up(5), {}),
        (calls(10), {}),
        (calls(10) | looked_up(5, weight=(96, 32)), {}),
        (calls(10) | looked_up(5, 5, 5, 5), {}),
    ],
    ids=["unknown", "ranks", "no products", "no tokens", "another table", "two look-ups a pass"],
)
def test_what_cannot_be_counted_is_not(shapes: Calls, more: dict[str, Any]) -> None:
    assert seen(tiny("gpt_oss"), made(shapes), **more) is None
    assert seen(tiny("gpt_oss"), made(calls(10) | looked_up(5))) == (80, 80)


def test_attention_is_no_product_of_experts() -> None:
    """Even where its sizes happen to be those of a weight."""
    attention: Calls = {("aten::bmm", ((4, 32, 96), (4, 96, 6))): 9, ("aten::mm", ((5, 32), (32, 97))): 9}
    copied: Calls = {("aten::bmm", ((10, 1, 32), (10, 32, 96))): 4, ("aten::bmm", ((10, 32, 48), (10, 48, 1))): 4}
    assert seen(tiny("gpt_oss"), made(looked_up(5) | attention)) is None
    assert seen(tiny("gpt_oss"), made(looked_up(5) | attention | copied)) == (80, 80)


def test_plain_products_of_experts_count_with_and_without_a_bias_where_no_grouped_one_does() -> None:
    added: Calls = {("aten::addmm", ((96,), (10, 32), (32, 96))): 4, ("aten::addmm", ((32,), (10, 48), (48, 32))): 4}
    plain: Calls = {("aten::mm", ((10, 32), (32, 96))): 4, ("aten::mm", ((10, 48), (48, 32))): 4}
    other: Calls = {("aten::baddbmm", ((96,), (7, 32), (32, 96))): 9, ("aten::addmm", ((97,), (5, 32), (32, 97))): 9}
    for products in (added, plain):
        assert seen(tiny("gpt_oss"), made(looked_up(5) | products | other)) == (80, 80)
        assert seen(tiny("gpt_oss"), made(looked_up(5) | products | calls(9))) == (72, 80), "of which these are made"


@pytest.mark.parametrize(("lookups", "steps", "counted"), [(1, 1, True), (2, 1, False), (3, 2, True), (1, 0, True)])
def test_a_pass_looks_its_tokens_up_once(lookups: int, steps: int, counted: bool) -> None:
    """One more pass than was told may have been launched; twice as many look-ups are those of another table."""
    found = seen(tiny("gpt_oss"), made(calls(10 * lookups) | looked_up(*[5] * lookups), steps=steps))
    assert found == ((80 * lookups, 80 * lookups) if counted else None)


@pytest.mark.parametrize(("model", "routed"), [("pocket", 2), ("random:gpt-oss-20b", 4), ("random:Qwen3-0.6B", 0)])
def test_the_plan_says_how_many_experts_a_token_has(model: str, routed: int) -> None:
    assert settled(facts(model), {}, CPU).plan.routed == routed
