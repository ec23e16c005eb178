"""The caches: what the rules say of them is what transformers does, and each is known by its tensors."""

from dataclasses import replace

import pytest
import torch
from transformers import QuantizedCache

from tests.support.machines import H200, facts, settled
from tests.support.tiny_models import tiny
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models.facts import CacheLayers
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import subject_of
from tokendyno.backend.optimizations.axes.cache import Cache
from tokendyno.backend.plan import CACHES, QUANTIZED_FP8, QUANTIZED_HQQ4, GeneratePlan, LoadPlan, Plan
from tokendyno.backend.script.parts import Script

FULL, MIXED, SLIDING = "random:Qwen3-0.6B", "random:gpt-oss-20b", "random:Mistral-7B-v0.1"


def blocked(
    choice: str, model: str = FULL, machine: Machine = H200, **choices: str
) -> list[tuple[str, dict[str, str]]]:
    subject = subject_of(facts(model), machine, {"cache": choice, "compile": "off", **choices})
    return [(v.reason, v.fix) for v in Cache().verdicts(choice, subject) if v.level == "blocked"]


# --- the same rules, tried out ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", ["mistral", "gpt_oss", "gemma3_text", "olmo3"])
def test_a_quantized_cache_refuses_windows(architecture: str) -> None:
    with pytest.raises(ValueError, match="only full attention layers"):
        QuantizedCache("fp8", tiny(architecture).config)


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "qwen3"])
def test_a_quantized_cache_takes_what_has_none_but_cannot_be_compiled(architecture: str) -> None:
    cache = QuantizedCache("fp8", tiny(architecture).config)
    ids = torch.randint(3, 90, (2, 9))
    keywords = {"attention_mask": torch.ones_like(ids), "max_new_tokens": 12, "do_sample": False}
    assert tiny(architecture).generate(ids, past_key_values=cache, **keywords).shape == (2, 21)
    assert not cache.is_compileable


@pytest.mark.parametrize(("tokens", "divides"), [(3, False), (4, True), (64, True)])
def test_groups_must_divide_the_prompt(tokens: int, divides: bool) -> None:
    """16 numbers a token: 4 tokens are a group of 64. What comes later, 128 tokens at a time, always divides."""
    from tokendyno.backend.errors import InputError
    from tokendyno.backend.worker.runners.token_loops import Caches

    caches, plan = Caches(tiny("llama").config), GeneratePlan(QUANTIZED_HQQ4)
    cache = caches.make(plan, 1, 0)
    if divides:
        caches.require_groups(plan, 1, tokens)
        for new in (tokens, *[1] * 130):
            cache.update(torch.randn(1, 2, new, 8), torch.randn(1, 2, new, 8), 0)
    else:
        with pytest.raises(InputError, match="multiple of 64 tokens"):
            caches.require_groups(plan, 1, tokens)
        with pytest.raises(AssertionError, match="group_size should be divis"):
            cache.update(torch.randn(1, 2, tokens, 8), torch.randn(1, 2, tokens, 8), 0)
    caches.require_groups(GeneratePlan(QUANTIZED_FP8), 1, tokens)


# --- the proof --------------------------------------------------------------------------------------------------------


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
    Cache().write(script, Plan(LoadPlan(ModelSource("random")), GeneratePlan(CACHES[kind])))
    assert script.cache == written
    assert len(script.imports) == bool(written)


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
        return not any(v.level == "blocked" for v in Cache().verdicts(choice, subject))

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


@pytest.mark.parametrize(("model", "reads"), [("Olmo-3-7B", False), ("Mistral-7B-v0.1", True)])
def test_kernels_read_8_bits_where_queries_are_normed_by_head(model: str, reads: bool) -> None:
    arm = {"cache": "static-fp8", "loop": "own", "kernels": "local"}
    verdicts = settled(facts(f"random:{model}"), arm, H200).blocked
    assert any("reads 8 bits" in verdict.reason for verdict in verdicts) is not reads
