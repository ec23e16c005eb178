"""What is told of a KV cache: by the classes of its layers and the bytes of their tensors."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import DynamicCache, MllamaTextConfig, QuantizedCache, StaticCache
from transformers.cache_utils import DynamicLayer

from tests.support.proof import claimed
from tests.support.tiny_models import tiny
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations.axes.cache import Cache
from tokendyno.backend.plan import CACHES, GeneratePlan, LoadPlan, Plan
from tokendyno.backend.worker.loop.cache import StaticSlotCache
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.prove.tensor_bytes import inner_tensors, layer_bytes
from tokendyno.backend.worker.witness import find
from tokendyno.backend.worker.witness.cache import _bits


def states(tokens: int, heads: int = 2, size: int = 32) -> tuple[Any, Any]:
    return torch.randn(1, heads, tokens, size), torch.randn(1, heads, tokens, size)


def seen(cache: Any, model: Any, planned: str = "dynamic") -> Observation:
    return Observation(model, cache, Plan(LoadPlan(ModelSource("random")), GeneratePlan(CACHES[planned])))


def claims(finding: Observation) -> set[str]:
    return claimed(Cache(), finding)


def filled(cache: Any, layers: int = 2, tokens: int = 12, size: int = 32) -> Any:
    for layer in range(layers):
        cache.update(*states(tokens, 2, size), layer)
        cache.update(*states(1, 2, size), layer)
    return cache


@pytest.mark.parametrize(
    ("name", "arguments"), [("quantized-fp8", ("fp8", None)), ("quantized-hqq4", ("hqq", 4)), ("", ("hqq", 8))]
)
def test_a_quantized_cache_is_known_by_its_codes_whatever_was_planned(name: str, arguments: tuple[str, Any]) -> None:
    backend, bits = arguments
    model = tiny("llama")
    cache = filled(QuantizedCache(backend, model.config, nbits=bits))
    for planned in ("dynamic", "quantized-fp8", "quantized-hqq4"):
        assert claims(seen(cache, model, planned)) == ({name} if name else set())
    held = sum(map(layer_bytes, cache.layers))
    assert f"{held:,} bytes" in find("cache", seen(cache, model)).proof


def slots_of(eight_bits: bool) -> Any:
    """A filled cache of the custom loop, four layers."""
    cache = StaticSlotCache(tiny("llama").config, 32, eight_bits)
    for layer in range(4):
        cache.update(*states(12, 2, 8), layer)
    return cache


def test_a_static_cache_in_8_bits_is_known_by_its_codes() -> None:
    model, cache = tiny("llama"), slots_of(True)
    for planned in ("static", "static-fp8"):
        assert claims(seen(cache, model, planned)) == {"static-fp8"}
        assert claims(seen(slots_of(False), model, planned)) == {"static"}
    cache.layers[0].keys = cache.layers[0].keys.float()
    finding = find("cache", seen(cache, model, "static-fp8"))
    assert (finding.effective, finding.reached, finding.expected) == ("static-fp8", 3, 4)


@pytest.mark.filterwarnings("ignore")  # optimum-quanto's own, when it is imported
@pytest.mark.parametrize(("tokens", "padding"), [(2, 0), (64, 0), (64, 40)])
def test_few_tokens_in_quantos_codes_and_padding_beside_them_are_told(tokens: int, padding: int) -> None:
    """Codes of two tokens take less than their scales and half of what they are padded to; those of padding are zeros
    that stand for zeros."""
    from tokendyno.backend.worker.patch.quantized import unpack_with_torch

    unpack_with_torch()
    model, cache = tiny("llama"), QuantizedCache("quanto", tiny("llama").config, nbits=4)
    for layer in range(4):
        keys, values = states(tokens, 2, 32)
        keys[:, :, :padding] = values[:, :, :padding] = 0
        cache.update(keys, values, layer)
        cache.update(*states(1, 2, 32), layer)
    assert claims(seen(cache, model, "quantized-quanto4")) == {"quantized-quanto4"}


@pytest.mark.filterwarnings("ignore")
def test_quantos_codes_are_found_inside_its_tensors() -> None:
    from tokendyno.backend.worker.patch.quantized import unpack_with_torch

    unpack_with_torch()
    model = tiny("llama")
    cache = filled(QuantizedCache("quanto", model.config, nbits=4))
    assert claims(seen(cache, model, "quantized-fp8")) == {"quantized-quanto4"}
    codes = [tensor for tensor in inner_tensors(cache.layers[0]._quantized_keys) if tensor.dtype == torch.uint8]
    assert [tensor.nbytes for tensor in codes] == [12 * 2 * 32 // 2]


def test_codes_without_a_recorded_shape_count_one_number_for_each_element() -> None:
    assert _bits((torch.zeros(48, dtype=torch.uint8), {})) == 8
    assert _bits((torch.zeros(48, dtype=torch.uint8), {"shape": (96, 1)})) == 4
    assert _bits((torch.zeros(2, dtype=torch.float8_e4m3fn), torch.zeros(4))) == 8, "not the scales, which are larger"


@pytest.mark.parametrize("tokens", [None, 0])
def test_a_layer_that_holds_no_token_is_missed(tokens: int | None) -> None:
    """Whether it has no tensors, or empty ones."""
    model = tiny("llama")
    cache = filled(DynamicCache(config=model.config), 4)
    assert find("cache", seen(cache, model)).proof.endswith(" (no sliding layers: dynamic and unwindowed are the same)")
    empty = DynamicLayer()
    if tokens is not None:
        empty.update(*states(tokens))
    cache.layers[1] = empty
    finding = find("cache", seen(cache, model))
    assert (finding.effective, finding.reached, finding.expected) == ("dynamic", 3, 4)
    assert finding.proof.endswith("; 3 of 4 layers hold their tokens like that")


def test_a_text_leaves_layers_for_images_empty_which_is_not_against_it() -> None:
    config = MllamaTextConfig(num_hidden_layers=4, cross_attention_layers=[1])
    cache = DynamicCache(config=config)
    for layer in (0, 2, 3):
        cache.update(*states(12), layer)
    finding = find("cache", seen(cache, SimpleNamespace(config=config)))
    assert len(cache.layers) == 4 and (finding.reached, finding.expected) == (3, 3)


def test_windows_are_still_told_from_none() -> None:
    model = tiny("gpt_oss")
    assert claims(seen(filled(DynamicCache(config=model.config), 4), model)) == {"dynamic"}
    assert claims(seen(filled(DynamicCache(), 4), model, "offloaded")) == {"unwindowed"}
    assert claims(seen(filled(StaticCache(model.config, 32), 4), model)) == {"static"}
