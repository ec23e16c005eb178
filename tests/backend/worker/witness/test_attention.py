"""The proof of attention: right for what is on, and not deceived by settings."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

from tests.backend.worker.patch.test_kernels import package
from tests.support.attention import ALLOWED, OFFLINE, offline, registered, verdicts  # noqa: F401
from tests.support.counted_models import COUNTED
from tests.support.machines import facts
from tests.support.proof import claimed
from tests.support.tiny_models import build, tiny
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import subject_of
from tokendyno.backend.optimizations.axes.attention import FA2, HUB_FA2, HUB_FA3, Attention, taken
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.worker.prove.observation import Observation, compiled_calls
from tokendyno.backend.worker.prove.profile import REGION, Trace
from tokendyno.backend.worker.witness import attention, find
from tokendyno.backend.worker.witness.attention import (
    attending_layers,
    traced_calls,
)

PLAN = Plan(LoadPlan(ModelSource("random")))


# --- the proof ------------------------------------------------------------------------------------


def claims(model: Any) -> set[str]:
    return claimed(Attention(), Observation(model, None, PLAN))


@pytest.mark.parametrize(("architecture", "name"), ALLOWED)
def test_each_is_found_where_it_is_and_nothing_else_is(architecture: str, name: str) -> None:
    model = build(architecture, name)
    same = {"sdpa-gqa": "sdpa"} if model.config.num_attention_heads == kv_heads(model) else {}
    assert claims(model) == {same.get(name, name)}


def kv_heads(model: Any) -> int:
    return int(getattr(model.config, "num_key_value_heads", model.config.num_attention_heads))


@pytest.mark.parametrize("name", ["eager", "sdpa", "flex_attention"])
def test_an_encoder_is_watched_in_one_pass(name: str) -> None:
    config = AutoConfig.for_model(
        "bert", hidden_size=32, num_hidden_layers=2, num_attention_heads=2, vocab_size=30, intermediate_size=32
    )
    assert claims(AutoModel.from_config(config, attn_implementation=name).eval()) == {name}


def test_a_switch_behind_the_plans_back_is_found_out_and_watching_leaves_nothing_behind() -> None:
    model = build("llama", "sdpa-gqa")
    plain = torch.nn.functional.scaled_dot_product_attention, torch.nn.functional.softmax
    for name in ("sdpa", "eager", "sdpa-gqa", "flex_attention", "sdpa"):
        model.set_attn_implementation(name)
        assert claims(model) == {name}
    assert plain == (torch.nn.functional.scaled_dot_product_attention, torch.nn.functional.softmax)


def test_the_experts_softmax_is_not_taken_for_attention() -> None:
    finding = find("attention", Observation(tiny("gpt_oss"), None, PLAN))
    assert (finding.effective, "2 x softmax" in finding.proof) == (
        "eager",
        True,
    )  # 4 layers, 2 passes; routers left out


TRACES = [
    (
        ["void pytorch_flash::flash_fwd_splitkv_kernel<X<1>, true>(Y)"],
        "sdpa: flash (1 x pytorch_flash::flash_fwd_splitkv",
    ),
    (["fmha_cutlassF_bf16(P)", "cunn_SoftMaxForward<4>"], "sdpa: memory-efficient (1 x fmha_cutlassF_bf16)"),
    (["cunn_SoftMaxForward<4>"], "softmax (1 x cunn_SoftMaxForward)"),
    (["cudnn_generated_fort_native_sdpa_sm90_flash_fprop"], "sdpa: cuDNN"),
    (["void flash::flash_fwd_kernel<Z>(Q)"], "flash (1 x flash::flash_fwd_kernel"),
    (["triton_tem_fused_flex_attention_0"], "flex (1 x triton_tem_fused_flex_attention_0"),
    (["triton_red_fused_mul_sum_4"], "no attention kernel visible in compiled code"),
]


@pytest.mark.parametrize(("kernels", "words"), TRACES)
def test_the_proof_names_which_kernels_ran(kernels: list[str], words: str) -> None:
    trace = Trace(Counter(), Counter(kernels), Counter(), 4)
    proof = find("attention", Observation(tiny("llama"), None, PLAN, trace=lambda: trace)).proof
    assert f"4 tokens traced: {words}" in proof and ("softmax (" in proof) is words.startswith("softmax")


def test_on_a_cpu_the_proof_names_the_operator_of_the_run() -> None:
    from tokendyno.backend.worker.prove.profile import trace

    model = tiny("llama", "sdpa")

    def make() -> int:
        model(torch.tensor([[5, 6, 7]]))
        return 1

    proof = find("attention", Observation(model, None, PLAN, trace=lambda: trace(make, False))).proof
    assert "sdpa: flash (4 x aten::_scaled_dot_product_flash_attention_for_cpu)" in proof


# --- flash kernels, loaded as the Hub's and computed in torch ---------------------------------------

FLASH_CODE = """
import torch

def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, softmax_scale=None,
                           causal=False, window_size=(-1, -1), s_aux=None):
    more = (softmax_scale, causal, window_size, s_aux)
    return torch.cat([
        one(q[a:b], k[c:d], v[c:d], *more)
        for a, b, c, d in zip(cu_seqlens_q, cu_seqlens_q[1:], cu_seqlens_k, cu_seqlens_k[1:])
    ])

def flash_attn_func(q, k, v, softmax_scale=None, causal=False, window_size=(-1, -1), s_aux=None):
    more = (softmax_scale, causal, window_size, s_aux)
    return torch.stack([one(*row, *more) for row in zip(q, k, v)])

def one(q, k, v, scale, causal, window, sinks):
    k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], 1) for t in (k, v))
    scores = torch.einsum("qhd,thd->hqt", q, k) * scale
    behind = torch.arange(len(q))[:, None] + len(k) - len(q) - torch.arange(len(k))
    seen = behind >= 0 if causal else behind < len(k)
    if window[0] >= 0:
        seen = seen & (behind <= window[0])
    scores = scores.masked_fill(~seen, float("-inf"))
    if sinks is not None:
        scores = torch.cat([scores, sinks[:, None, None].expand(-1, len(q), 1)], -1)
    return torch.einsum("hqt,thd->qhd", scores.softmax(-1)[..., : len(k)], v)
"""


@pytest.fixture
def flash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two kernels of the Hub as folders that LOCAL_KERNELS names, for CPUs."""
    import transformers.modeling_flash_attention_utils as utils

    folders = []
    for repo in (HUB_FA2, HUB_FA3):
        name = repo.partition("/")[2]
        inside = package(tmp_path / name, name, "") / "build" / "torch-cpu"
        (inside / "__init__.py").write_text(FLASH_CODE)
        folders.append(f"{repo}={tmp_path / name}")
    monkeypatch.setenv("LOCAL_KERNELS", ":".join(folders))
    monkeypatch.setattr(utils, "_loaded_implementation", None)


TAKEN = [
    ("llama", HUB_FA2, HUB_FA2),
    ("mistral", HUB_FA3, HUB_FA3),
    ("gpt_oss", HUB_FA3, HUB_FA3),
    ("gpt_oss", HUB_FA2, HUB_FA3),
]


@pytest.mark.usefixtures("offline", "flash")
@pytest.mark.parametrize(("architecture", "asked", "wanted"), TAKEN)
def test_the_rules_know_which_kernel_is_taken_and_the_proof_finds_it(
    architecture: str, asked: str, wanted: str
) -> None:
    """Really asked of transformers, offline, with both kernels in folders; the text is that of eager attention."""
    known = replace(facts("random:Qwen3-0.6B"), architecture=architecture, sinks=architecture == "gpt_oss")
    machine = replace(OFFLINE, hub_kernels=(HUB_FA2, HUB_FA3))
    assert taken(asked, subject_of(known, machine, {})) == wanted
    assert ("fallback" in verdicts(asked, known, machine)) is (asked != wanted)
    model = build(architecture, asked)
    assert claims(model) == {wanted}
    ids = torch.arange(5, 17)[None].repeat(2, 1)
    mask = torch.ones_like(ids)
    mask[0, :3] = 0
    kwargs: dict[str, Any] = {"attention_mask": mask, "max_new_tokens": 16, "do_sample": False}
    assert torch.equal(model.generate(ids, **kwargs), tiny(architecture, "eager").generate(ids, **kwargs))


LAYERS, STEPS = 4, 4
SDPA, SOFTMAX = "aten::scaled_dot_product_attention", "aten::softmax"
PROMPT, NEW = ((1, 4, 5, 8), (1, 2, 5, 8)), ((1, 4, 1, 8), (1, 2, 9, 8))
COPIED = ((1, 4, 1, 8), (1, 4, 9, 8))
SCORES, GROUPED, ROUTER = ((1, 4, 1, 9),), ((1, 2, 2, 9),), ((1, 4),)


def trace(shapes: dict[Any, int], runtime: str = "", **ops: int) -> Trace:
    named = Counter({f"aten::{name}": n for name, n in ops.items()})
    return Trace(named, Counter(), Counter({runtime: 3} if runtime else {}), STEPS, shapes=Counter(shapes))


def witnessed(monkeypatch: pytest.MonkeyPatch, probed: str, profile: Trace) -> Any:
    """The finding where the short pass says `probed`."""
    monkeypatch.setattr(attention, "effective_choice", lambda seen: probed)
    return find("attention", Observation(tiny("llama"), None, Plan(LoadPlan(ModelSource("random"))), lambda: profile))


def test_softmax_is_of_attention_by_its_dimensions_and_grouped_by_its_heads() -> None:
    profile = trace({(SOFTMAX, SCORES): 3, (SOFTMAX, GROUPED): 2, (SOFTMAX, ROUTER): 7})
    counted = traced_calls(profile, 4, 2)
    assert (counted.eager, counted.grouped) == (3, 2)
    assert traced_calls(profile, 4, 4).eager == 5


def test_texts_and_heads_in_one_dimension_count_where_no_function_of_attention_is_called() -> None:
    profile = trace({("aten::softmax", ((16, 5, 5),)): 3, ("aten::softmax", ((6, 5, 5),)): 2})
    assert traced_calls(profile, 8, 8, inline=True).eager == 3 and traced_calls(profile, 8, 8).eager == 0


def test_the_softmax_inside_of_sdpa_is_not_eager_attention() -> None:
    profile = trace({(SDPA, NEW): 4, (SOFTMAX, SCORES): 4}, _scaled_dot_product_attention_math=4)
    counted = traced_calls(profile, 4, 2)
    assert (counted.sdpa, counted.eager) == (4, 0)


FULL = LAYERS * STEPS
CASES = [
    ("sdpa", {(SDPA, NEW): FULL - 1, (SOFTMAX, SCORES): 1}, "", ("sdpa", FULL - 1, FULL)),
    ("sdpa", {(SOFTMAX, SCORES): FULL}, "", ("eager", FULL, FULL)),
    ("sdpa", {(SDPA, PROMPT): LAYERS - 1}, "cudaGraphLaunch", ("sdpa", LAYERS - 1, LAYERS)),
    ("sdpa", {}, "cudaGraphLaunch", ("sdpa", None, None)),
    ("sdpa", {}, "", ("sdpa", 0, FULL)),
    ("sdpa-gqa", {(SDPA, PROMPT): LAYERS, (SOFTMAX, GROUPED): FULL - LAYERS}, "", ("sdpa-gqa", FULL, FULL)),
    ("sdpa-gqa", {(SDPA, NEW): FULL - 2, (SDPA, COPIED): 2}, "", ("sdpa-gqa", FULL - 2, FULL)),
    (FA2, {}, "", (FA2, None, None)),
    (HUB_FA3, {}, "cudaGraphLaunch", (HUB_FA3, None, None)),
    (FA2, {(SDPA, NEW): FULL // 2}, "", (FA2, FULL // 2, FULL)),
    (FA2, {(SOFTMAX, SCORES): FULL}, "", (FA2, 0, FULL)),
]


@pytest.mark.parametrize(("probed", "shapes", "runtime", "wanted"), CASES)
def test_every_layer_of_every_visible_pass_is_counted(
    probed: str, shapes: dict[Any, int], runtime: str, wanted: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a trace cannot show is not counted, and no reason to doubt."""
    finding = witnessed(monkeypatch, probed, trace(shapes, runtime))
    assert (finding.effective, finding.reached, finding.expected) == wanted


FORWARD = "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloop>>>"
COMBINE = "void cutlass::device_kernel<flash::enable_sm80_to_sm89<flash::FlashAttnFwdCombine<cute::tuple<>>>>"
BESIDE = {COMBINE: FULL, "flash::prepare_varlen_num_blocks_kernel(int)": FULL}
FLASH_CASES = [
    (FORWARD, FULL, {}, (FULL, FULL)),
    (FORWARD, FULL - 2, {(SDPA, NEW): 2}, (FULL - 2, FULL)),
    (FORWARD, FULL + 9, {}, (FULL, FULL)),
    ("void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<64>>", FULL - 3, {}, (FULL - 3, FULL)),
    ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64>>", FULL, {(SDPA, NEW): FULL}, (0, FULL)),
]
"""Names of kernels as an H200 shows them (FlashAttention 3 of vLLM 0.33)."""


@pytest.mark.parametrize(("kernel", "n", "shapes", "wanted"), FLASH_CASES)
@pytest.mark.parametrize("runtime", ["", "cudaGraphLaunch"])
def test_flash_is_counted_by_the_kernel_that_computes_it_in_replays_too(
    kernel: str, n: int, shapes: dict[Any, int], wanted: tuple[int, int], runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = trace(shapes, runtime)
    profile.kernels.update({kernel: n} | BESIDE)
    finding = witnessed(monkeypatch, HUB_FA3, profile)
    assert (finding.effective, finding.reached, finding.expected) == (HUB_FA3, *wanted)


def test_what_cannot_be_seen_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "replayed CUDA graphs" in witnessed(monkeypatch, "sdpa", trace({}, "cudaGraphLaunch")).proof
    assert "cannot be counted" not in witnessed(monkeypatch, "sdpa", trace({(SDPA, NEW): FULL})).proof


def test_layers_that_read_the_keys_of_another_one_attend_too() -> None:
    config = AutoConfig.for_model(**COUNTED["shared layers"])
    model = AutoModelForCausalLM.from_config(config).eval()
    cache = model(input_ids=torch.tensor([[1, 2, 3]])).past_key_values
    assert len(cache.layers) == 2
    assert attending_layers(Observation(model, cache, Plan(LoadPlan(ModelSource("random"))))) == 4


def test_kv_heads_count_as_repeated_for_a_single_new_token_only() -> None:
    """Of a prompt transformers repeats them where there is a mask, in whatever implementation."""
    long = ((1, 4, 5, 8), (1, 4, 5, 8))
    profile = trace({(SDPA, long): 4, (SDPA, COPIED): 3, (SDPA, NEW): 2, (SDPA, ((4, 5, 1), (4, 4, 1))): 1})
    assert traced_calls(profile, 4, 2).repeated == 3
    assert traced_calls(profile, 4, 4).repeated == 0


@pytest.mark.parametrize("name", [FA2, HUB_FA3])
def test_without_a_trace_each_layer_should_have_called_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    none = replace(trace({(SOFTMAX, SCORES): 1}), steps=0)
    finding = witnessed(monkeypatch, name, none)
    assert (finding.reached, finding.expected) == (LAYERS - 1, LAYERS) and "no trace" in finding.proof


def test_graphs_of_flex_attention_are_its_calls_and_other_graphs_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [
        SimpleNamespace(compile_id="0/0", co_name="flex_attention", co_filename="flex_attention.py"),
        SimpleNamespace(compile_id="1/0", co_name="forward", co_filename="modeling_llama.py"),
    ]
    monkeypatch.setattr("torch._dynamo.utils.get_compilation_metrics", lambda: known)
    profile = Trace(Counter({f"{REGION}0/0": 12, f"{REGION}1/0": 5}), Counter(), Counter(), STEPS)
    calls = traced_calls(profile, 4, 2).by_choice("flex_attention")
    assert calls["flex_attention"] == 12 and compiled_calls(profile) == {"1/0": 5}
    assert calls[FA2] == 0
