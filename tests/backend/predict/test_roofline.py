"""The floor: what it counts, how it moves, and that it is the larger of two times."""

import pytest

from backend.models import resolve
from backend.predict import Limits, Setup, floor, floor_points, kv_bytes, touched_bytes
from backend.predict.roofline import needed_kv_bytes

FAST = Limits(4.3e12, 989e12, "a test")


def test_llama_on_an_h200_is_as_it_was_worked_out_by_hand() -> None:
    """Issue of decoding near the limit: 15.0 GB of weights a token and 1,024 tokens of cache, 3.49 ms at 4.3 TB/s."""
    least = floor(resolve("Llama-3-8B"), Setup(), 1_024, 1, FAST)
    assert least.weight_bytes == pytest.approx(15.0e9, rel=0.005)
    assert least.kv_bytes == 1_024 * 131_072
    assert least.bound == "memory"
    assert least.seconds == pytest.approx(3.49e-3, rel=0.02) == least.bytes / 4.3e12


def test_of_a_mixture_only_the_experts_at_work_are_read() -> None:
    facts = resolve("gpt-oss-20b")
    one, eight, many = (floor(facts, Setup(), 64, batch, FAST).weight_bytes for batch in (1, 8, 4_096))
    assert one < 0.4 * many and one < eight < many
    assert one == touched_bytes(facts, "auto", "none", 1)


def test_a_large_batch_is_bound_by_its_operations() -> None:
    facts = resolve("Llama-3-8B")
    bounds = [floor(facts, Setup(), 128, batch, FAST).bound for batch in (1, 64, 1_024)]
    assert bounds == ["memory", "memory", "compute"]
    busy = floor(facts, Setup(), 128, 1_024, FAST)
    assert busy.seconds == busy.flops / 989e12
    assert busy.flops == pytest.approx(2 * 7.5e9 * 1_024, rel=0.03)  # two for each parameter at work
    unknown = Limits(4.3e12, None, "a test")
    assert floor(facts, Setup(), 128, 1_024, unknown).bound == "memory"


@pytest.mark.parametrize("cache", ["dynamic", "unwindowed", "static", "offloaded"])
def test_a_window_bounds_what_must_be_read_whatever_the_cache_keeps(cache: str) -> None:
    facts = resolve("Mistral-7B-v0.1")
    setup = Setup(cache=cache)  # type: ignore[arg-type]
    assert needed_kv_bytes(facts, setup, 9_000, 1) == needed_kv_bytes(facts, setup, 5_000, 1)
    assert needed_kv_bytes(facts, setup, 2_000, 3) == kv_bytes(facts, "dynamic", 2_000, 3, 2).total


def test_a_packed_cache_is_read_packed() -> None:
    facts = resolve("Llama-3-8B")
    dense, packed = (needed_kv_bytes(facts, Setup(cache=c), 4_096, 1) for c in ("dynamic", "quantized-fp8"))
    assert packed == pytest.approx(dense / 2, rel=0.001)


def test_fewer_bits_lower_the_floor() -> None:
    facts = resolve("Llama-3-8B")
    times = [floor(facts, Setup(quantization=q), 64, 1, FAST).seconds for q in ("none", "bnb-int8", "bnb-nf4-double")]
    assert times == sorted(times, reverse=True) and times[2] < 0.4 * times[0]


def test_the_points_rise_with_the_cache_until_the_window_is_full() -> None:
    facts = resolve("Mistral-7B-v0.1")
    points = floor_points(facts, Setup(), 3_000, 6_000, 1, FAST)
    lengths, seconds = zip(*points, strict=True)
    assert lengths[0] == 3_000 and lengths[-1] == 6_000 and facts.window in lengths
    assert list(seconds) == sorted(seconds)
    flat = {s for length, s in points if length >= (facts.window or 0)}
    assert len(flat) == 1 and seconds[0] < seconds[-1]
    assert floor_points(facts, Setup(), 5, 5, 1, FAST) == [(5, floor(facts, Setup(), 5, 1, FAST).seconds)]


def test_an_encoder_reads_its_weights_once_for_all_tokens_of_a_pass() -> None:
    facts = resolve("bert-base-uncased")
    short, long = (floor(facts, Setup(), length, 1, Limits(1e12, 1e12, "a test")) for length in (16, 512))
    assert short.kv_bytes == long.kv_bytes == 0
    assert long.weight_bytes < 1.05 * short.weight_bytes
    assert long.flops > 30 * short.flops


def test_a_step_without_tokens_is_none() -> None:
    with pytest.raises(ValueError, match="at least one"):
        floor(resolve("gpt2"), Setup(), 0, 1, FAST)
