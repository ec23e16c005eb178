"""The bound of a prefill: operations of a causal pass, or its weights, whichever takes longer."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch

from tests.support.machines import facts
from tokendyno.backend.hardware.peak_rates import PeakRates
from tokendyno.backend.predict.roofline import bound, prefill_bound
from tokendyno.backend.predict.setup import Setup
from tokendyno.backend.predict.weights import weight_bytes_read

RATES = PeakRates(4.59e12, 989e12, "a test")
SETUP = Setup(dtype="bfloat16", device="cuda")


def found(model: str, length: int, batch: int = 1, rates: PeakRates = RATES, **setup: Any) -> Any:
    return prefill_bound(facts(model), replace(SETUP, **setup), length, batch, rates)


def test_a_long_prompt_is_bound_by_its_operations() -> None:
    """Llama 3 8B, by hand: 32 layers of 218,103,808 elements, a head, and half of the pairs of tokens."""
    of_layers, head, pairs = 32 * 218_103_808, 128_256 * 4_096, 32 * 8_000 * 8_001 // 2
    flops = 2 * (8_000 * of_layers + head + 2 * pairs * 32 * 128)
    long = found("random:Llama-3-8B", 8_000)
    assert (long.flops, long.limited_by) == (flops, "compute")
    assert long.seconds == pytest.approx(flops / 989e12) == pytest.approx(0.130, abs=0.001)


def test_a_short_prompt_is_bound_by_the_weights_which_are_read_once() -> None:
    short = found("random:Llama-3-8B", 16)
    weights = weight_bytes_read(facts("random:Llama-3-8B"), "bfloat16", "none", 16)
    assert (short.limited_by, short.weight_bytes, short.seconds) == ("memory", weights, weights / 4.59e12)
    assert (short.kv_bytes, short.exchanged_bytes, short.exchange_s) == (0, 0, 0.0)
    assert found("random:Llama-3-8B", 16, chunk=4) == short, "chunks are no excuse"


@pytest.mark.parametrize("model", ["random:Llama-3-8B", "random:gpt2", "random:Gemma-3-1b", "random:gpt-oss-20b"])
def test_a_prompt_of_one_token_takes_what_a_step_takes(model: str) -> None:
    """But for the token's own key and value, which no prefill has to read; a checkpoint in MXFP4 is packed."""
    dense = replace(facts(model), quantization=None)
    one = prefill_bound(dense, SETUP, 1, 3, RATES)
    step = bound(dense, SETUP, 1, 3, RATES)
    assert one is not None and (one.flops, one.weight_bytes) == (step.flops, step.weight_bytes)


@pytest.mark.parametrize(("length", "window"), list(product((1, 5, 8, 9, 40), (8, 100))))
def test_pairs_are_those_of_a_causal_mask(length: int, window: int) -> None:
    model = replace(facts("random:Mistral-7B-v0.1"), window=window)
    assert not model.full_layers
    at = torch.arange(length)
    distance = at[:, None] - at[None]
    pairs = int(((distance >= 0) & (distance < window)).sum())
    here, there = (prefill_bound(model, SETUP, length, 2, RATES), prefill_bound(model, SETUP, length, 1, RATES))
    assert here is not None and there is not None and here.flops == 2 * there.flops
    matrices = sum(m.elements for m in model.matrices if m.kind == "linear")
    head = sum(m.elements for m in model.matrices if m.kind == "head")
    assert there.flops == 2 * (length * matrices + head + 2 * model.layers * pairs * model.heads * model.head_dim)


@pytest.mark.parametrize(
    ("model", "setup", "rates"),
    [
        ("random:Llama-3-8B", {}, replace(RATES, flops_per_s=None)),
        ("random:Llama-3-8B", {"quantization": "torchao-fp8"}, RATES),
        ("random:Llama-3-8B", {"tensor_parallel": 2}, RATES),
        ("random:Llama-3-8B", {"devices": 2}, RATES),
        ("random:gpt-oss-20b", {"quantization": "mxfp4"}, RATES),
        ("random:bert-base-uncased", {}, RATES),
    ],
)
def test_what_is_not_known_is_left_out(model: str, setup: dict[str, Any], rates: PeakRates) -> None:
    assert found(model, 500, rates=rates, **setup) is None
