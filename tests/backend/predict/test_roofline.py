"""The roofline bound: what it counts, how it moves, and that it is the larger of two times."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch

from tests.support.machines import facts
from tokendyno.backend.hardware.peak_rates import PeakRates
from tokendyno.backend.models import resolve
from tokendyno.backend.plan import CACHES, DYNAMIC, QUANTIZED_FP8
from tokendyno.backend.predict.kv import kv_bytes
from tokendyno.backend.predict.roofline import basis, bound, bound_points, bytes_read, prefill_bound, work
from tokendyno.backend.predict.setup import Setup
from tokendyno.backend.predict.weights import weight_bytes_read

FAST = PeakRates(4.3e12, 989e12, "a test")


def test_llama_on_an_h200_is_as_it_was_worked_out_by_hand() -> None:
    """15.0 GB of weights per token and 1,024 tokens of cache: 3.49 ms at 4.3 TB/s."""
    least = bound(resolve("Llama-3-8B"), Setup(), 1_024, 1, FAST)
    assert least.weight_bytes == pytest.approx(15.0e9, rel=0.005)
    assert least.kv_bytes == 1_024 * 131_072
    assert least.limited_by == "memory"
    assert least.seconds == pytest.approx(3.49e-3, rel=0.02) == least.bytes / 4.3e12


def test_only_active_experts_are_read() -> None:
    facts = resolve("gpt-oss-20b")
    one, eight, many = (bound(facts, Setup(), 64, batch, FAST).weight_bytes for batch in (1, 8, 4_096))
    assert one < 0.4 * many and one < eight < many
    copies = bound(facts, Setup(alike=True), 64, 8, FAST).weight_bytes  # of one text, which take the same experts
    assert one == copies == weight_bytes_read(facts, "auto", "none", 1)


def test_a_large_batch_is_bound_by_its_operations() -> None:
    facts = resolve("Llama-3-8B")
    bounds = [bound(facts, Setup(), 128, batch, FAST).limited_by for batch in (1, 64, 1_024)]
    assert bounds == ["memory", "memory", "compute"]
    busy = bound(facts, Setup(), 128, 1_024, FAST)
    assert busy.seconds == busy.flops / 989e12
    assert busy.flops == pytest.approx(2 * 7.5e9 * 1_024, rel=0.03)  # two per active parameter
    unknown = PeakRates(4.3e12, None, "a test")
    assert bound(facts, Setup(), 128, 1_024, unknown).limited_by == "memory"


@pytest.mark.parametrize("cache", ["dynamic", "unwindowed", "static", "offloaded"])
def test_a_window_bounds_what_must_be_read_whatever_the_cache_keeps(cache: str) -> None:
    facts = resolve("Mistral-7B-v0.1")
    setup = Setup(cache=CACHES[cache])
    assert bytes_read(facts, setup, 9_000, 1)[1] == bytes_read(facts, setup, 5_000, 1)[1]
    assert bytes_read(facts, setup, 2_000, 3)[1] == kv_bytes(facts, DYNAMIC, 2_000, 3, 2).total


def test_a_quantized_cache_is_read_packed() -> None:
    facts = resolve("Llama-3-8B")
    dense, packed = (bytes_read(facts, Setup(cache=c), 4_096, 1)[1] for c in (DYNAMIC, QUANTIZED_FP8))
    assert packed == pytest.approx(dense / 2, rel=0.001)


def test_the_points_rise_with_the_cache_until_the_window_is_full() -> None:
    facts = resolve("Mistral-7B-v0.1")
    points = bound_points(facts, Setup(), 3_000, 6_000, 1, FAST)
    lengths, seconds = zip(*points, strict=True)
    assert lengths[0] == 3_000 and lengths[-1] == 6_000 and facts.window in lengths
    assert list(seconds) == sorted(seconds)
    flat = {s for length, s in points if length >= (facts.window or 0)}
    assert len(flat) == 1 and seconds[0] < seconds[-1]
    assert bound_points(facts, Setup(), 5, 5, 1, FAST) == [(5, bound(facts, Setup(), 5, 1, FAST).seconds)]


def test_an_encoder_reads_its_weights_once_for_all_tokens_of_a_pass() -> None:
    facts = resolve("bert-base-uncased")
    short, long = (bound(facts, Setup(), length, 1, PeakRates(1e12, 1e12, "a test")) for length in (16, 512))
    assert short.kv_bytes == long.kv_bytes == 0
    assert long.weight_bytes < 1.05 * short.weight_bytes
    assert long.flops > 30 * short.flops


@pytest.mark.parametrize(("first", "last", "window"), [(3000, 6001, True), (1, 4001, False)])
def test_the_last_length_before_a_window_fills_and_the_first_after_it_are_points(
    first: int, last: int, window: bool
) -> None:
    """The line between spread points would cut the corner."""
    facts = resolve("random:Mistral-7B-v0.1")
    lengths = [length for length, _ in bound_points(facts, Setup(), first, last, 1, FAST)]
    assert lengths == sorted(set(lengths)) and (lengths[0], lengths[-1]) == (first, last)
    assert ({4095, 4096} <= set(lengths)) is window


@pytest.mark.parametrize(("flops_per_s", "batch", "said"), [(989e12, 1_024, "989 Tflop/s"), (989e12, 1, "4,300 GB/s")])
def test_the_rate_that_is_named_is_the_one_that_limits(flops_per_s: float, batch: int, said: str) -> None:
    rates = PeakRates(4.3e12, flops_per_s, "a test")
    assert basis(bound(resolve("Llama-3-8B"), Setup(), 128, batch, rates), rates) == f"{said}, a test"


def test_what_a_step_must_do_is_said_in_the_unit_that_limits_it() -> None:
    facts = resolve("Llama-3-8B")
    few, many = (bound(facts, Setup(), 128, batch, FAST) for batch in (1, 1_024))
    assert work(few, FAST) == f"{few.bytes / 1e9:,.3g} GB to read"
    tiny = bound(resolve("pocket"), Setup(), 128, 1, FAST)
    assert work(tiny, FAST) == f"{tiny.bytes / 1e6:,.3g} MB to read"
    assert work(many, FAST) == f"{many.flops / 1e12:,.3g} Tflop"


# --- of a prefill ----------------------------------------------------------------------------------

RATES = PeakRates(4.59e12, 989e12, "a test")
SETUP = Setup(dtype="bfloat16", device="cuda")


def prefill(model: str, length: int, batch: int = 1, rates: PeakRates = RATES, **setup: Any) -> Any:
    return prefill_bound(facts(model), replace(SETUP, **setup), length, batch, rates)


def test_a_long_prompt_is_bound_by_its_operations() -> None:
    """Llama 3 8B, by hand: 32 layers of 218,103,808 elements, a head, and half of the pairs of tokens."""
    of_layers, head, pairs = 32 * 218_103_808, 128_256 * 4_096, 32 * 8_000 * 8_001 // 2
    flops = 2 * (8_000 * of_layers + head + 2 * pairs * 32 * 128)
    long = prefill("random:Llama-3-8B", 8_000)
    assert (long.flops, long.limited_by) == (flops, "compute")
    assert long.seconds == pytest.approx(flops / 989e12) == pytest.approx(0.130, abs=0.001)


def test_a_short_prompt_is_bound_by_the_weights_which_are_read_once() -> None:
    short = prefill("random:Llama-3-8B", 16)
    weights = weight_bytes_read(facts("random:Llama-3-8B"), "bfloat16", "none", 16)
    assert (short.limited_by, short.weight_bytes, short.seconds) == ("memory", weights, weights / 4.59e12)
    assert (short.kv_bytes, short.exchanged_bytes, short.exchange_s) == (0, 0, 0.0)
    assert prefill("random:Llama-3-8B", 16, chunk=4) == short, "chunks are no excuse"


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
    assert prefill(model, 500, rates=rates, **setup) is None
