"""The kernels axis: what is said before a run. Its proof is tested together with `backend/worker/patch/kernels.py`."""

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import MethodType, SimpleNamespace
from typing import Any

import pytest
import torch

from tests.support.machines import CPU, H200, facts
from tests.support.scripts import preamble
from tests.support.tiny_models import build
from tokendyno.backend.evidence import Evidence
from tokendyno.backend.hardware import Machine, kernel_packages
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import Observation, subject_of
from tokendyno.backend.optimizations.axes.kernels import axis
from tokendyno.backend.optimizations.axes.kernels.axis import AXIS
from tokendyno.backend.optimizations.axes.kernels.replaced import Layer, layers
from tokendyno.backend.optimizations.axes.kernels.rules import NO_NORMS
from tokendyno.backend.optimizations.conditions import hub_kernel_repositories
from tokendyno.backend.optimizations.proof import Trace
from tokendyno.backend.plan import STATIC, GeneratePlan, KernelsKind, LoadPlan, LoopKind, ParallelPlan, Plan
from tokendyno.backend.script.parts import Script

OFFLINE = replace(H200, hub_offline=True)
LLAMA, OSS = "random:Llama-3-8B", "random:gpt-oss-20b"


def said(name: str, model: str | ModelFacts, machine: Machine, **choices: str) -> dict[str, str]:
    """Level -> reasons."""
    known = facts(model) if isinstance(model, str) else model
    every = {"cache": "dynamic", "compile": "off", "kernels": name} | choices
    found: dict[str, str] = {}
    for verdict in AXIS.verdicts(name, subject_of(known, machine, every)):
        found[verdict.level] = " ".join([found.get(verdict.level, ""), verdict.reason])
    return found


HUB = [
    (LLAMA, H200, {}, set()),
    (LLAMA, CPU, {}, {"fallback"}),
    ("bert-base-uncased", CPU, {}, {"fallback"}),
    (OSS, CPU, {}, set()),
    (OSS, replace(CPU, hub_offline=True), {}, {"blocked"}),
    (OSS, H200, {}, set()),
    (LLAMA, OFFLINE, {}, {"blocked"}),
    (LLAMA, replace(OFFLINE, hub_kernels=("kernels-community/megablocks",)), {}, {"blocked"}),
    (LLAMA, replace(OFFLINE, hub_kernels=("kernels-community/liger-kernels",)), {}, {"note"}),
    (LLAMA, replace(OFFLINE, hub_kernels=hub_kernel_repositories(subject_of(facts(LLAMA), H200, {}))), {}, set()),
    (LLAMA, H200, {"compile": "default", "cache": "static"}, {"note"}),
    (LLAMA, replace(H200, packages=()), {}, {"blocked"}),
]


@pytest.mark.parametrize(("model", "machine", "choices", "levels"), HUB)
def test_what_is_said_of_the_hubs_kernels(
    model: str, machine: Machine, choices: dict[str, str], levels: set[str]
) -> None:
    assert set(said("hub", model, machine, **choices)) == levels


@pytest.mark.parametrize(
    ("packed", "quantization", "machine", "refused"),
    [
        (True, "none", H200, True),
        (True, "mxfp4-dequantized", H200, False),
        (False, "mxfp4", H200, True),
        (False, "none", H200, False),
        (True, "none", CPU, False),
        (True, "none", replace(H200, packages=(("kernels", "0.17.2"), ("triton", "3.3.1"))), False),  # unpacked anyway
        (True, "mxfp4", replace(H200, gpus=(replace(H200.gpus[0], capability=(7, 0)),)), False),
    ],
)
def test_mxfp4_and_the_hubs_kernels_do_not_go_together(
    packed: bool, quantization: str, machine: Machine, refused: bool
) -> None:
    model = replace(facts(OSS), quantization="mxfp4" if packed else None)
    assert ("MXFP4" in said("hub", model, machine, quantization=quantization).get("blocked", "")) is refused


def test_transformers_really_unpacks_mxfp4_when_it_is_asked_for_kernels() -> None:
    """Read from its quantizer, since the case needs a GPU: `use_kernels` on CUDA sets `dequantize`."""
    import inspect

    from transformers.quantizers.quantizer_mxfp4 import Mxfp4HfQuantizer

    source = inspect.getsource(Mxfp4HfQuantizer._process_model_before_weight_loading)
    before, _, after = source.partition('use_kernels and device.type not in ["cpu", "xpu"]')
    assert before and "self.quantization_config.dequantize = True" in after.split("if not use_kernels")[0]


LOCAL = [
    (LLAMA, CPU, set()),
    (LLAMA, H200, set()),
    (LLAMA, replace(CPU, kernels="", kernel_layers=()), {"blocked"}),
    (LLAMA, replace(CPU, packages=()), {"blocked"}),
    ("random:gpt2", CPU, {"blocked"}),
    ("bert-base-uncased", CPU, {"blocked"}),
    ("bert-base-uncased", replace(H200, kernel_layers=("Linear", "RMSNorm")), {"blocked"}),
    ("bert-base-uncased", replace(H200, kernels="/of/a/user", kernel_layers=("GELU", "Linear")), set()),
    ("random:gpt2", replace(CPU, kernel_layers=("Linear", "RMSNorm")), set()),
]


@pytest.mark.parametrize("architecture", sorted(NO_NORMS))
def test_where_no_rmsnorm_can_be_replaced_there_is_none_in_the_source(architecture: str) -> None:
    import inspect
    import sys

    from transformers import MODEL_MAPPING, AutoConfig

    source = inspect.getsource(sys.modules[MODEL_MAPPING[type(AutoConfig.for_model(architecture))].__module__])
    assert 'use_kernel_forward_from_hub("RMSNorm")' not in source


@pytest.mark.parametrize(("model", "machine", "levels"), LOCAL)
def test_what_is_said_of_a_local_folder(model: str, machine: Machine, levels: set[str]) -> None:
    assert set(said("local", model, machine)) == levels


WHOLE = replace(H200, kernel_layers=("DecoderLayer", "DecoderLayerOfGPT2", "Linear", "RMSNorm"))
OWN = {"cache": "static", "loop": "own"}
FUSED = OWN | {"projections": "fused"}


@pytest.mark.parametrize(
    ("model", "machine", "choices", "noted"),
    [
        (LLAMA, WHOLE, FUSED, True),
        (LLAMA, H200, FUSED, False),  # its folder has no whole layers
        (LLAMA, WHOLE, FUSED | {"projections": "separate"}, False),
        (LLAMA, WHOLE, FUSED | {"loop": "generate"}, False),
        ("random:gpt2", WHOLE, OWN, True),
        ("random:gpt2", replace(WHOLE, kernel_layers=("DecoderLayer",)), OWN, False),
        ("random:gpt2", WHOLE, OWN | {"quantization": "bnb-nf4"}, False),
        ("random:gpt2", WHOLE, {}, False),
        (LLAMA, WHOLE, OWN, False),
        (OSS, WHOLE, FUSED | {"experts": "triton"}, True),
        (OSS, WHOLE, FUSED | {"experts": "grouped_mm"}, False),
        (LLAMA, WHOLE, FUSED | {"experts": "triton"}, True),
        (LLAMA, WHOLE, FUSED | {"quantization": "bnb-nf4"}, True),
        (LLAMA, WHOLE, FUSED | {"quantization": "bnb-fp4-double", "dtype": "float32"}, False),
        (OSS, replace(WHOLE, hub_offline=True), FUSED | {"experts": "auto", "quantization": "mxfp4"}, True),
    ],
)
def test_whole_layers_are_noted_where_kernels_compute_them(
    model: str, machine: Machine, choices: dict[str, str], noted: bool
) -> None:
    assert ("whole decoder layers" in said("local", model, machine, **choices).get("note", "")) is noted
    subject = subject_of(facts(model), machine, choices)
    plan = AXIS.edit(Plan(LoadPlan(ModelSource("random"))), "local", subject)
    assert plan.load.kernels_rows is (noted and model == "random:gpt2")


@pytest.mark.parametrize(
    ("choices", "left"),
    [
        ({"dtype": "float32"}, True),
        ({"dtype": "float16"}, False),
        ({"dtype": "float32", "projections": "separate"}, False),
        ({"dtype": "float32", "quantization": "none"}, False),
    ],
)
def test_float32_is_left_to_bitsandbytes(choices: dict[str, str], left: bool) -> None:
    told = said("local", LLAMA, WHOLE, **(FUSED | {"quantization": "bnb-nf4-double"} | choices)).get("note", "")
    assert ("its own code multiplies" in told) is left


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
    [
        ("own", ("RMSNorm", "StepEnd"), True),
        ("generate", ("RMSNorm", "StepEnd"), False),
        ("own", ("RMSNorm",), False),
    ],
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
    monkeypatch.setattr(axis, "layers", lambda model: iter(found))
    monkeypatch.setattr(axis, "own_names", lambda packages: {"ours::norm"} if packages == {"package"} else set())
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
    found = AXIS.find(observed(counted(ran)))
    assert (found.effective, found.reached, found.expected) == ("local", reached, 6)


@pytest.mark.parametrize(("ran", "reached"), [(1, 2), (0, 0)])
def test_on_a_gpu_layers_count_if_their_kernel_was_seen(ran: int, reached: int, replaced: list[Layer]) -> None:
    found = AXIS.find(observed(counted(ran), device="cuda"))
    assert (found.reached, found.expected) == (reached, 2)


@pytest.mark.parametrize(
    ("texts", "packed", "ran", "status"),
    [
        (33, False, 0, "not_applicable"),
        (32, False, 0, "partial"),
        (33, False, 1, "verified"),
        (2, True, 0, "not_applicable"),
    ],
)
def test_more_texts_than_a_kernel_takes_are_no_fault(
    texts: int, packed: bool, ran: int, status: str, replaced: list[Layer]
) -> None:
    cache = SimpleNamespace(layers=[SimpleNamespace(keys=torch.zeros(texts, 1, 1, 1))])
    weight = torch.nn.Parameter(torch.zeros(1, dtype=torch.uint8 if packed else torch.float32), requires_grad=False)
    plan = planned(kernels="local", kernels_path=str(kernel_packages.BUNDLED), device="cuda")
    found = AXIS.find(Observation(torch.nn.ParameterList([weight]), cache, plan, lambda: counted(ran)))
    assert Evidence("local", "local", found, "off").status == status


def test_as_many_texts_are_taken_as_the_kernels_say() -> None:
    source = (kernel_packages.BUNDLED / "matvec/build/torch-cuda/rows.py").read_text()
    assert f"\nMOST = {axis.MOST_TEXTS} " in source


@pytest.mark.parametrize(
    ("kernels", "whole", "silent"),
    [(6, False, 0), (9, False, 0), (5, False, 1), (2, False, 2), (2, True, 0), (1, True, 1)],
)
def test_on_a_gpu_each_norm_launches_a_kernel_of_its_own_in_each_pass(
    kernels: int, whole: bool, silent: int, replaced: list[Layer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where kernels compute whole layers, in the prompt's pass."""
    monkeypatch.setattr(axis, "own_names", lambda packages: {"ours::norm", "norm_kernel"})
    if whole:
        replaced.append(Layer("DecoderLayerOfGemma", "ours", "local", "package"))
    found = AXIS.find(observed(counted(6, norm_kernel_early=kernels - 1, norm_kernel=1), device="cuda"))
    assert found.reached == len(replaced) - silent


def test_a_layer_that_kept_the_models_code_is_missing(replaced: list[Layer]) -> None:
    replaced[1] = Layer("RMSNorm")
    found = AXIS.find(observed(counted(3)))
    assert (found.reached, found.expected) == (3, 6) and "1 of 2 such layers have the model's own code" in found.proof
    replaced[0] = Layer("RMSNorm")
    assert AXIS.find(observed(counted(0))).effective == "off"


def test_a_layer_that_a_folder_offers_is_wanted_where_no_such_layer_was_replaced(replaced: list[Layer]) -> None:
    """From the Hub only what was replaced shows what its mapping offers."""
    replaced[:] = [Layer("Linear", "ours", "hub", "package"), Layer("RMSNorm")]
    local, hub = (AXIS.find(observed(counted(3), kind=kind)) for kind in ("local", "hub"))
    assert (local.expected, hub.expected) == (6, 3) and hub.effective == "hub"


def test_what_warm_up_found_fastest_is_said(replaced: list[Layer], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the packages whose layers are in the model, and of no other."""
    chosen: dict[Any, Any] = {
        ("card", 8, 64): ("32x128", {}),
        ("card", 8, 32): ("library", {}),
        ("card", 8, 16): ("32x128", {}),
    }
    for name, found in (("package.rows", chosen), ("another.rows", {("card", 3, 64): ("library", {})})):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(CHOSEN=found))
    proof = AXIS.find(observed(counted(6))).proof
    assert "products with 8 vectors, fastest in warm-up by shape of matrix: 32x128 for 2, library for 1" in proof
    assert "3 vectors" not in proof


@pytest.mark.parametrize(
    ("ranks", "layers", "exchanges"),
    [
        (2, ("RMSNorm", "SummedLinear"), True),
        (1, ("RMSNorm", "SummedLinear"), False),
        (2, ("RMSNorm",), False),
    ],
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
    plain = AXIS.find(observed(counted(6))).proof
    assert plain.endswith("2 x RMSNorm by ours; traced: 6 x ours::norm_default"), "and nothing of steps or of layers"
    hidden = replace(counted(2), runtime=Counter({"cudaGraphLaunch": 3}))
    assert AXIS.find(observed(hidden)).proof.endswith("; decode steps ran in replayed CUDA graphs")
    assert "traced" not in AXIS.find(observed(counted(0))).proof


def test_where_all_passes_are_hidden_no_layer_was_seen(replaced: list[Layer]) -> None:
    hidden = replace(counted(0), runtime=Counter({"cudaGraphLaunch": 3}))
    found = AXIS.find(observed(hidden))
    assert (found.reached, found.expected) == (0, 2)


def test_a_binary_of_the_hub_without_names_is_taken_at_its_word_on_a_gpu(
    replaced: list[Layer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may launch what has any name: the layers that have it count, and the proof says what it cannot show."""
    monkeypatch.setattr(axis, "own_names", lambda packages: set())
    replaced[:] = [Layer("RMSNorm", "ours", "hub", "package")] * 2
    found = AXIS.find(observed(counted(0), device="cuda", kind="hub"))
    assert (found.reached, found.expected) == (2, 2) and "the trace cannot show it" in found.proof


def test_kernels_of_a_gpu_are_due_once_where_no_pass_was_counted(
    replaced: list[Layer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(axis, "own_names", lambda packages: {"norm_kernel"})
    assert AXIS.find(observed(counted(0, 0, norm_kernel=2), device="cuda")).reached == 2
