"""The proof of attention: right for what is on, and not deceived by settings."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModel

from tests.backend.worker.patch.test_kernels import package
from tests.support.attention import ALLOWED, OFFLINE, verdicts
from tests.support.machines import facts
from tests.support.proof import claimed
from tests.support.tiny_models import build, tiny
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import subject_of
from tokendyno.backend.optimizations.axes.attention import AXIS, HUB_FA2, HUB_FA3, taken
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.prove.profile import Trace
from tokendyno.backend.worker.witness import find
from tokendyno.backend.worker.witness.attention import ProbedCall, is_grouped, probed_calls

PLAN = Plan(LoadPlan(ModelSource("random")))


# --- the proof ------------------------------------------------------------------------------------


def claims(model: Any) -> set[str]:
    return claimed(AXIS, Observation(model, None, PLAN))


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
    assert {len(call.queries) for call in probed_calls(tiny("gpt_oss"))} == {4}, "batch, heads, queries, keys"
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


@pytest.mark.parametrize(
    ("call", "heads", "grouped"),
    [
        (ProbedCall("softmax", (2, 2, 2, 7)), 4, True),  # (B, KV heads, group, S)
        (ProbedCall("softmax", (2, 4, 1, 7)), 4, False),  # a single new token, every head
        (ProbedCall("sdpa", (2, 4, 1, 8), (2, 2, 7, 8), gqa=True), 4, True),
        (ProbedCall("sdpa", (2, 4, 1, 8), (2, 4, 7, 8), gqa=True), 4, False),
        (ProbedCall("sdpa", (2, 4, 1, 8), (2, 2, 7, 8)), 4, False),
    ],
)
def test_grouped_heads_are_told_by_the_shapes_of_a_call(call: ProbedCall, heads: int, grouped: bool) -> None:
    assert is_grouped(call, ProbedCall("sdpa", (2, heads, 7, 8), (2, 2, 7, 8))) is grouped
