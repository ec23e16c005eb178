"""When each implementation of attention can run, against what transformers says and does."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.support.attention import ALLOWED, BARE, FLASH, OFFLINE, REFUSALS, gpu, refused, verdicts
from tests.support.machines import CPU, H200, facts
from tests.support.tiny_models import build, tiny
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.optimizations.axes.attention.flash import FA2, FA3, FA4, HUB_FA2, HUB_FA3, HUB_FA4, flash_rules
from tokendyno.backend.plan import CACHES

# --- as transformers refuses ----------------------------------------------------------------------


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(("architecture", "name", "model", "words"), REFUSALS, ids=[f"{r[0]}-{r[1]}" for r in REFUSALS])
def test_what_the_rules_do_not_let_through_is_refused_by_transformers(
    architecture: str, name: str, model: str, words: str
) -> None:
    assert words in refused(architecture, name)
    assert {"blocked", "fallback"} & set(verdicts(name, facts(model)))


@pytest.mark.parametrize(("architecture", "name"), ALLOWED)
def test_what_the_rules_let_through_is_not_refused(architecture: str, name: str) -> None:
    assert refused(architecture, name) == ""
    known = replace(facts("random:Qwen3-0.6B"), architecture=architecture)
    assert "blocked" not in verdicts(name, known)


@pytest.mark.full  # the mask is compiled
@pytest.mark.filterwarnings("ignore")  # torch's own, of what transformers asks of it
def test_sinks_on_a_cpu_are_too_much_for_flex_attention() -> None:
    model = build("gpt_oss", "flex_attention")
    with pytest.raises(ValueError, match="sinks cannot be run on CPU"):
        model(torch.tensor([[5, 6, 7]]))
    assert "sinks" in verdicts("flex_attention", facts())["blocked"]
    assert "blocked" not in verdicts("flex_attention", facts(), H200)


@pytest.mark.parametrize("model", ["random:Qwen3-0.6B", "random:gpt-oss-20b"])
def test_what_only_another_attention_answers_gets_one_fix(model: str) -> None:
    """A T4 with FlashAttention 2 in float32: another dtype would not help, nor another FlashAttention."""
    arm = make_config(model, {"attention": FA2, "dtype": "float32"})
    told = check(arm, facts(model), gpu(7, 5), Workload(prompt="Once")).verdicts
    assert {tuple(one.fix.items()) for one in told if one.axis == "attention"} == {(("attention", "auto"),)}


def test_static_caches_are_refused_for_flex_attention() -> None:
    assert "BlockMask" in verdicts("flex_attention", cache="static")["blocked"]
    assert "BlockMask" in verdicts("flex_attention", cache="offloaded_static")["blocked"]
    growing = [name for name, kind in CACHES.items() if kind.grows]
    assert not any("blocked" in verdicts("flex_attention", cache=kind) for kind in growing)


@pytest.mark.full  # the mask is compiled; only another transformers can change the outcome
@pytest.mark.filterwarnings("ignore")  # torch's own, of what transformers asks of it
def test_generate_with_a_static_cache_is_too_much_for_flex_attention() -> None:
    model = build("llama", "flex_attention")
    with pytest.raises(AttributeError, match="'BlockMask' object has no attribute 'contiguous'"):
        model.generate(
            torch.tensor([[5, 6, 7]]),
            max_new_tokens=4,
            cache_implementation="static",
            disable_compile=True,
            attention_mask=torch.ones(1, 3, dtype=torch.long),
        )


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.parametrize("architecture", ["llama", "mistral", "gemma3_text"])
def test_flex_attention_on_a_cpu_makes_the_text_of_sdpa_unless_there_are_windows(architecture: str) -> None:
    ids = torch.tensor([[5, 6, 7, 8, 9, 10, 11, 12, 13, 14]])
    kwargs: dict[str, Any] = {"attention_mask": torch.ones_like(ids), "max_new_tokens": 12, "do_sample": False}
    model = build(architecture, "flex_attention")
    windows = {"llama": "random:Llama-3-8B", "mistral": "random:Mistral-7B-v0.1", "gemma3_text": "random:Gemma-3-1b"}
    if architecture == "llama":
        assert torch.equal(model.generate(ids, **kwargs), build(architecture, "sdpa").generate(ids, **kwargs))
    else:
        with pytest.raises(Exception, match="C\\+\\+ compile error"):
            model.generate(ids, **kwargs)
    refused = verdicts("flex_attention", facts(windows[architecture])).get("blocked", "")
    assert ("window" in refused) is (architecture != "llama")
    assert "blocked" not in verdicts("flex_attention", facts(windows[architecture]), H200)


# --- rules that only a GPU can probe ---------------------------------------------------------------


@pytest.mark.parametrize("name", FLASH)
def test_flash_kernels_want_a_gpu_of_some_age_and_half_precision(name: str) -> None:
    assert "NVIDIA GPUs only" in verdicts(name)["blocked"]
    assert "float16 and bfloat16" in verdicts(name, machine=H200, dtype="float32")["blocked"]
    assert "8.0" in verdicts(name, machine=gpu(7, 5))["blocked"]
    assert "blocked" not in verdicts(name, machine=H200)
    assert "blocked" not in verdicts(name, machine=BARE), "online, a kernel of the Hub may come"
    assert "graph break" in verdicts(name, machine=H200, cache="static", compile="default")["note"]
    old = replace(facts("random:Qwen3-0.6B"), architecture="bloom")
    assert "does not support FlashAttention" in verdicts(name, old, H200)["blocked"]


CAPABILITIES = [
    (FA2, (8, 0), True), (FA2, (10, 0), True), (HUB_FA2, (8, 6), True),
    (FA3, (8, 0), False), (FA3, (9, 0), True), (FA3, (10, 0), False), (HUB_FA3, (8, 9), False), (HUB_FA3, (9, 0), True),
    (FA4, (8, 9), False), (FA4, (9, 0), True), (FA4, (10, 0), True),
]  # fmt: skip


@pytest.mark.parametrize(("name", "capability", "runs"), CAPABILITIES)
def test_capability_decides_for_what_would_be_taken(name: str, capability: tuple[int, int], runs: bool) -> None:
    """Without packages: FlashAttention 3 is the Hub's kernel for Hopper then."""
    assert ("blocked" not in verdicts(name, machine=gpu(*capability))) is runs


def test_the_package_of_flash_attention_3_is_also_for_ampere() -> None:
    assert "blocked" not in verdicts(FA3, machine=gpu(8, 0, H200))


@pytest.mark.parametrize(("name", "instead"), [(FA2, HUB_FA2), (FA3, HUB_FA3)])
def test_a_missing_package_is_amber_online_and_refused_offline_unless_the_kernel_is_here(
    name: str, instead: str
) -> None:
    assert instead in verdicts(name, machine=BARE)["fallback"]
    assert "fallback" not in verdicts(name, machine=H200)
    assert f"LOCAL_KERNELS={instead}" in verdicts(name, machine=OFFLINE)["blocked"]
    here = replace(OFFLINE, hub_kernels=(instead,))
    assert "blocked" not in verdicts(name, machine=here) and instead in verdicts(name, machine=here)["fallback"]


def test_flash_attention_4_has_a_kernel_of_the_hub_behind_it() -> None:
    assert HUB_FA4 in verdicts(FA4, machine=BARE)["note"]
    assert HUB_FA4 in verdicts(FA4, machine=OFFLINE)["blocked"]
    assert "note" not in verdicts(FA4, machine=H200)


@pytest.mark.parametrize("name", [HUB_FA2, HUB_FA3])
def test_a_kernel_of_the_hub_needs_the_hub_or_a_folder_and_the_package_kernels(name: str) -> None:
    assert "LOCAL_KERNELS" in verdicts(name, machine=OFFLINE)["blocked"]
    assert "blocked" not in verdicts(name, machine=replace(OFFLINE, hub_kernels=(name,)))
    assert "package kernels" in verdicts(name, machine=replace(BARE, packages=()))["blocked"]


@pytest.mark.parametrize("name", [FA2, FA3, HUB_FA2])
def test_with_sinks_the_one_kernel_that_knows_them_is_taken(name: str) -> None:
    sinks = facts("random:gpt-oss-20b")
    assert HUB_FA3 in verdicts(name, sinks, H200)["fallback"]
    assert HUB_FA3 in verdicts(name, sinks, OFFLINE)["blocked"]
    assert "blocked" in verdicts(name, sinks, gpu(8, 0, H200))
    model = tiny("gpt_oss")
    kept = model._compatible_flash_implementations
    assert name not in kept and {HUB_FA3, FA4} <= set(kept)


def test_sinks_leave_the_two_that_know_them_alone() -> None:
    for name in (FA4, HUB_FA3):
        assert set(verdicts(name, facts("random:gpt-oss-20b"), H200)) == set()


def test_flex_attention_on_a_gpu_wants_heads_of_16() -> None:
    narrow = replace(facts("random:Qwen3-0.6B"), head_dim=8)
    assert "16" in verdicts("flex_attention", narrow, H200)["blocked"]
    assert "blocked" not in verdicts("flex_attention", narrow, CPU)


# --- grouped heads --------------------------------------------------------------------------------


def test_without_groups_sdpa_gqa_is_sdpa() -> None:
    for name in ("random:gpt2", "random:Olmo-3-7B", "bert-base-uncased"):
        assert "sdpa" in verdicts("sdpa-gqa", facts(name))["fallback"]
    assert "fallback" not in verdicts("sdpa-gqa", facts("random:Qwen3-0.6B"))


def test_sdpa_on_hopper_says_what_growing_costs() -> None:
    said = verdicts("sdpa", machine=gpu(9, 0))["note"]
    assert "cuDNN" in said and "static cache" in said
    for quiet in (
        verdicts("sdpa", machine=gpu(8, 0)),
        verdicts("sdpa", machine=gpu(9, 0), dtype="float32"),
        verdicts("sdpa", machine=gpu(9, 0), cache="static"),
        verdicts("sdpa"),
        verdicts("auto", machine=gpu(9, 0)),
        verdicts("sdpa", facts("random:bert-base-uncased"), gpu(9, 0)),
    ):
        assert "cuDNN" not in str(quiet)


def test_it_says_where_it_pays() -> None:
    assert "static cache" in verdicts("sdpa-gqa")["note"]
    assert verdicts("sdpa-gqa", cache="static") == {}


@pytest.mark.parametrize(("name", "said"), [(FA4, True), (FA3, False), (FA2, False)])
def test_the_kernel_in_place_of_a_package_that_is_missing_is_said_of_flash_attention_4_alone(
    name: str, said: bool
) -> None:
    """The others fall back to a kernel that is a choice of its own."""
    reasons = [rule.reason for rule in flash_rules(name)]
    assert any("The package flash-attn-4 is not installed" in reason for reason in reasons) is said


@pytest.mark.parametrize(
    ("name", "package", "repositories"),
    [
        (FA2, "flash-attn", {HUB_FA2, HUB_FA3}),
        (FA3, "flash-attn-3", {HUB_FA3}),
        (FA4, "flash-attn-4", {HUB_FA4}),
        (HUB_FA2, "", {HUB_FA2, HUB_FA3}),
        (HUB_FA3, "", {HUB_FA3}),
    ],
)
def test_offline_the_kernels_are_named_that_would_be_taken(name: str, package: str, repositories: set[str]) -> None:
    """That with sinks too, for those that do not support them."""
    missing = [rule.reason for rule in flash_rules(name) if "HF_HUB_OFFLINE" in rule.reason]
    assert {reason.split()[4].rstrip(":") for reason in missing} == repositories
    told = f"the package {package} is not installed, it is not in the Hub cache"
    assert all(told in reason if package else "not installed" not in reason for reason in missing)
    replaced = [rule.becomes for rule in flash_rules(name) if rule.level == "fallback"]
    assert replaced == {FA2: [HUB_FA3, HUB_FA2], FA3: [HUB_FA3, HUB_FA3], HUB_FA2: [HUB_FA3]}.get(name, [])
