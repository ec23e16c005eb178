"""Number formats that a class keeps, and float32 that is rounded."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pytest
import torch

from tests.support.tiny_models import build
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.witness import find
from tokendyno.backend.worker.witness.dtype import kept_in_float32, narrowed
from tools.tiny_config import tiny_config


def seen(model: Any) -> Observation:
    return Observation(model, None, Plan(LoadPlan(ModelSource("random"))))


@pytest.mark.parametrize(
    ("architecture", "kept"),
    [
        ("olmo_hybrid", ("A_log",)),  # built so
        ("longcat_flash", ("classifier.weight",)),  # listed: bfloat16, multiplied in float32
    ],
)
def test_what_a_class_has_in_float32_need_not_have_the_dtype(architecture: str, kept: tuple[str, ...]) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(**tiny_config(architecture))
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    names = kept_in_float32(model)
    assert names and all(name.endswith(kept) for name in names)
    honest = find("dtype", seen(model))
    assert honest.reached == honest.expected, honest.proof
    model.model.norm.float()
    assert kept_in_float32(model) == names
    wrong = find("dtype", seen(model))
    assert (wrong.expected or 0) - (wrong.reached or 0) == 1, wrong.proof


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
    exact = find("dtype", seen(model))
    assert exact.reached == exact.expected
    with _precision("medium"):
        finding = find("dtype", seen(model))
    assert (finding.effective, finding.expected) == (dtype, exact.expected)
    assert (finding.reached == finding.expected) is verified
    assert ("may round float32 factors to bf16" in finding.proof) is not verified
