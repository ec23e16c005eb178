"""Numbers that were rounded to fewer bits than they take are told by how few of them differ."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, QuantizedCache, StaticCache
from transformers.cache_utils import DynamicLayer

from backend.models.source import ModelSource
from backend.optimizations import Observation
from backend.optimizations.axes.cache.axis import AXIS
from backend.optimizations.axes.cache.grain import is_coarse
from backend.plan import LoadPlan, Plan
from tests.support.tiny_models import CONFIGS, tiny

OF_WHOLE_BLOCKS = LlamaConfig(
    vocab_size=97, hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=64,
)  # fmt: skip
FORMATS = (torch.bfloat16, torch.float16, torch.float32)


def scaled(bits: int, dim: tuple[int, ...]) -> Callable[[Any], Any]:
    """Whole numbers of so many bits, times the scale of a tensor or row."""

    def rounded(x: Any) -> Any:
        scale = x.float().abs().amax(dim, keepdim=True) / (2 ** (bits - 1) - 1)
        return ((x.float() / scale).round() * scale).to(x.dtype)

    return rounded


def scaled_fp8(x: Any) -> Any:
    scale = x.float().abs().max() / 448
    return ((x.float() / scale).to(torch.float8_e4m3fn).float() * scale).to(x.dtype)


ROUNDED: dict[str, Callable[[Any], Any]] = {
    "e4m3": lambda x: x.to(torch.float8_e4m3fn).to(x.dtype),
    "e5m2": lambda x: x.to(torch.float8_e5m2).to(x.dtype),
    "e4m3 with a scale": scaled_fp8,
    "int8 with a scale": scaled(8, (0, 1, 2, 3)),
    "int4 with a scale a row": scaled(4, (3,)),
}


def layer(keys: Any, values: Any) -> Any:
    made = DynamicLayer()
    made.update(keys, values)
    return made


def drawn(dtype: torch.dtype, tokens: int = 40) -> tuple[Any, Any]:
    torch.manual_seed(1)
    keys, values = torch.randn(2, 1, 2, tokens, 32)
    return keys.to(dtype), values.to(dtype)


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("architecture", CONFIGS)
def test_what_a_model_gives_is_as_precise_as_its_format(architecture: str, dtype: torch.dtype) -> None:
    model, cache = tiny(architecture, dtype=str(dtype).removeprefix("torch.")), DynamicCache()
    with torch.inference_mode():
        model(torch.arange(90)[None] * 7 % 97, past_key_values=cache, use_cache=True)
    assert not any(map(is_coarse, cache.layers))


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("name", ROUNDED)
def test_rounded_keys_or_values_are_told(name: str, dtype: torch.dtype) -> None:
    keys, values = drawn(dtype)
    assert not is_coarse(layer(keys, values))
    assert is_coarse(layer(ROUNDED[name](keys), values)) and is_coarse(layer(keys, ROUNDED[name](values)))


def test_float32_that_has_the_numbers_of_16_bits_is_told() -> None:
    keys, values = drawn(torch.float32)
    assert is_coarse(layer(keys.bfloat16().float(), values))
    assert not is_coarse(layer(keys.bfloat16(), values.bfloat16()))


def test_float32_that_comes_in_16_bits_is_told_only_if_it_has_fewer() -> None:
    keys, values = (part.bfloat16().float() for part in drawn(torch.float32))
    assert is_coarse(layer(keys, values)) and not is_coarse(layer(keys, values), of_16_bits=True)
    assert is_coarse(layer(scaled_fp8(keys), values), of_16_bits=True)


@pytest.mark.filterwarnings("ignore")  # bitsandbytes asks the Hub for a kernel when it is imported
def test_what_bitsandbytes_computes_in_bfloat16_on_a_cpu_is_no_fault_of_the_cache() -> None:
    from bitsandbytes.functional import has_avx512bf16
    from bitsandbytes.nn import Linear4bit, Params4bit

    model, cache = LlamaForCausalLM(OF_WHOLE_BLOCKS).eval(), DynamicCache()
    for place in model.model.layers:
        plain = place.self_attn.v_proj
        packed = Linear4bit(plain.in_features, plain.out_features, bias=False, compute_dtype=torch.float32)
        packed.weight = Params4bit(plain.weight.detach(), requires_grad=False, quant_type="nf4")
        place.self_attn.v_proj = packed.to("cpu").eval()
    with torch.inference_mode():
        for token in range(60):
            model(torch.tensor([[token * 7 % 97]]), past_key_values=cache, use_cache=True)
    found = AXIS.find(Observation(model, cache, Plan(LoadPlan(ModelSource("random")))))
    assert (found.effective, found.reached, found.expected) == ("dynamic", 2, 2)
    assert any(map(is_coarse, cache.layers)) is bool(has_avx512bf16())


def test_one_token_over_and_over_is_no_rounding() -> None:
    """Without rotation its keys and values are the same at each place."""
    for dtype in FORMATS:
        keys, values = (part[:, :, :1].expand(-1, -1, 400, -1).contiguous() for part in drawn(dtype))
        assert not is_coarse(layer(keys, values))


def test_a_few_tokens_over_and_over_of_which_a_quarter_is_turned_are_no_rounding() -> None:
    for dtype in FORMATS:
        keys, values = drawn(dtype, 400)
        again = torch.arange(400) % 6
        keys[..., 8:], repeated = keys[:, :, again, 8:], values[:, :, again]
        assert not is_coarse(layer(keys, repeated))
        assert is_coarse(layer(keys, scaled_fp8(values)))


@pytest.mark.parametrize("tokens", [1, 7])
def test_few_numbers_tell_nothing(tokens: int) -> None:
    keys, values = drawn(torch.bfloat16, tokens)
    assert not is_coarse(layer(*(scaled_fp8(part) for part in (keys, values))))


def test_slots_that_nothing_was_written_to_do_not_count() -> None:
    cache = StaticCache(tiny("llama").config, 4_000)
    keys, values = torch.randn(2, 1, 2, 40, 32).bfloat16()
    cache.update(keys, values, 0)
    assert not is_coarse(cache.layers[0])
    cache.layers[0].keys = scaled_fp8(cache.layers[0].keys)
    assert is_coarse(cache.layers[0])


def test_what_is_packed_may_be_coarse_and_what_keeps_no_tokens_too() -> None:
    packed = QuantizedCache("fp8", tiny("llama").config)
    packed.update(*drawn(torch.float32), 0)
    assert not is_coarse(packed.layers[0]) and not is_coarse(object()) and not is_coarse(DynamicLayer())


def test_a_long_cache_is_looked_at_from_its_beginning_to_its_end() -> None:
    keys, values = drawn(torch.bfloat16, 4_000)
    assert not is_coarse(layer(keys, values)) and is_coarse(layer(scaled_fp8(keys), values))


def test_the_axis_counts_layers_without() -> None:
    cache = DynamicCache()
    for place in range(4):
        keys, values = drawn(torch.float32)
        cache.update(scaled_fp8(keys) if place == 2 else keys, values, place)
    found = AXIS.find(Observation(tiny("llama"), cache, Plan(LoadPlan(ModelSource("random")))))
    assert (found.effective, found.reached, found.expected) == ("dynamic", 3, 4)
    assert "1 layers hold numbers that were rounded" in found.proof
