"""The caches: what the rules say of them is what transformers does, and each is known by its tensors."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import DynamicCache, MllamaTextConfig, QuantizedCache, StaticCache
from transformers.cache_utils import DynamicLayer

from tests.support.machines import H200, facts, settled
from tests.support.proof import verify
from tests.support.tiny_models import tiny
from tokendyno.backend.counts import counts_of
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models.facts import CacheLayers
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import Observation, subject_of
from tokendyno.backend.optimizations.axes.cache.axis import AXIS, _bits
from tokendyno.backend.optimizations.tensor_bytes import inner_tensors, layer_bytes
from tokendyno.backend.plan import CACHES, QUANTIZED_FP8, QUANTIZED_HQQ4, GeneratePlan, LoadPlan, Plan
from tokendyno.backend.script.parts import Script
from tokendyno.backend.worker.loop.cache import StaticSlotCache

FULL, MIXED, SLIDING = "random:Qwen3-0.6B", "random:gpt-oss-20b", "random:Mistral-7B-v0.1"


def blocked(
    choice: str, model: str = FULL, machine: Machine = H200, **choices: str
) -> list[tuple[str, dict[str, str]]]:
    subject = subject_of(facts(model), machine, {"cache": choice, "compile": "off", **choices})
    return [(v.reason, v.fix) for v in AXIS.verdicts(choice, subject) if v.level == "blocked"]


# --- the same rules, tried out ----------------------------------------------------------------------------------------


def states(tokens: int, heads: int = 2, size: int = 32) -> tuple[Any, Any]:
    return torch.randn(1, heads, tokens, size), torch.randn(1, heads, tokens, size)


@pytest.mark.parametrize("architecture", ["mistral", "gpt_oss", "gemma3_text", "olmo3"])
def test_a_quantized_cache_refuses_windows(architecture: str) -> None:
    with pytest.raises(ValueError, match="only full attention layers"):
        QuantizedCache("fp8", tiny(architecture).config)


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "qwen3"])
def test_a_quantized_cache_takes_what_has_none_but_cannot_be_compiled(architecture: str) -> None:
    cache = QuantizedCache("fp8", tiny(architecture).config)
    ids = torch.randint(3, 90, (2, 9))
    kept = {"attention_mask": torch.ones_like(ids), "max_new_tokens": 12, "do_sample": False}
    assert tiny(architecture).generate(ids, past_key_values=cache, **kept).shape == (2, 21)
    assert not cache.is_compileable


@pytest.mark.parametrize(("tokens", "divides"), [(3, False), (4, True), (64, True)])
def test_groups_must_divide_the_prompt(tokens: int, divides: bool) -> None:
    """16 numbers a token: 4 tokens are a group of 64. What comes later, 128 tokens at a time, always divides."""
    from tokendyno.backend.errors import InputError
    from tokendyno.backend.worker.runners.cache import Caches

    caches, plan = Caches(tiny("llama").config), GeneratePlan(QUANTIZED_HQQ4)
    cache = caches.make(plan, 1, 0)
    if divides:
        caches.require_groups(plan, 1, tokens)
        for more in (tokens, *[1] * 130):
            cache.update(*states(more, 2, 8), 0)
    else:
        with pytest.raises(InputError, match="multiple of 64 tokens"):
            caches.require_groups(plan, 1, tokens)
        with pytest.raises(AssertionError, match="group_size should be divis"):
            cache.update(*states(tokens, 2, 8), 0)
    caches.require_groups(GeneratePlan(QUANTIZED_FP8), 1, tokens)


# --- the proof --------------------------------------------------------------------------------------------------------


def seen(cache: Any, model: Any, planned: str = "dynamic") -> Observation:
    return Observation(model, cache, Plan(LoadPlan(ModelSource("random")), GeneratePlan(CACHES[planned])))


def claims(found: Observation) -> set[str]:
    return {choice.name for choice in AXIS.choices if verify(AXIS, choice.name, found)}


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
    proof = AXIS.find(seen(cache, model)).proof
    held = sum(map(layer_bytes, cache.layers))
    assert f"{held:,} bytes" in proof and f"{bits or 8} bits per element" in proof


def slots_of(eight_bits: bool) -> Any:
    """A filled cache of the custom loop, four layers."""
    cache = StaticSlotCache(tiny("llama").config, 32, eight_bits)
    for layer in range(4):
        cache.update(*states(12, 2, 8), layer)
    return cache


def test_a_static_cache_in_8_bits_is_known_by_its_codes_and_scales() -> None:
    model, cache = tiny("llama"), slots_of(True)
    for planned in ("static", "static-fp8"):
        assert claims(seen(cache, model, planned)) == {"static-fp8"}
        assert claims(seen(slots_of(False), model, planned)) == {"static"}
    cache.layers[0].keys = cache.layers[0].keys.float()
    cache.layers[1].value_scales.zero_()
    found = AXIS.find(seen(cache, model, "static-fp8"))
    assert (found.effective, found.reached, found.expected) == ("static-fp8", 2, 4)


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
    assert AXIS.find(seen(cache, model)).proof.endswith(" (no sliding layers: dynamic and unwindowed are the same)")
    empty = DynamicLayer()
    if tokens is not None:
        empty.update(*states(tokens))
    cache.layers[1] = empty
    found = AXIS.find(seen(cache, model))
    assert (found.effective, found.reached, found.expected) == ("dynamic", 3, 4)
    assert found.proof.endswith("; 3 of 4 layers hold their tokens like that")


def test_a_text_leaves_layers_for_images_empty_which_is_not_against_it() -> None:
    config = MllamaTextConfig(num_hidden_layers=4, cross_attention_layers=[1])
    cache = DynamicCache(config=config)
    for layer in (0, 2, 3):
        cache.update(*states(12), layer)
    found = AXIS.find(seen(cache, SimpleNamespace(config=config)))
    assert len(cache.layers) == 4 and (found.reached, found.expected) == (3, 3)


def test_windows_are_still_told_from_none() -> None:
    model = tiny("gpt_oss")
    assert claims(seen(filled(DynamicCache(config=model.config), 4), model)) == {"dynamic"}
    assert claims(seen(filled(DynamicCache(), 4), model, "offloaded")) == {"unwindowed"}
    assert claims(seen(filled(StaticCache(model.config, 32), 4), model)) == {"static"}


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("dynamic", ""),
        ("unwindowed", "DynamicCache()"),
        ("static", "StaticCache(config=model.config, max_cache_len=MAX_LENGTH)"),
        ("static-fp8", ""),  # the loop's
        ("offloaded", "DynamicCache(config=model.config, offloading=True)"),
        ("quantized-hqq4", 'QuantizedCache("hqq", model.config, nbits=4)'),
    ],
)
def test_the_script_makes_the_same_cache(kind: str, written: str) -> None:
    script = Script()
    AXIS.write(script, Plan(LoadPlan(ModelSource("random")), GeneratePlan(CACHES[kind])))
    assert script.cache == written
    assert len(script.imports) == bool(written)


@pytest.mark.parametrize("kind", CACHES)
def test_a_script_changes_what_the_worker_changes(kind: str) -> None:
    script = Script()
    AXIS.write(script, Plan(LoadPlan(ModelSource("random")), GeneratePlan(CACHES[kind])))
    made = {"quantized-quanto4": ["unpack_with_torch()"], "quantized-fp8": ["saturate_fp8_cache()"]}.get(kind, [])
    assert script.patch == made and len(script.definitions) == len(made)


@pytest.mark.parametrize(
    ("layers", "quantized", "unwindowed"),
    [
        (CacheLayers(2, "full", 64), True, True),
        (CacheLayers(2, "full", 64, even=False), False, True),
        (CacheLayers(2, "full", 64, state_bytes=8), False, False),
        (CacheLayers(2, "full", 64, state_elements=8), False, False),
        (CacheLayers(2, "fixed", 0), False, False),
    ],
)
def test_of_counted_layers_only_keys_and_values_of_one_size_can_be_quantized(
    layers: CacheLayers, quantized: bool, unwindowed: bool
) -> None:
    given = replace(facts(FULL), counted_cache=(CacheLayers(1, "full", 64), layers))

    def allowed(choice: str) -> bool:
        subject = subject_of(given, H200, {"cache": choice, "compile": "off"})
        return not any(v.level == "blocked" for v in AXIS.verdicts(choice, subject))

    assert (allowed("quantized-fp8"), allowed("unwindowed")) == (quantized, unwindowed)


@pytest.mark.parametrize(
    ("choices", "noted"),
    [
        ({"kernels": "local", "projections": "fused"}, False),
        ({"kernels": "local"}, True),  # its layers stay in the model's code
        ({"projections": "fused"}, True),
    ],
)
def test_where_no_kernel_reads_8_bits_as_they_lie_it_is_said(choices: dict[str, str], noted: bool) -> None:
    machine = replace(H200, kernel_layers=("DecoderLayer",))
    checked = settled(facts("random:Llama-3-8B"), {"cache": "static-fp8", "loop": "own"} | choices, machine)
    reasons = [verdict.reason for verdict in checked.verdicts]
    assert any("dequantizes its whole cache" in reason for reason in reasons) is noted


@pytest.mark.parametrize(("head_dim", "reads"), [(64, True), (96, False), (128, True), (256, False)])
def test_kernels_read_8_bits_in_heads_of_a_power_of_two(head_dim: int, reads: bool) -> None:
    model = replace(facts("random:Llama-3-8B"), head_dim=head_dim)
    arm = {"cache": "static-fp8", "loop": "own", "kernels": "local"}
    assert any("reads 8 bits" in verdict.reason for verdict in settled(model, arm, H200).blocked) is not reads


@pytest.mark.parametrize(("name", "moved", "reached"), [("static", 0, 4), ("static", 1, 3), ("dynamic", 4, 4)])
def test_a_static_cache_that_moves_is_none_in_those_layers(name: str, moved: int, reached: int) -> None:
    model = tiny("llama")
    cache = StaticCache(model.config, 32) if name == "static" else DynamicCache(config=model.config)
    found = AXIS.find(replace(seen(filled(cache, 4), model, name), counts=counts_of({"moved_layers": moved})))
    assert (found.effective, found.reached, found.expected) == (name, reached, 4)
    assert ("1 of 4 layers moved to other addresses" in found.proof) is (reached < 4)
