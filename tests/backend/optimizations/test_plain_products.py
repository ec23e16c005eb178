"""Products that each pass makes with the model's matrices: those that are missing, and float32 that is rounded."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pytest
import torch

from backend.counts import RunCounts
from backend.models.source import ModelSource
from backend.optimizations import Observation
from backend.optimizations.axes.dtype import AXIS
from backend.optimizations.plain_products import absent_products, formats_of_products, narrowed
from backend.optimizations.proof import Trace
from backend.plan import LoadPlan, ParallelPlan, Plan
from backend.worker.patch.projections import fuse
from backend.worker.prove.profile import trace
from tests.support.tiny_models import CONFIGS, build

STEPS = 3


def traced(model: Any, texts: int = 1) -> Observation:
    """A prompt and two tokens, profiled."""

    def generate() -> int:
        with torch.inference_mode():
            cache, ids = None, torch.arange(3, 11).expand(texts, -1)
            for _ in range(STEPS):
                out = model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
                cache, ids = out.past_key_values, out.logits[:, -1].argmax(-1, keepdim=True)
        kept.append(cache)
        return STEPS

    kept: list[Any] = []
    seen = trace(generate, False)
    return Observation(model, kept[0], Plan(LoadPlan(ModelSource("random"))), lambda: seen)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("architecture", CONFIGS)
def test_nothing_is_missing_from_an_intact_model(architecture: str, dtype: str) -> None:
    assert absent_products(traced(build(architecture, dtype=dtype))) == 0


@pytest.mark.parametrize("texts", [1, 2])
def test_nothing_is_missing_from_a_frozen_model(texts: int) -> None:
    """Whose product of the last token's states is one of a batch."""
    seen = traced(build("llama").requires_grad_(False), texts)
    assert seen.trace().ops["aten::bmm"] > 0
    assert absent_products(seen) == 0
    assert formats_of_products(seen) == formats_of_products(traced(build("llama"), texts))


def test_nothing_is_missing_where_projections_are_fused() -> None:
    model = build("llama")
    fuse(model)
    assert absent_products(traced(model)) == 0


def _no_mlp(model: Any) -> None:
    model.model.layers[1].mlp.forward = torch.zeros_like


def _no_layer(model: Any) -> None:
    model.model.layers[2].forward = lambda hidden, *args, **more: hidden


def _half_of_the_words(model: Any) -> None:
    half = model.lm_head.weight[:48]
    model.lm_head.forward = lambda x: torch.nn.functional.pad(x @ half.T, (0, 49), value=-1e4)


def _in_a_batch(model: Any) -> None:
    weight = model.model.layers[0].self_attn.q_proj.weight
    model.model.layers[0].self_attn.q_proj.forward = lambda x: torch.bmm(x, weight.T[None])


def _one_text(part: Any) -> None:
    """The part computes the first of all texts, which are equal, and shows it as every one's."""
    plain = part.forward
    part.forward = lambda states, *args, **more: plain(states[:1], *args, **more).expand(len(states), -1, -1)


def _mlp_of_one_text(model: Any) -> None:
    _one_text(model.model.layers[1].mlp)


def _values_of_one_text(model: Any) -> None:
    _one_text(model.model.layers[0].self_attn.v_proj)


def _half_of_the_tokens(model: Any) -> None:
    """Of the prompt."""
    plain = model.model.layers[3].mlp.forward
    model.model.layers[3].mlp.forward = lambda states: torch.cat(
        [torch.zeros_like(states[:, : states.shape[1] // 2]), plain(states[:, states.shape[1] // 2 :])], 1
    )


@pytest.mark.parametrize(
    ("change", "missing"),
    [(_mlp_of_one_text, 3 * STEPS), (_values_of_one_text, STEPS), (_half_of_the_tokens, 3)],
)
def test_products_with_too_few_rows_are_missed(change: Callable[[Any], None], missing: int) -> None:
    model = build("llama")
    assert absent_products(traced(model, 4)) == 0
    change(model)
    assert absent_products(traced(model, 4)) == missing


def test_products_of_a_part_of_the_tokens_each_are_not_missed() -> None:
    model = build("llama")
    plain = model.model.layers[1].mlp.forward
    model.model.layers[1].mlp.forward = lambda states: torch.cat([plain(part) for part in states.split(3, 1)], 1)
    assert absent_products(traced(model, 2)) == 0


@pytest.mark.parametrize(
    ("change", "missing"), [(_no_mlp, 3), (_no_layer, 7), (_half_of_the_words, 1), (_in_a_batch, 1)]
)
def test_what_a_pass_leaves_out_is_missed_in_each(change: Callable[[Any], None], missing: int) -> None:
    model = build("llama")
    change(model)
    seen = traced(model)
    assert absent_products(seen) == missing * STEPS
    found = AXIS.find(seen)
    assert found.expected is not None and found.reached == found.expected - missing * STEPS
    assert f"{missing * STEPS} products with matrices of the layers are missing" in found.proof


def test_where_products_are_hidden_or_shared_nothing_is_missed() -> None:
    model = build("llama")
    _no_layer(model)
    seen = traced(model)
    plan = Plan(LoadPlan(ModelSource("random"), parallel=ParallelPlan("tensor", 2)))
    assert absent_products(Observation(model, seen.cache, plan, seen.trace)) == 0
    many = RunCounts(batch_requests=3)
    assert absent_products(Observation(model, seen.cache, seen.plan, seen.trace, many)) == 0
    replayed = Trace(Counter(), Counter(), Counter(cudaGraphLaunch=2), STEPS, formats=seen.trace().formats)
    assert absent_products(Observation(model, seen.cache, seen.plan, lambda: replayed)) == 0
    assert absent_products(Observation(model, None, seen.plan, seen.trace)) == 0
    model.model.layers[0].self_attn.is_kv_shared_layer = True
    assert absent_products(seen) == 0


@contextmanager
def _precision(name: str) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize(
    ("setting", "device", "rounded"),
    [
        (nullcontext, "cpu", ""), (nullcontext, "cuda", ""),
        (lambda: _precision("highest"), "cpu", ""), (lambda: _precision("highest"), "cuda", ""),
        (lambda: _precision("medium"), "cpu", "bf16"), (lambda: _precision("medium"), "cuda", "tf32"),
        (lambda: _precision("high"), "cuda", "tf32"),
    ],
)  # fmt: skip
def test_float32_that_torch_may_round_is_named(
    setting: Callable[[], AbstractContextManager[None]], device: str, rounded: str
) -> None:
    with setting():
        assert narrowed(device) == rounded


@pytest.mark.parametrize(("dtype", "verified"), [("float32", False), ("bfloat16", True)])
def test_rounded_products_do_not_count_as_float32(dtype: str, verified: bool) -> None:
    model = build("llama", dtype=dtype)
    exact = AXIS.find(traced(model))
    assert exact.reached == exact.expected
    with _precision("medium"):
        found = AXIS.find(traced(model))
    assert (found.effective, found.expected) == (dtype, exact.expected)
    assert (found.reached == found.expected) is verified
    assert ("may round float32 factors to bf16" in found.proof) is not verified
