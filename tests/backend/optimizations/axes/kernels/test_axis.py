"""The kernels axis: what is said before a run. Its proof is tested together with `backend/worker/patch/kernels.py`."""

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import MethodType, SimpleNamespace
from typing import Any

import pytest
import torch

from tests.support.machines import H200, facts
from tests.support.scripts import preamble
from tests.support.tiny_models import build
from tokendyno.backend.hardware import Machine, kernel_packages
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import subject_of
from tokendyno.backend.optimizations.axes.kernels import AXIS, NO_NORMS, may_replace
from tokendyno.backend.plan import STATIC, GeneratePlan, KernelsKind, LoadPlan, LoopKind, ParallelPlan, Plan
from tokendyno.backend.script.parts import Script
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.prove.profile import Trace
from tokendyno.backend.worker.witness import find
from tokendyno.backend.worker.witness import kernels as witness
from tokendyno.backend.worker.witness.kernels import Layer, layers

LLAMA, OSS = "random:Llama-3-8B", "random:gpt-oss-20b"


def said(name: str, model: str | ModelFacts, machine: Machine, **choices: str) -> dict[str, str]:
    """Level -> reasons."""
    known = facts(model) if isinstance(model, str) else model
    every = {"cache": "dynamic", "compile": "off", "kernels": name} | choices
    found: dict[str, str] = {}
    for verdict in AXIS.verdicts(name, subject_of(known, machine, every)):
        found[verdict.level] = " ".join([found.get(verdict.level, ""), verdict.reason])
    return found


@pytest.mark.parametrize("architecture", sorted(NO_NORMS))
def test_where_no_rmsnorm_can_be_replaced_there_is_none_in_the_source(architecture: str) -> None:
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
    found = said("local", model, machine, **OWN, projections="fused", experts=experts, **dense)
    assert ("whole decoder layers" in found.get("note", "")) is whole


@pytest.mark.parametrize(
    ("architecture", "choices", "offered"),
    [
        ("llama", {"projections": "fused"}, {"DecoderLayer", "RotaryEmbedding", "RMSNorm"}),
        ("llama", {}, {"RMSNorm"}),  # `fuse` offers the others
        ("phi3", {}, {"DecoderLayer", "RotaryEmbedding", "RMSNorm"}),
        ("olmo2", {"projections": "fused"}, {"DecoderLayer", "RMSNorm"}),
        ("gemma3_text", {"projections": "fused"}, {"DecoderLayerOfGemma", "TypedRotaryEmbedding", "OffsetRMSNorm"}),
        ("gemma3n_text", {"projections": "fused"}, set()),
        ("qwen2_moe", {"projections": "fused", "experts": "triton"}, {"DecoderLayer", "RotaryEmbedding", "RMSNorm"}),
        # the gate of whose shared expert kernels read dense only
        (
            "qwen2_moe",
            {"projections": "fused", "experts": "triton", "quantization": "torchao-int8"},
            {"RotaryEmbedding", "RMSNorm"},
        ),
    ],
)
def test_layers_are_named_where_the_worker_offers_them(
    architecture: str, choices: dict[str, str], offered: set[str]
) -> None:
    names = (
        "DecoderLayer",
        "DecoderLayerOfGemma",
        "RMSNorm",
        "OffsetRMSNorm",
        "RotaryEmbedding",
        "TypedRotaryEmbedding",
    )
    known, plain = replace(facts(LLAMA), architecture=architecture), {"quantization": "none", "experts": "auto"}
    machine = replace(H200, kernel_layers=names)
    subject = subject_of(known, machine, OWN | plain | {"kernels": "local", "projections": "separate"} | choices)
    assert {name for name in names if may_replace(name, subject)} == offered


@pytest.mark.parametrize(("head_dim", "heads", "whole"), [(128, 32, True), (96, 32, False), (128, 17 * 8, False)])
def test_layers_run_whole_where_the_kernel_of_attention_has_their_heads(head_dim: int, heads: int, whole: bool) -> None:
    """Phi-3-mini's have 96 numbers."""
    known = replace(facts(LLAMA), architecture="phi3", head_dim=head_dim, heads=heads)
    machine, choices = replace(H200, kernel_layers=("DecoderLayer",)), OWN | {"kernels": "local"}
    assert may_replace("DecoderLayer", subject_of(known, machine, choices)) is whole
    assert ("whole decoder layers" in said("local", known, machine, **choices).get("note", "")) is whole


def test_the_plan_names_the_folder_and_the_mode() -> None:
    bare = Plan(LoadPlan(ModelSource("random")))
    subject = subject_of(facts(LLAMA), H200, {"compile": "off"})
    compiled = subject_of(facts(LLAMA), H200, {"compile": "default"})
    local = AXIS.edit(bare, "local", subject).load
    assert (local.kernels, local.kernels_path, local.kernels_compiled) == ("local", H200.kernels, False)
    hub = AXIS.edit(bare, "hub", compiled).load
    assert (hub.kernels, hub.kernels_path, hub.kernels_compiled) == ("hub", "", True)
    assert AXIS.edit(bare, "off", compiled) == bare


def planned(**load: Any) -> Plan:
    return Plan(LoadPlan(ModelSource("random"), **load))


def test_a_script_asks_transformers_for_the_hubs_kernels() -> None:
    script = Script()
    AXIS.write(script, planned(kernels="hub", kernels_compiled=True))
    assert script.patch == ["model.set_use_kernels(True, mode=Mode.INFERENCE | Mode.TORCH_COMPILE)"]


def test_a_script_puts_the_layers_of_a_folder_in() -> None:
    script = Script()
    AXIS.write(script, planned(kernels="local", kernels_path=str(kernel_packages.BUNDLED)))
    model = build("llama")
    exec("\n".join([preamble(script), *script.patch]), {"model": model, "DEVICE": "cpu"})
    assert model.model.norm.forward.__func__ is not type(model.model.norm).forward
    assert torch.isfinite(model(torch.tensor([[5, 6]])).logits).all()


@pytest.mark.parametrize("rows", [False, True])
def test_a_script_stores_matrices_by_rows_where_the_worker_does(rows: bool) -> None:
    from transformers.pytorch_utils import Conv1D

    script = Script()
    AXIS.write(script, planned(kernels="local", kernels_path=str(kernel_packages.BUNDLED), kernels_rows=rows))
    model = build("gpt2")
    exec("\n".join([preamble(script), *script.patch]), {"model": model, "DEVICE": "cpu"})
    assert all(one.weight.is_contiguous() is not rows for one in model.modules() if type(one) is Conv1D)
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
    AXIS.write(script, Plan(planned(kernels="local", kernels_path="/k").load, GeneratePlan(STATIC, loop=loop)))
    assert ("add_step_end(model)" in script.patch) is ends


def observed(trace: Trace, device: str = "cpu", kind: KernelsKind = "local") -> Observation:
    return Observation(object(), None, planned(kernels=kind, kernels_path="", device=device), lambda: trace)


@pytest.fixture
def replaced(monkeypatch: pytest.MonkeyPatch) -> list[Layer]:
    """What is found of the two layers; `ours` is the operator of their package."""
    found = [Layer("RMSNorm", "ours", "local", "package")] * 2
    monkeypatch.setattr(witness, "layers", lambda model: iter(found))
    monkeypatch.setattr(witness, "own_names", lambda packages: {"ours::norm"} if packages == {"package"} else set())
    monkeypatch.setattr(kernel_packages, "layers", lambda path, device: {"RMSNorm": Path("/k")})
    return found


OF_THE_HUB = SimpleNamespace(repo_id="org/norms", revision="0123456789")


@pytest.mark.parametrize(
    ("loaded", "repository", "folders", "expected"),
    [
        (False, None, False, ("", "", "")),
        (True, OF_THE_HUB, True, ("org/norms at 0123456", "hub", "norms_1")),
        (True, None, True, ("org/norms (LOCAL_KERNELS)", "hub", "norms_1")),
        (True, None, False, ("norms", "local", "norms_1")),
    ],
)
def test_a_replaced_layer_names_its_kernel_and_where_that_is_from(
    loaded: bool,
    repository: Any,
    folders: bool,
    expected: tuple[str, str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Norm(torch.nn.Module):  # type: ignore[misc]
        kernel_layer_name = "RMSNorm"

    def forward(self: Any, x: Any) -> Any:
        return x

    forward.__module__ = "norms_1.layers"
    model = Norm()
    model.forward = MethodType(forward, model)
    module = SimpleNamespace(__file__=str(tmp_path / "norms_1" / "__init__.py"))
    kernel = SimpleNamespace(metadata=SimpleNamespace(id="norms_1", name="norms"), repo_info=repository, module=module)
    monkeypatch.setattr("kernels.get_loaded_kernels", lambda: [kernel] * loaded)
    monkeypatch.setenv("LOCAL_KERNELS", f"org/norms={tmp_path}" if folders else "")
    assert list(layers(model)) == [Layer("RMSNorm", *expected)]


def counted(ran: int, steps: int = 3, **kernels: int) -> Trace:
    return Trace(Counter({"ours::norm_default": ran, "aten::mm": 50}), Counter(kernels), Counter(), steps)


@pytest.mark.parametrize(("ran", "reached"), [(6, 6), (5, 5), (0, 0), (9, 6)])
def test_on_a_cpu_each_replaced_layer_calls_its_operator_in_each_pass(
    ran: int, reached: int, replaced: list[Layer]
) -> None:
    found = find("kernels", observed(counted(ran)))
    assert (found.effective, found.reached, found.expected) == ("local", reached, 6)


@pytest.mark.parametrize(("ran", "reached"), [(1, 2), (0, 0)])
def test_on_a_gpu_layers_count_if_their_kernel_was_seen(ran: int, reached: int, replaced: list[Layer]) -> None:
    found = find("kernels", observed(counted(ran), device="cuda"))
    assert (found.reached, found.expected) == (reached, 2)


@pytest.mark.parametrize(("kernels", "whole", "silent"), [(6, False, 0), (5, False, 1), (2, True, 0), (1, True, 1)])
def test_on_a_gpu_each_norm_launches_a_kernel_of_its_own_in_each_pass(
    kernels: int, whole: bool, silent: int, replaced: list[Layer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where kernels compute whole layers, in the prompt's pass."""
    monkeypatch.setattr(witness, "own_names", lambda packages: {"ours::norm", "norm_kernel"})
    if whole:
        replaced.append(Layer("DecoderLayerOfGemma", "ours", "local", "package"))
    found = find("kernels", observed(counted(6, norm_kernel_early=kernels - 1, norm_kernel=1), device="cuda"))
    assert found.reached == len(replaced) - silent


def test_a_layer_that_kept_the_models_code_is_missing(replaced: list[Layer]) -> None:
    replaced[1] = Layer("RMSNorm")
    found = find("kernels", observed(counted(3)))
    assert (found.reached, found.expected) == (3, 6) and "1 of 2 such layers have the model's own code" in found.proof
    replaced[0] = Layer("RMSNorm")
    assert find("kernels", observed(counted(0))).effective == "off"


def test_a_layer_that_a_folder_offers_is_wanted_where_no_such_layer_was_replaced(replaced: list[Layer]) -> None:
    """From the Hub only what was replaced shows what its mapping offers."""
    replaced[:] = [Layer("Linear", "ours", "hub", "package"), Layer("RMSNorm")]
    local, hub = (find("kernels", observed(counted(3), kind=kind)) for kind in ("local", "hub"))
    assert (local.expected, hub.expected) == (6, 3) and hub.effective == "hub"


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
    AXIS.write(script, planned(kernels="local", kernels_path="/k", parallel=parallel))
    assert ("add_exchanges()" in script.patch) is exchanges


def test_the_proof_names_what_ran_how_often_and_what_hides_the_steps(replaced: list[Layer]) -> None:
    plain = find("kernels", observed(counted(6))).proof
    assert plain.endswith("2 x RMSNorm by ours; traced: 6 x ours::norm_default"), "and nothing of steps or of layers"
    hidden = replace(counted(2), runtime=Counter({"cudaGraphLaunch": 3}))
    assert find("kernels", observed(hidden)).proof.endswith("; decode steps ran in replayed CUDA graphs")
    assert "traced" not in find("kernels", observed(counted(0))).proof


def test_a_binary_of_the_hub_without_names_is_taken_at_its_word_on_a_gpu(
    replaced: list[Layer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may launch what has any name: the layers that have it count, and the proof says what it cannot show."""
    monkeypatch.setattr(witness, "own_names", lambda packages: set())
    replaced[:] = [Layer("RMSNorm", "ours", "hub", "package")] * 2
    found = find("kernels", observed(counted(0), device="cuda", kind="hub"))
    assert (found.reached, found.expected) == (2, 2) and "the trace cannot show it" in found.proof
