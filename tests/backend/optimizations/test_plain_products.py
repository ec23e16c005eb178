"""Number formats of the products that passes make with the model's matrices, and float32 that is rounded."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pytest
import torch

from tests.support.tiny_models import build
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import Observation
from tokendyno.backend.optimizations.axes.dtype import AXIS, narrowed
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.worker.prove.profile import trace

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
        (nullcontext, "cpu", ""),
        (nullcontext, "cuda", ""),
        (lambda: _precision("highest"), "cpu", ""),
        (lambda: _precision("highest"), "cuda", ""),
        (lambda: _precision("medium"), "cpu", "bf16"),
        (lambda: _precision("medium"), "cuda", "tf32"),
        (lambda: _precision("high"), "cuda", "tf32"),
    ],
)
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
