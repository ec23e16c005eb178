"""The attention axis: its rules held against transformers, its proof against every implementation that runs here."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
import transformers
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, CompileConfig
from transformers.models.auto.configuration_auto import model_type_to_module_name
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from backend.hardware import Gpu, Machine
from backend.models import ModelFacts
from backend.optimizations import Seen, Subject
from backend.optimizations.attention import AXIS
from backend.optimizations.attention_flash import FA2, FA3, FA4, HUB_FA2, HUB_FA3, HUB_FA4, taken
from backend.optimizations.attention_support import NO_FLASH, NO_FLEX, NO_SDPA
from backend.optimizations.base import Trace
from backend.plan import CacheKind, LoadPlan, ModelSource, Plan
from backend.records import Level
from backend.script import Script
from backend.worker import attention
from tests.facts import CPU, GIB, GPU_PACKAGES, H200, facts
from tests.tiny import CONFIGS, build, tiny

PLAN = Plan(LoadPlan(ModelSource("random")))
FLASH = (FA2, FA3, FA4, HUB_FA2, HUB_FA3)
BARE = replace(H200, packages=tuple((n, v) for n, v in GPU_PACKAGES.items() if not n.startswith("flash")))
OFFLINE = replace(BARE, hub_offline=True)


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    attention.register()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def gpu(major: int, minor: int, machine: Machine = BARE) -> Machine:
    return replace(machine, gpus=(Gpu(0, "a GPU", 80 * GIB, 79 * GIB, (major, minor)),))


def verdicts(name: str, model: ModelFacts | None = None, machine: Machine = CPU, **choices: str) -> dict[Level, str]:
    """Level -> the reasons given for a choice, for a model without sinks unless one is named."""
    every = {"cache": "dynamic", "compile": "off", "dtype": "auto", "attention": name} | choices
    found: dict[Level, str] = {}
    for verdict in AXIS.verdicts(name, Subject(model or facts("random:Qwen3-0.6B"), machine, every)):
        found[verdict.level] = " ".join([found.get(verdict.level, ""), verdict.reason, verdict.becomes])
    return found


# --- what transformers supports -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flag", "names"),
    [("_supports_sdpa", NO_SDPA), ("_supports_flash_attn", NO_FLASH), ("_supports_flex_attn", NO_FLEX)],
)
def test_the_tables_are_what_the_classes_of_transformers_say(flag: str, names: frozenset[str]) -> None:
    folder = Path(transformers.__file__).parent / "models"
    without = set()
    for architecture in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        module = model_type_to_module_name(architecture)
        source = folder / module / f"modeling_{module}.py"
        if source.is_file() and "True" not in re.findall(rf"^    {flag}\s*=\s*(\w+)", source.read_text(), re.MULTILINE):
            without.add(architecture)
    assert names == without


@pytest.mark.parametrize("architecture", [*CONFIGS, "gemma2"])
def test_auto_is_what_transformers_takes_by_itself(architecture: str) -> None:
    if architecture == "gemma2":
        config = AutoConfig.for_model("gemma2", **CONFIGS["llama"])
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
    else:
        model = tiny(architecture)
    known = replace(facts("random:Qwen3-0.6B"), architecture=architecture, sinks=architecture == "gpt_oss")
    assert AXIS.resolve("auto", Subject(known, CPU, {})) == model.config._attn_implementation


def refused(architecture: str, name: str) -> str:
    """What transformers says when a tiny model is made with this attention; "" if nothing."""
    try:
        config = AutoConfig.for_model(architecture, **CONFIGS[architecture])
        AutoModelForCausalLM.from_config(config, attn_implementation=name)
    except (ValueError, ImportError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


REFUSALS = [
    ("gpt_oss", "sdpa", "random:gpt-oss-20b", "does not support"),
    ("gpt_oss", "sdpa-gqa", "random:gpt-oss-20b", "does not support"),
    ("gpt2", "flex_attention", "random:gpt2", "does not support"),
    ("llama", FA2, "random:Qwen3-0.6B", "doesn't seem to be installed"),
    ("llama", FA3, "random:Qwen3-0.6B", "doesn't seem to be installed"),
    ("llama", FA4, "random:Qwen3-0.6B", "doesn't seem to be installed"),
    ("llama", HUB_FA2, "random:Qwen3-0.6B", "offline"),
    ("llama", HUB_FA3, "random:Qwen3-0.6B", "offline"),
]


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(("architecture", "name", "model", "words"), REFUSALS, ids=[f"{r[0]}-{r[1]}" for r in REFUSALS])
def test_what_the_rules_do_not_let_through_is_refused_by_transformers(
    architecture: str, name: str, model: str, words: str
) -> None:
    assert words in refused(architecture, name)
    assert {"blocked", "fallback"} & set(verdicts(name, facts(model)))


ALLOWED = [
    (architecture, name)
    for architecture in CONFIGS
    for name in ("eager", "sdpa", "sdpa-gqa", "flex_attention")
    if (architecture, name) not in {(r[0], r[1]) for r in REFUSALS}
    and (architecture, name) != ("gpt_oss", "flex_attention")
]


@pytest.mark.parametrize(("architecture", "name"), ALLOWED)
def test_what_the_rules_let_through_is_not_refused(architecture: str, name: str) -> None:
    assert refused(architecture, name) == ""
    known = replace(facts("random:Qwen3-0.6B"), architecture=architecture)
    assert "blocked" not in verdicts(name, known)


@pytest.mark.slow  # the mask is compiled
@pytest.mark.filterwarnings("ignore")  # torch's own, of what transformers asks of it
def test_sinks_on_a_cpu_are_too_much_for_flex_attention() -> None:
    model = build("gpt_oss", "flex_attention")
    with pytest.raises(ValueError, match="sinks cannot be run on CPU"):
        model(torch.tensor([[5, 6, 7]]))
    assert "sinks" in verdicts("flex_attention", facts())["blocked"]
    assert "blocked" not in verdicts("flex_attention", facts(), H200)


@pytest.mark.slow  # the mask is compiled
@pytest.mark.filterwarnings("ignore")  # torch's own, of what transformers asks of it
def test_generate_with_a_static_cache_is_too_much_for_flex_attention() -> None:
    model = build("llama", "flex_attention")
    with pytest.raises(AttributeError, match="'BlockMask' object has no attribute 'contiguous'"):
        model.generate(
            torch.tensor([[5, 6, 7]]), max_new_tokens=4, cache_implementation="static", disable_compile=True,
            attention_mask=torch.ones(1, 3, dtype=torch.long),
        )  # fmt: skip
    assert "BlockMask" in verdicts("flex_attention", cache="static")["blocked"]
    assert "BlockMask" in verdicts("flex_attention", cache="offloaded_static")["blocked"]
    growing = [kind for kind in get_args(CacheKind) if "static" not in kind]
    assert not any("blocked" in verdicts("flex_attention", cache=kind) for kind in growing)


@pytest.mark.slow
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
    assert "graphs" in verdicts(name, machine=H200, cache="static", compile="default")["note"]
    old = replace(facts("random:Qwen3-0.6B"), architecture="bloom")
    assert "no FlashAttention" in verdicts(name, old, H200)["blocked"]


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
        verdicts("sdpa", machine=gpu(8, 0)), verdicts("sdpa", machine=gpu(9, 0), dtype="float32"),
        verdicts("sdpa", machine=gpu(9, 0), cache="static"), verdicts("sdpa"), verdicts("auto", machine=gpu(9, 0)),
        verdicts("sdpa", facts("random:bert-base-uncased"), gpu(9, 0)),
    ):  # fmt: skip
        assert "cuDNN" not in str(quiet)


def test_it_says_where_it_pays() -> None:
    assert "static cache" in verdicts("sdpa-gqa")["note"]
    assert verdicts("sdpa-gqa", cache="static") == {}


# --- the proof ------------------------------------------------------------------------------------


def claims(model: Any) -> set[str]:
    return {choice.name for choice in AXIS.choices if AXIS.verify(choice.name, Seen(model, None, PLAN))}


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
    finding = AXIS.find(Seen(tiny("gpt_oss"), None, PLAN))
    assert (finding.effective, "8 x softmax" in finding.proof) == (
        "eager",
        True,
    )  # 4 layers, 2 passes; routers left out


TRACES = [
    (
        ["void pytorch_flash::flash_fwd_splitkv_kernel<X<1>, true>(Y)"],
        "sdpa: flash (1 x pytorch_flash::flash_fwd_splitkv",
    ),
    (["fmha_cutlassF_bf16_aligned_64x64_rf_sm80(P)"], "sdpa: memory-efficient (1 x fmha_cutlassF_bf16"),
    (["cudnn_generated_fort_native_sdpa_sm90_flash_fprop"], "sdpa: cuDNN"),
    (["void flash::flash_fwd_kernel<Z>(Q)"], "flash (1 x flash::flash_fwd_kernel"),
    (["triton_tem_fused_flex_attention_0"], "flex (1 x triton_tem_fused_flex_attention_0"),
    (["triton_red_fused_mul_sum_4"], "nothing of attention to be seen in compiled code"),
]


@pytest.mark.parametrize(("kernels", "words"), TRACES)
def test_the_proof_names_which_kernels_ran(kernels: list[str], words: str) -> None:
    trace = Trace(Counter(), Counter(kernels), Counter(), 4)
    proof = AXIS.find(Seen(tiny("llama"), None, PLAN, trace=lambda: trace)).proof
    assert f"4 tokens traced: {words}" in proof


def test_on_a_cpu_the_proof_names_the_operator_of_the_run() -> None:
    from backend.worker.trace import trace

    model = tiny("llama", "sdpa")

    def make() -> int:
        model(torch.tensor([[5, 6, 7]]))
        return 1

    proof = AXIS.find(Seen(model, None, PLAN, trace=lambda: trace(make, False))).proof
    assert "sdpa: flash (4 x aten::_scaled_dot_product_flash_attention_for_cpu)" in proof


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.parametrize("name", ["eager", "sdpa", "sdpa-gqa"])
def test_a_compiled_step_does_not_hide_it(name: str) -> None:
    torch._dynamo.reset()
    model = build("llama", name)
    settings = CompileConfig(mode="default")
    settings._compile_all_devices = True
    ids = torch.tensor([[5, 6, 7, 8]])
    kwargs: dict[str, Any] = {"attention_mask": torch.ones_like(ids), "max_new_tokens": 12, "do_sample": False}
    compiled = model.generate(ids, cache_implementation="static", compile_config=settings, **kwargs)
    assert claims(model) == {name}
    assert torch.equal(compiled, tiny("llama", "eager").generate(ids, **kwargs))


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
        inside = tmp_path / name / "build" / "torch-cpu"
        inside.mkdir(parents=True)
        identity = f"{name.replace('-', '_')}_{abs(hash(str(tmp_path)))}"
        metadata = {"id": identity, "name": name, "version": 1, "license": "Apache-2.0", "python-depends": [],
                    "backend": {"type": "cpu"}}  # fmt: skip
        (inside / "metadata.json").write_text(json.dumps(metadata))
        (inside / "__init__.py").write_text(FLASH_CODE)
        folders.append(f"{repo}={tmp_path / name}")
    monkeypatch.setenv("LOCAL_KERNELS", ":".join(folders))
    monkeypatch.setattr(utils, "_loaded_implementation", None)


TAKEN = [
    ("llama", HUB_FA2, HUB_FA2),
    ("llama", FA2, HUB_FA2),
    ("mistral", HUB_FA3, HUB_FA3),
    ("mistral", FA3, HUB_FA3),
    ("gpt_oss", HUB_FA3, HUB_FA3),
    ("gpt_oss", HUB_FA2, HUB_FA3),
    ("gpt_oss", FA2, HUB_FA3),
    ("gpt_oss", FA3, HUB_FA3),
]


@pytest.mark.usefixtures("offline", "flash")
@pytest.mark.parametrize(("architecture", "asked", "wanted"), TAKEN)
def test_the_rules_know_which_kernel_is_taken_and_the_proof_finds_it(
    architecture: str, asked: str, wanted: str
) -> None:
    """Really asked of transformers, offline, with both kernels in folders; the text is that of eager attention."""
    known = replace(facts("random:Qwen3-0.6B"), architecture=architecture, sinks=architecture == "gpt_oss")
    machine = replace(OFFLINE, hub_kernels=(HUB_FA2, HUB_FA3))
    assert taken(asked, Subject(known, machine, {})) == wanted
    assert ("fallback" in verdicts(asked, known, machine)) is (asked != wanted)
    model = build(architecture, asked)
    assert claims(model) == {wanted}
    ids = torch.arange(5, 17)[None].repeat(2, 1)
    mask = torch.ones_like(ids)
    mask[0, :3] = 0
    kwargs: dict[str, Any] = {"attention_mask": mask, "max_new_tokens": 16, "do_sample": False}
    assert torch.equal(model.generate(ids, **kwargs), tiny(architecture, "eager").generate(ids, **kwargs))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.usefixtures("offline", "flash")
def test_flash_kernels_break_the_compiled_graph_as_the_rule_says() -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    settings = CompileConfig(mode="default")
    settings._compile_all_devices = True
    ids = torch.tensor([[5, 6, 7, 8]])
    kwargs: dict[str, Any] = {"attention_mask": torch.ones_like(ids), "max_new_tokens": 12, "do_sample": False}
    model = build("llama", HUB_FA3)
    compiled = model.generate(ids, cache_implementation="static", compile_config=settings, **kwargs)
    assert torch.equal(compiled, tiny("llama", "eager").generate(ids, **kwargs))
    assert sum(torch._dynamo.utils.counters["graph_break"].values()) > 0
    assert claims(model) == {HUB_FA3}


# --- the script -----------------------------------------------------------------------------------


@pytest.fixture
def script() -> Iterator[Script]:
    yield Script()


def planned(name: str | None) -> Plan:
    return Plan(LoadPlan(ModelSource("random"), attention=name))


def test_a_script_names_the_implementation(script: Script) -> None:
    AXIS.write(script, planned("eager"))
    assert (script.load, script.functions) == ({"attn_implementation": "'eager'"}, [])


def test_a_script_carries_the_workers_own_function_with_it(script: Script) -> None:
    AXIS.write(script, planned("sdpa-gqa"))
    lines = [*script.imports, "import torch", *script.functions, *script.prepare]
    made: dict[str, Any] = {}
    exec("\n\n".join(lines), made)
    q, k = torch.randn(1, 4, 1, 8), torch.randn(1, 2, 5, 8)
    mask = torch.tensor([True, True, False, True, True]).view(1, 1, 1, 5)
    theirs, ours = (f["grouped_attention"](None, q, k, k, mask)[0] for f in (made, vars(attention)))
    assert torch.equal(theirs, ours)
