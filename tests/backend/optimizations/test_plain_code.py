"""What rows come to where parts of a model give something else than its own code."""

from collections import Counter
from typing import Any

import pytest
import torch
from transformers import DynamicCache

from backend.models.source import ModelSource
from backend.optimizations import Observation, Optimization
from backend.optimizations.axes.attention import AXIS as ATTENTION
from backend.optimizations.axes.dtype import AXIS as DTYPE
from backend.optimizations.axes.experts import AXIS as EXPERTS
from backend.optimizations.plain_code import odd_parts
from backend.optimizations.proof import NOT_HELD, Held, Trace
from backend.plan import LoadPlan, Plan
from backend.worker.prove.profile import mark_step, trace
from tests.support.tiny_models import build, tiny

PARTS: Counter[Any] = Counter({"attention": 4, "other": 20})
CASES = [
    (NOT_HELD, 0, ""),
    (Held(PARTS), 0, "; 4 attention modules give what the model's own code gives"),
    (Held(PARTS, {"other": ["lm_head"]}), 0, "; 4 attention modules give what the model's own code gives"),
    (
        Held(PARTS, {"attention": ["layers.2.attn", "layers.3.attn"]}), 2,
        "; 2 of 4 attention modules give something else than the model's own code: layers.2.attn",
    ),
    (Held(unheld="there are two"), 0, "; not held against the model's own code: there are two"),
    (
        Held(PARTS, {"attention": ["layers.2.attn"]}, swapped={"attention": ["layers.2.attn", "layers.3.attn"]}), 2,
        "; 1 of 4 attention modules give something else than the model's own code: layers.2.attn"
        "; 2 were something else in the measured run: layers.2.attn",
    ),
    (
        Held(PARTS, unheld="there are two", swapped={"attention": ["layers.2.attn"], "other": ["lm_head"]}), 1,
        "; not held against the model's own code: there are two; 1 were something else in the measured run: "
        "layers.2.attn",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("held", "odd", "said"), CASES)
def test_only_parts_of_the_kinds_that_are_asked_for_count(held: Held, odd: int, said: str) -> None:
    assert odd_parts(held, "attention") == (odd, said)


@pytest.fixture(scope="module", params=["llama", "gpt_oss"])
def seen(request: pytest.FixtureRequest) -> tuple[str, Any, Any, Trace]:
    """A tiny model, its cache, and a trace of three passes through it."""
    model, cache = tiny(request.param), DynamicCache()

    def generate() -> int:
        with torch.inference_mode():
            for ids in (torch.arange(3, 11)[None], torch.tensor([[4]]), torch.tensor([[5]])):
                model(ids, past_key_values=cache, use_cache=True)
                mark_step()
        return 3

    return request.param, model, cache, trace(generate, False)


def found(axis: Optimization, seen: Any, **odd: list[str]) -> tuple[int | None, int | None]:
    _, model, cache, traced = seen
    held = Held(Counter({"attention": 4, "mixture": 4, "other": 16}), odd)  # type: ignore[arg-type]
    plan = Plan(LoadPlan(ModelSource("random")), routed=2)
    finding = axis.find(Observation(model, cache, plan, lambda: traced, plain=lambda: held))
    return finding.reached, finding.expected


def test_attention_counts_its_layers_that_do(seen: Any) -> None:
    assert found(ATTENTION, seen) == (12, 12)
    assert found(ATTENTION, seen, other=["a"], mixture=["a"]) == (12, 12)
    assert [found(ATTENTION, seen, attention=list("abcd"[:odd]))[0] for odd in (1, 2, 4)] == [9, 6, 0]


def test_experts_count_their_mixtures_that_do(seen: Any) -> None:
    if seen[0] != "gpt_oss":
        assert found(EXPERTS, seen, mixture=["a"]) == (None, None)
        return
    assert found(EXPERTS, seen, other=["a"], attention=["a"]) == (12, 12)
    assert [found(EXPERTS, seen, mixture=list("abcd"[:odd]))[0] for odd in (1, 4)] == [9, 0]


def test_what_nothing_else_answers_for_counts_against_the_format(seen: Any) -> None:
    reached, expected = found(DTYPE, seen)
    assert reached == expected is not None
    assert found(DTYPE, seen, attention=["a"]) == (reached, expected)
    assert found(DTYPE, seen, other=["a", "b"]) == (reached, expected + 2)
    mixtures = 0 if seen[0] == "gpt_oss" else 1  # the experts' row answers for them where there is a choice
    assert found(DTYPE, seen, mixture=["a"]) == (reached, expected + mixtures)


def test_tensors_with_other_numbers_than_their_files_count_against_the_format(seen: Any) -> None:
    _, model, cache, traced = seen
    plan = Plan(LoadPlan(ModelSource("random")))

    def finding(held: Held) -> Any:
        return DTYPE.find(Observation(model, cache, plan, lambda: traced, plain=lambda: held))

    bare, right, wrong = (finding(one) for one in (Held(), Held(tensors=9), Held(tensors=9, other=("a", "b"))))
    assert "files" not in bare.proof and (bare.reached, bare.expected) == (right.reached, right.expected)
    assert right.proof.endswith("; 9 tensors hold the numbers of their files")
    assert wrong.proof.endswith("; 2 of 9 tensors hold other numbers than their files: a")
    assert (wrong.reached, wrong.expected) == (bare.reached, bare.expected + 2)


def test_a_share_is_rounded_against_the_choice() -> None:
    """Nothing was counted of attention that a compiled encoder hides; one layer of three is odd."""
    held = Held(Counter({"attention": 3}), {"attention": ["a"]})
    plan = Plan(LoadPlan(ModelSource("random")))
    hidden = Trace(Counter({"Torch-Compiled Region: 0/0": 1}), Counter(), Counter(), 1)
    finding = ATTENTION.find(Observation(build("llama"), None, plan, lambda: hidden, plain=lambda: held))
    assert (finding.reached, finding.expected) == (2, 3)
