"""The kernels axis: what is said before a run. Its proof is tested together with `backend/worker/patch/kernels.py`."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support.machines import H200, facts
from tests.support.scripts import preamble
from tests.support.tiny_models import build
from tokendyno.backend.hardware import Machine, kernel_packages
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.models.router import Router
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import subject_of
from tokendyno.backend.optimizations.axes.kernels import NO_NORMS, Kernels
from tokendyno.backend.plan import STATIC, GeneratePlan, LoadPlan, LoopKind, ParallelPlan, Plan
from tokendyno.backend.script.parts import Script

LLAMA, OSS = "random:Llama-3-8B", "random:gpt-oss-20b"


def said(name: str, model: str | ModelFacts, machine: Machine, **choices: str) -> dict[str, str]:
    """Level -> reasons."""
    known = facts(model) if isinstance(model, str) else model
    every = {"cache": "dynamic", "compile": "off", "kernels": name} | choices
    reasons: dict[str, str] = {}
    for verdict in Kernels().verdicts(name, subject_of(known, machine, every)):
        reasons[verdict.level] = " ".join([reasons.get(verdict.level, ""), verdict.reason])
    return reasons


@pytest.mark.parametrize("architecture", sorted(NO_NORMS))
def test_what_kernels_cannot_replace_is_not_offered_in_the_source(architecture: str) -> None:
    import inspect

    from transformers import MODEL_MAPPING, AutoConfig

    source = inspect.getsource(sys.modules[MODEL_MAPPING[type(AutoConfig.for_model(architecture))].__module__])
    assert 'use_kernel_forward_from_hub("RMSNorm")' not in source


OWN = {"cache": "static", "loop": "own"}


@pytest.mark.parametrize(
    ("model", "experts", "whole"), [(LLAMA, "auto", True), (OSS, "triton", True), (OSS, "grouped_mm", False)]
)
def test_whole_layers_run_where_kernels_compute_the_experts_too(model: str, experts: str, whole: bool) -> None:
    machine = replace(H200, kernel_layers=("DecoderLayer", "RMSNorm"))
    dense = {"quantization": "mxfp4-dequantized"} if model == OSS else {}
    reasons = said("local", model, machine, **OWN, projections="fused", experts=experts, **dense)
    assert ("whole decoder layers" in reasons.get("note", "")) is whole


@pytest.mark.parametrize(("head_dim", "heads", "whole"), [(128, 32, True), (96, 32, False), (128, 17 * 8, False)])
def test_layers_run_whole_where_the_kernel_of_attention_has_their_heads(head_dim: int, heads: int, whole: bool) -> None:
    """Phi-3-mini's have 96 numbers."""
    known = replace(facts(LLAMA), architecture="phi3", head_dim=head_dim, heads=heads)
    machine, choices = replace(H200, kernel_layers=("DecoderLayer",)), OWN
    assert ("whole decoder layers" in said("local", known, machine, **choices).get("note", "")) is whole


@pytest.mark.parametrize(
    ("model", "quantization", "head_dim", "whole"),
    [
        ("random:DeepSeek-V2-Lite", "none", 512, True),
        ("random:DeepSeek-V3", "none", 512, True),
        ("random:DeepSeek-V2-Lite", "torchao-int8", 512, False),
        ("random:DeepSeek-V2-Lite", "none", 576, False),
    ],
)
def test_layers_with_latents_run_whole_where_their_matrices_are_dense(
    model: str, quantization: str, head_dim: int, whole: bool
) -> None:
    """For any number of heads: all share the latents."""
    known = replace(facts(model), head_dim=head_dim)
    choices = OWN | {"projections": "fused", "experts": "triton", "quantization": quantization}
    machine = replace(H200, kernel_layers=("DecoderLayer",))
    assert ("whole decoder layers" in said("local", known, machine, **choices).get("note", "")) is whole


def test_a_router_that_no_kernel_of_whole_layers_knows_is_told() -> None:
    """That of DeepSeek-V2, not of its Lite."""
    known = replace(facts("random:DeepSeek-V2-Lite"), router=Router("group_limited_greedy", 8, 160))
    choices = OWN | {"projections": "fused", "experts": "triton"}
    machine = replace(H200, kernel_layers=("DecoderLayer",))
    told = said("local", known, machine, **choices)["note"]
    assert "No kernel knows" in told and "Decode steps run whole decoder layers" not in told
    assert "No kernel knows" not in said("local", known, machine, **(choices | {"projections": "separate"})).get(
        "note", ""
    )


def test_the_plan_names_the_folder_and_the_mode() -> None:
    bare = Plan(LoadPlan(ModelSource("random")))
    subject = subject_of(facts(LLAMA), H200, {"compile": "off"})
    compiled = subject_of(facts(LLAMA), H200, {"compile": "default"})
    local = Kernels().edit(bare, "local", subject).load
    assert (local.kernels, local.kernels_path, local.kernels_compiled) == ("local", H200.kernels, False)
    hub = Kernels().edit(bare, "hub", compiled).load
    assert (hub.kernels, hub.kernels_path, hub.kernels_compiled) == ("hub", "", True)
    assert Kernels().edit(bare, "off", compiled) == bare


def planned(**load: Any) -> Plan:
    return Plan(LoadPlan(ModelSource("random"), **load))


def test_a_script_puts_the_layers_of_a_folder_in() -> None:
    script = Script()
    Kernels().write(script, planned(kernels="local", kernels_path=str(kernel_packages.BUNDLED)))
    model = build("llama")
    exec("\n".join([preamble(script), *script.patch]), {"model": model, "DEVICE": "cpu"})
    assert model.model.norm.forward.__func__ is not type(model.model.norm).forward
    assert torch.isfinite(model(torch.tensor([[5, 6]])).logits).all()


@pytest.mark.parametrize("rows", [False, True])
def test_a_script_stores_matrices_by_rows_where_the_worker_does(rows: bool) -> None:
    from transformers.pytorch_utils import Conv1D

    script = Script()
    Kernels().write(script, planned(kernels="local", kernels_path=str(kernel_packages.BUNDLED), kernels_rows=rows))
    model = build("gpt2")
    exec("\n".join([preamble(script), *script.patch]), {"model": model, "DEVICE": "cpu"})
    assert all(module.weight.is_contiguous() is not rows for module in model.modules() if type(module) is Conv1D)
    assert torch.isfinite(model(torch.tensor([[5, 6]])).logits).all()


def test_our_kernels_carry_a_licence_and_a_name() -> None:
    import json

    for file in kernel_packages.BUNDLED.glob("*/build/*/metadata.json"):
        metadata = json.loads(file.read_text())
        assert metadata["license"] == "Apache-2.0" and metadata["name"].startswith("tokendyno-")
        assert f"torch-{metadata['backend']['type']}" == file.parent.name
    assert len(list(Path(kernel_packages.BUNDLED).glob("*/build/*/metadata.json"))) >= 2


@pytest.mark.parametrize(
    ("loop", "layers", "ends"),
    [("own", ("RMSNorm", "StepEnd"), True), ("generate", ("RMSNorm", "StepEnd"), False), ("own", ("RMSNorm",), False)],
)
def test_only_the_custom_loop_has_the_end_of_a_step_that_a_kernel_computes(
    loop: LoopKind, layers: tuple[str, ...], ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_packages, "layers", lambda path, device: {name: Path("/k") for name in layers})
    script = Script()
    Kernels().write(script, Plan(planned(kernels="local", kernels_path="/k").load, GeneratePlan(STATIC, loop=loop)))
    assert ("add_step_end(model)" in script.patch) is ends


@pytest.mark.parametrize(
    ("ranks", "layers", "exchanges"),
    [(2, ("RMSNorm", "SummedLinear"), True), (1, ("RMSNorm", "SummedLinear"), False), (2, ("RMSNorm",), False)],
)
def test_only_ranks_exchange_what_a_kernel_sums(
    ranks: int, layers: tuple[str, ...], exchanges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_packages, "layers", lambda path, device: {name: Path("/k") for name in layers})
    script = Script()
    parallel = ParallelPlan("tensor" if ranks > 1 else "off", ranks)
    Kernels().write(script, planned(kernels="local", kernels_path="/k", parallel=parallel))
    assert ("add_exchanges()" in script.patch) is exchanges
