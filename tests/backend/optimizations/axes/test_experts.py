"""The experts axis: each way found by the operators it leaves, each rule held against transformers."""

import functools
import importlib
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import AutoConfig
from transformers.activations import GELUTanh, ReLUSquaredActivation, SiLUActivation
from transformers.integrations import moe

from tests.support.machines import CPU, H200, facts
from tests.support.proof import claimed
from tests.support.tiny_models import build, tiny
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import routed, subject_of
from tokendyno.backend.optimizations.axes.experts import Experts
from tokendyno.backend.optimizations.whole_layers import PUBLISHED
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.worker.patch.experts import GROUPED, set_experts
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.prove.profile import ShapedCall, Trace, trace
from tokendyno.backend.worker.witness import find

WAYS = ("eager", "grouped_mm", "batched_mm")
TOKENS = 4


def generate(model: Any, tokens: int = TOKENS, **keywords: Any) -> torch.Tensor:
    ids = torch.tensor([[5, 6, 7, 8, 9]])
    with torch.inference_mode():
        out: torch.Tensor = model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, do_sample=False, **keywords
        )
    return out


def seen(model: Any, planned: str | None = None, **keywords: Any) -> Observation:
    def make() -> int:
        generate(model, **keywords)
        return TOKENS

    once = functools.cache(lambda: trace(make, False))
    return Observation(model, None, Plan(LoadPlan(ModelSource("random"), experts=planned)), trace=once)


def claims(observation: Observation) -> set[str]:
    return claimed(Experts(), observation)


def said(name: str, model: Any, machine: Any = CPU, **choices: str) -> dict[str, str]:
    every = {"compile": "off", "experts": name, "dtype": "auto"} | choices
    return {v.level: v.reason for v in Experts().verdicts(name, subject_of(model, machine, every))}


@pytest.mark.parametrize(("way", "cache"), [("eager", "static"), ("grouped_mm", "dynamic"), ("batched_mm", "static")])
def test_each_way_is_found_by_its_operators(way: str, cache: str) -> None:
    model = build("gpt_oss")
    set_experts(model, way)
    assert claims(seen(model, cache_implementation=cache)) == {way}


def test_a_switch_behind_the_plans_back_is_found_out() -> None:
    model = build("gpt_oss")
    set_experts(model, "eager")
    assert claims(seen(model, "grouped_mm")) == {"eager"}


def test_the_text_is_the_same_in_every_way() -> None:
    texts = []
    for way in WAYS:
        model = build("gpt_oss")
        set_experts(model, way)
        texts.append(generate(model, 24)[0].tolist())
    assert texts[0] == texts[1] == texts[2]
    assert len(set(texts[0])) > 5, "a text that says nothing"


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_without_experts_there_is_nothing_to_find(architecture: str) -> None:
    finding = find("experts", seen(tiny(architecture)))
    assert (finding.effective, finding.proof) == ("auto", "no module holds experts whose implementation can be chosen")


def test_on_a_cpu_auto_is_grouped_mm_throughout() -> None:
    assert Experts().resolve("auto", subject_of(facts(), CPU, {})) == "grouped_mm"
    assert claims(seen(build("gpt_oss"))) == {"grouped_mm"}


LAYERS = 4


ALL = LAYERS * TOKENS
MM, COPY, LOOP = "aten::_grouped_mm", "aten::index", "aten::one_hot"
HEADS = "aten::repeat_interleave"  # in eager attention of torch on a GPU
OURS = "tokendyno_experts_"
TILES = f"{OURS}tiles"
FALLBACK = "transformers::grouped_mm_fallback"
PROFILES = [
    ("cpu", {MM: 2 * ALL}, {}, False, ("grouped_mm", ALL, ALL)),
    ("cpu", {MM: 2 * LAYERS, FALLBACK: 2 * (ALL - LAYERS)}, {}, False, ("grouped_mm", ALL, ALL)),
    ("cpu", {COPY: ALL}, {}, False, ("batched_mm", ALL, ALL)),
    ("cuda", {LOOP: ALL, HEADS: 2 * ALL}, {}, False, ("eager", ALL, ALL)),
    ("cuda", {MM: 2 * LAYERS, COPY: ALL - LAYERS, HEADS: 2 * ALL}, {}, False, ("auto", ALL, ALL)),
    ("cpu", {LOOP: ALL // 2, MM: ALL}, {}, False, ("grouped_mm", ALL // 2, ALL)),
    ("cpu", {"aten::mm": 99}, {}, False, ("auto", 0, ALL)),
    ("cuda", {MM: 2 * LAYERS, COPY: ALL - LAYERS - 1}, {}, False, ("auto", ALL - 1, ALL)),
    ("cuda", {MM: 2 * LAYERS}, {"bmm_kernel": 99}, True, ("auto", LAYERS, LAYERS)),
    ("cuda", {MM: 2 * LAYERS}, {"Gemm<GroupProblemShape<X>>": 2 * ALL}, True, ("grouped_mm", LAYERS, LAYERS)),
    ("cuda", {LOOP: LAYERS - 1}, {}, True, ("eager", LAYERS - 1, LAYERS)),
    ("cuda", {}, {TILES: 2 * ALL}, False, ("triton", ALL, ALL)),
    (
        "cuda",
        {},
        {TILES: 2 * LAYERS, f"{OURS}up": ALL - LAYERS, f"{OURS}down": ALL - LAYERS},
        True,
        ("triton", ALL, ALL),
    ),
    ("cuda", {COPY: LAYERS}, {TILES: 2 * ALL - 2 * LAYERS}, False, ("triton", ALL - LAYERS, ALL)),
]


@pytest.mark.parametrize(("device", "ops", "kernels", "replayed", "wanted"), PROFILES)
def test_every_mixture_of_every_visible_pass_is_counted(
    device: Any, ops: dict[str, int], kernels: dict[str, int], replayed: bool, wanted: tuple[str, int, int]
) -> None:
    """As profiles on a GPU look, where `generate` swaps and graphs hide operators."""
    model = tiny("gpt_oss")
    experts = model.model.layers[0].mlp.experts
    copied = {tuple(weight.shape): ops.get(COPY, 0) for weight in (experts.gate_up_proj, experts.down_proj)}
    shapes: Counter[ShapedCall] = Counter({(COPY, (shape, ())): n for shape, n in copied.items()})
    graphs = Counter({"cudaGraphLaunch": 3} if replayed else {})
    made = Trace(Counter(ops), Counter(kernels), graphs, TOKENS, shapes=shapes)
    plan = Plan(LoadPlan(ModelSource("random"), device=device))
    finding = find("experts", Observation(model, None, plan, trace=lambda: made))
    assert (finding.effective, finding.reached, finding.expected) == wanted


# --- rules ----------------------------------------------------------------------------------------


def test_a_dense_model_has_nothing_to_choose_and_transformers_says_so_for_one_of_three() -> None:
    dense = facts("random:Qwen3-0.6B")
    assert not Experts().matters(dense) and Experts().matters(facts())
    model = build("llama")
    with pytest.raises(ValueError, match="does not support setting experts"):
        model.set_experts_implementation("grouped_mm")
    model.set_experts_implementation("batched_mm")  # taken without a word, and nothing comes of it
    for way in WAYS:
        assert "no experts" in said(way, dense)["fallback"]
        assert Experts().resolve(way, subject_of(dense, CPU, {})) == "auto"


@pytest.mark.parametrize("architecture", sorted(set(routed.ALIKE) - set(PUBLISHED)))
def test_what_our_kernels_take_for_alike_is_stored_and_computed_alike(architecture: str) -> None:
    """Gate above up, rows of outputs, SiLU or GELU, no biases, nothing after an expert, in transformers' own."""
    family = architecture.removesuffix("_text")
    names = vars(importlib.import_module(f"transformers.models.{family}.modeling_{family}"))
    (kind,) = (known for name, known in names.items() if name.endswith("Experts") and hasattr(known, "_apply_gate"))
    with torch.device("meta"):
        few = {"gemma4": {"num_experts": 4, "moe_intermediate_size": 32}, "dots1": {"n_routed_experts": 4}}
        name = "gemma4_text" if family == "gemma4" else architecture
        made = kind(AutoConfig.for_model(name, **few.get(family, {})))
    assert kind._apply_gate is moe._default_apply_gate
    silu = made.act_fn is torch.nn.functional.silu
    assert silu or isinstance(made.act_fn, (torch.nn.SiLU, SiLUActivation, GELUTanh))
    assert made.is_concatenated and made.has_gate
    assert not (made.is_transposed or made.has_bias or made.has_post_expert_norm)
    assert made.down_proj.shape[1:] == (made.gate_up_proj.shape[2], made.gate_up_proj.shape[1] // 2)


@pytest.mark.parametrize("architecture", routed.UNGATED)
def test_what_our_kernels_take_for_ungated_is_stored_and_computed_so(architecture: str) -> None:
    """Up alone, rows of outputs, the square of ReLU, no biases, nothing after an expert, in transformers' own."""
    names = vars(importlib.import_module(f"transformers.models.{architecture}.modeling_{architecture}"))
    (kind,) = (known for name, known in names.items() if name.endswith("Experts") and hasattr(known, "_apply_gate"))
    with torch.device("meta"):
        made = kind(AutoConfig.for_model(architecture))
    assert isinstance(made.act_fn, ReLUSquaredActivation) and not hasattr(made, "gate_up_proj")
    assert made.is_concatenated and not (made.has_gate or made.is_transposed or made.has_bias)
    assert not made.has_post_expert_norm
    assert made.down_proj.shape[1:] == made.up_proj.shape[1:][::-1]
    nano = facts("random:Nemotron-3-Nano-30B-A3B")
    assert "blocked" not in said("triton", nano, H200) and "blocked" in said("triton", nano, CPU)


def test_packed_experts_compute_by_themselves() -> None:
    packed = replace(facts("random:gpt-oss-20b"), quantization="mxfp4")
    for way in WAYS:
        assert "MXFP4" in said(way, packed, H200)["fallback"]
        assert "fallback" not in said(way, packed, CPU), "on a CPU they are unpacked"
        assert "fallback" not in said(way, packed, H200, quantization="mxfp4-dequantized")


def test_generate_swaps_grouped_mm_on_a_gpu_and_the_second_name_is_left_alone() -> None:
    """`_optimize_model_for_decode` looks at the device, so the swap itself needs one that is not a CPU."""
    model = build("gpt_oss").to("meta")
    before = model.get_experts_implementation()
    with model._optimize_model_for_decode():
        assert (before[""], model.get_experts_implementation()[""]) == ("grouped_mm", "batched_mm")
    set_experts(model, "grouped_mm")
    with model._optimize_model_for_decode():
        assert model.get_experts_implementation()[""] == GROUPED
    assert Experts().resolve("auto", subject_of(facts(), H200, {})) == "auto"
    assert Experts().resolve("auto", subject_of(facts(), H200, {"speculation": "off"})) == "auto"


def test_with_guesses_auto_is_grouped_mm_on_a_gpu_too() -> None:
    """`generate` leaves the experts alone there; seen on an H200, where the ledger's row was red before."""
    import inspect

    from transformers import GenerationMixin

    assert Experts().resolve("auto", subject_of(facts(), H200, {"speculation": "prompt-lookup"})) == "grouped_mm"
    assert "_optimize_model_for_decode" in inspect.getsource(GenerationMixin._sample)
    assert "_optimize_model_for_decode" not in inspect.getsource(GenerationMixin._assisted_decoding)


@pytest.mark.parametrize(("asked", "found"), [(None, "auto"), ("grouped_mm", "grouped_mm")])
def test_a_single_pass_on_a_gpu_is_grouped_for_auto_too(asked: str | None, found: str) -> None:
    model = tiny("gpt_oss")
    once = Trace(Counter({"aten::_grouped_mm": 2 * model.config.num_hidden_layers}), Counter(), Counter(), 1)
    plan = Plan(LoadPlan(ModelSource("random"), device="cuda", experts=asked))
    finding = find("experts", Observation(model, None, plan, lambda: once))
    assert (finding.effective, finding.reached) == (found, finding.expected)


UP, DOWN = (4, 32, 96), (4, 48, 32)


def rows(tokens: int, runtime: str = "", grouped: int = 2 * LAYERS * 2) -> Observation:
    """Two passes over 5 tokens, of which so many reached each of the two experts of a token."""
    shapes: Counter[ShapedCall] = Counter(
        {
            (MM, ((2 * tokens, 32), UP, (4,))): 2 * LAYERS,
            (MM, ((2 * tokens, 48), DOWN, (4,))): 2 * LAYERS,
            ("aten::embedding", ((97, 32), (1, 5), ())): 2,
        }
    )
    made = Trace(Counter({MM: grouped}), Counter(), Counter({runtime: 3} if runtime else {}), 2, shapes=shapes)
    return Observation(tiny("gpt_oss"), None, Plan(LoadPlan(ModelSource("random")), routed=2), lambda: made)


def test_rows_prove_nothing_where_no_way_of_computing_them_was_seen() -> None:
    hidden = find("experts", rows(2, "cudaGraphLaunch", grouped=0))
    assert (hidden.effective, hidden.reached, hidden.expected) == ("auto", 0, LAYERS)
    assert hidden.proof.endswith("; decode steps ran in replayed CUDA graphs")
    assert "decode steps" not in find("experts", rows(5)).proof
