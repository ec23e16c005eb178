"""Which layers can be replaced, and by what names their kernels are known in a trace."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import MethodType, SimpleNamespace
from typing import Any

import pytest
import torch

from tokendyno.backend.hardware import kernel_packages
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import KernelsKind, LoadPlan, Plan
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.prove.profile import Trace
from tokendyno.backend.worker.witness import find
from tokendyno.backend.worker.witness import kernels as witness
from tokendyno.backend.worker.witness.kernels import Layer, layers

OF_THE_HUB = SimpleNamespace(repo_id="org/norms", revision="0123456789")


def kind(of: str, **fields: Any) -> Any:
    """An object of a class of that name, as Triton and torch make them."""
    return type(of, (), {key: staticmethod(one) if callable(one) else one for key, one in fields.items()})()


class Marked(torch.nn.Module):  # type: ignore[misc]
    kernel_layer_name = "Linear"

    def __init__(self, wide: bool = True) -> None:
        super().__init__()
        self.wide = wide


class Conditional(Marked):
    kernel_condition = staticmethod(lambda module: module.wide)


class Function:
    kernel_layer_name = "Rotary"


def test_functions_that_act_as_layers_count_and_layers_that_a_mapping_cannot_replace_do_not() -> None:
    host = torch.nn.Module()
    host._kernel_funcs = {"rotary": Function(), "plain": object()}
    model = torch.nn.ModuleList([Marked(), Conditional(True), Conditional(False), torch.nn.Linear(2, 2), host])
    assert list(layers(model)) == [Layer("Linear"), Layer("Linear"), Layer("Rotary")]


def observed(trace: Trace, device: str = "cpu", kind: KernelsKind = "local") -> Observation:
    load = LoadPlan(ModelSource("random"), kernels=kind, kernels_path="", device=device)
    return Observation(object(), None, Plan(load), lambda: trace)


@pytest.fixture
def replaced(monkeypatch: pytest.MonkeyPatch) -> list[Layer]:
    """What is found of the two layers; `ours` is the operator of their package."""
    layers = [Layer("RMSNorm", "ours", "local", "package")] * 2
    monkeypatch.setattr(witness, "layers", lambda model: iter(layers))
    monkeypatch.setattr(witness, "own_names", lambda packages: {"ours::norm"} if packages == {"package"} else set())
    monkeypatch.setattr(kernel_packages, "layers", lambda path, device: {"RMSNorm": Path("/k")})
    return layers


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
    finding = find("kernels", observed(counted(ran)))
    assert (finding.effective, finding.reached, finding.expected) == ("local", reached, 6)


@pytest.mark.parametrize(("ran", "reached"), [(1, 2), (0, 0)])
def test_on_a_gpu_layers_count_if_their_kernel_was_seen(ran: int, reached: int, replaced: list[Layer]) -> None:
    finding = find("kernels", observed(counted(ran), device="cuda"))
    assert (finding.reached, finding.expected) == (reached, 2)


@pytest.mark.parametrize(("kernels", "whole", "silent"), [(6, False, 0), (5, False, 1), (2, True, 0), (1, True, 1)])
def test_on_a_gpu_each_norm_launches_a_kernel_of_its_own_in_each_pass(
    kernels: int, whole: bool, silent: int, replaced: list[Layer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where kernels compute whole layers, in the prompt's pass."""
    monkeypatch.setattr(witness, "own_names", lambda packages: {"ours::norm", "norm_kernel"})
    if whole:
        replaced.append(Layer("DecoderLayerWithAnglesFirst", "ours", "local", "package"))
    finding = find("kernels", observed(counted(6, norm_kernel_early=kernels - 1, norm_kernel=1), device="cuda"))
    assert finding.reached == len(replaced) - silent


def test_a_layer_that_kept_the_models_code_is_missing(replaced: list[Layer]) -> None:
    replaced[1] = Layer("RMSNorm")
    finding = find("kernels", observed(counted(3)))
    assert (finding.reached, finding.expected) == (3, 6)
    assert "1 of 2 such layers have the model's own code" in finding.proof
    replaced[0] = Layer("RMSNorm")
    assert find("kernels", observed(counted(0))).effective == "off"


def test_a_layer_that_a_folder_offers_is_wanted_where_no_such_layer_was_replaced(replaced: list[Layer]) -> None:
    """From the Hub only what was replaced shows what its mapping offers."""
    replaced[:] = [Layer("Linear", "ours", "hub", "package"), Layer("RMSNorm")]
    local, hub = (find("kernels", observed(counted(3), kind=kind)) for kind in ("local", "hub"))
    assert (local.expected, hub.expected) == (6, 3) and hub.effective == "hub"


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
    finding = find("kernels", observed(counted(0), device="cuda", kind="hub"))
    assert (finding.reached, finding.expected) == (2, 2) and "the trace cannot show it" in finding.proof
