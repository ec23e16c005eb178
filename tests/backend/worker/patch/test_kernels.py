"""Kernels replace layers: from a local folder, and from Hub repositories that LOCAL_KERNELS names."""

import inspect
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from kernels import Mode
from kernels.layer.layer import LayerRepository
from transformers.integrations.hub_kernels import get_kernel_mapping_transformers
from transformers.pytorch_utils import Conv1D

from tests.support.decode_loop import greedy, prompt
from tests.support.tiny_models import CONFIGS, build, tiny
from tokendyno.backend.hardware import kernel_packages
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import subject_of
from tokendyno.backend.plan import KernelsKind, LoadPlan, Plan
from tokendyno.backend.worker.load.loader import apply_patches
from tokendyno.backend.worker.patch import kernels
from tokendyno.backend.worker.patch.kernels import store_by_rows
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.witness import find

MEGABLOCKS = "kernels-community/megablocks"
MLP = """
import torch.nn as nn
class CPUMegaBlocksMoeMLP(nn.Module):
    has_backward = False
    def forward(self, hidden_states):
        rows = hidden_states.reshape(-1, hidden_states.shape[-1])
        _, scores, indices = self.router(rows)
        return self.experts(rows, indices, scores).reshape(hidden_states.shape), scores
"""
LINEAR = """
import torch
import torch.nn as nn
class Linear(nn.Module):
    has_backward = False
    def forward(self, input):
        return torch.addmm(self.bias, input.flatten(0, -2), self.weight.T).unflatten(0, input.shape[:-1]) \\
            if self.bias is not None else input @ self.weight.T
"""


@pytest.fixture(autouse=True)
def calm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Offline; restores what `kernels` and torch.nn remember."""
    from huggingface_hub import constants

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    level = logging.getLogger("kernels.layer.layer").level
    yield
    logging.getLogger("kernels.layer.layer").setLevel(level)
    for name in ("kernel_layer_name", "kernel_condition"):
        if name in vars(torch.nn.Linear):
            delattr(torch.nn.Linear, name)


def package(folder: Path, name: str, code: str) -> Path:
    """A kernel package for CPUs."""
    inside = folder / "build" / "torch-cpu"
    inside.mkdir(parents=True)
    metadata = {
        "id": f"{name.replace('-', '_')}_cpu_{abs(hash(str(folder)))}",
        "name": name,
        "version": 1,
        "license": "Apache-2.0",
        "python-depends": [],
        "backend": {"type": "cpu"},
    }
    (inside / "metadata.json").write_text(json.dumps(metadata))
    (inside / "__init__.py").write_text("from . import layers\n")
    (inside / "layers.py").write_text(code)
    return folder


def plan(kind: KernelsKind, folder: Path | str = "", compiled: bool = False) -> LoadPlan:
    return LoadPlan(ModelSource("random"), kernels=kind, kernels_path=str(folder), kernels_compiled=compiled)


def kernels_finding(model: Any, load: LoadPlan | None = None) -> Any:
    return find("kernels", Observation(model, None, Plan(load or plan("off"))))


def logits(model: Any) -> torch.Tensor:
    with torch.inference_mode():
        out: torch.Tensor = model(torch.tensor([[5, 6, 7, 8]])).logits
    return out


@pytest.mark.parametrize(("architecture", "dtype"), [("llama", "float32"), ("gpt_oss", "bfloat16")])
def test_our_rms_norm_replaces_every_one_and_computes_the_same(architecture: str, dtype: str) -> None:
    model = build(architecture, dtype=dtype)
    norms = sum(type(m).__name__.endswith("RMSNorm") for m in model.modules())
    before = logits(model)
    apply_patches(model, plan("local", kernel_packages.BUNDLED))
    finding = kernels_finding(model)
    assert finding.effective == "local"
    assert finding.proof == f"{norms} x RMSNorm by tokendyno-rmsnorm"
    torch.testing.assert_close(logits(model), before, atol=1e-5 if dtype == "float32" else 0.3, rtol=0.02)


@pytest.mark.parametrize("architecture", ["gpt2", "gemma3_text"])
def test_a_model_without_such_a_norm_is_left_alone_and_found_so(architecture: str) -> None:
    model, load = build(architecture), plan("local", kernel_packages.BUNDLED)
    apply_patches(model, load)
    assert kernels_finding(model).effective == "off"
    row = kernels_finding(model, load)
    assert (row.effective, row.outcome) == ("local", "not_applicable")
    assert "no layer that there is a kernel for" in row.proof and "RMSNorm" in row.proof


def test_torchs_own_rmsnorm_whose_epsilon_may_be_missing_is_left_alone() -> None:
    model = build("llama")
    norm = torch.nn.RMSNorm(16)
    model.add_module("other", norm)
    apply_patches(model, plan("local", kernel_packages.BUNDLED))
    torch.testing.assert_close(norm(torch.ones(2, 16)), torch.ones(2, 16))
    assert "forward" not in vars(norm) and kernels_finding(model).effective == "local"


def test_on_a_cpu_the_build_for_it_is_taken_also_where_torch_was_compiled_for_cuda(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    mapping = kernels.local_mapping(kernel_packages.layers(kernel_packages.BUNDLED, "cpu"), "cpu")
    loaded = mapping["RMSNorm"]["cpu"].load()
    assert "torch-cpu" in str(inspect.getsourcefile(loaded))


def test_a_kernel_replaces_a_layer_of_torch_but_not_its_subclasses(tmp_path: Path) -> None:
    class Packed(torch.nn.Linear):  # type: ignore[misc]
        pass

    model = build("llama")
    model.lm_head.__class__ = Packed
    before = logits(model)
    apply_patches(model, plan("local", package(tmp_path / "linear", "linear", LINEAR)))
    layers = len(model.model.layers)
    assert kernels_finding(model).proof.startswith(f"{7 * layers} x Linear by linear; its package defines no operator")
    torch.testing.assert_close(logits(model), before, atol=1e-5, rtol=0)


def test_compiled_models_get_only_kernels_that_can_be_traced(tmp_path: Path) -> None:
    model = build("llama")
    folder = package(tmp_path / "linear", "linear", LINEAR)
    apply_patches(model, plan("local", folder, compiled=True))
    assert kernels_finding(model).effective == "off"
    apply_patches(model, plan("local", kernel_packages.BUNDLED, compiled=True))
    assert kernels_finding(model).effective == "local"


# --- repositories of the Hub ----------------------------------------------------------------------


def test_a_repository_named_in_local_kernels_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = package(tmp_path / "mega", "megablocks", MLP)
    monkeypatch.setenv("LOCAL_KERNELS", f"{MEGABLOCKS}={folder}")
    model = build("gpt_oss")
    before = logits(model)
    apply_patches(model, plan("hub"))
    finding = kernels_finding(model)
    assert finding.effective == "hub"
    assert finding.proof.startswith(f"4 x MegaBlocksMoeMLP by {MEGABLOCKS} (LOCAL_KERNELS)")
    assert torch.equal(logits(model), before)


def test_only_the_trusted_publisher_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    mapping = kernels.hub_mapping(get_kernel_mapping_transformers(), "cuda")
    repos = {repo._repo_id for by_device in mapping.values() for modes in by_device.values() for repo in modes.values()}
    assert repos and all(name.startswith("kernels-community/") for name in repos)


def test_kernels_of_one_model_are_not_left_to_the_next(tmp_path: Path) -> None:
    """The rotary function, which acts as a layer, is one object for all models of a process."""
    code = """
import torch.nn as nn
class rotary_pos_emb(nn.Module):
    has_backward = False
    def forward(self, q, k, cos, sin, unsqueeze_dim=1):
        raise RuntimeError("the kernel of the model before")
"""
    model = build("llama")
    apply_patches(model, plan("local", package(tmp_path / "rotary", "rotary", code)))
    assert kernels_finding(model).effective == "local"
    following = build("llama")
    apply_patches(following, plan("off"))
    assert kernels_finding(following).effective == "off"
    logits(following)


def test_the_rules_know_what_transformers_maps() -> None:
    from tests.support.machines import CPU, H200, facts

    names = {
        "llama": "random:Llama-3-8B",
        "qwen3": "random:Qwen3-0.6B",
        "mistral": "random:Mistral-7B-v0.1",
        "olmo3": "random:Olmo-3-7B",
        "gemma3_text": "random:Gemma-3-1b",
        "gpt_oss": "random:gpt-oss-20b",
        "gpt2": "random:gpt2",
    }
    known = get_kernel_mapping_transformers()
    for architecture, name in names.items():
        points = kernels.replaceable_layers(build(architecture))
        for device, machine in (("cpu", CPU), ("cuda", H200)):
            mapped: dict[str, str] = {}
            for point in points:
                for kind, mode, repo in kernels._repositories(known.get(point, {})):
                    if kind == device and Mode.INFERENCE in mode and isinstance(repo, LayerRepository):
                        mapped[point] = repo._repo_id
            assert subject_of(facts(name), machine, {}).hub_kernel_layers == mapped, (architecture, device)


def matrices(model: Any) -> list[Any]:
    return [module.weight for module in model.modules() if type(module) is Conv1D]


def offered(block: Any) -> str:
    kind = type(block)
    return str(kind.kernel_layer_name) if kind.kernel_condition(block) else ""


@pytest.mark.parametrize("times", [1, 2])
def test_shape_memory_and_text_stay_and_the_rows_are_contiguous(times: int) -> None:
    model = build("gpt2")
    before = [(weight.shape, weight.data_ptr(), weight.detach().clone()) for weight in matrices(model)]
    assert len(before) == 4 * len(model.transformer.h)
    for _ in range(times):
        store_by_rows(model)
    for weight, (shape, address, values) in zip(matrices(model), before, strict=True):
        assert (weight.shape, weight.data_ptr()) == (shape, address)
        assert weight.t().is_contiguous() and torch.equal(weight, values)
    inputs = prompt(9, 2, padded=2)
    assert torch.equal(greedy(model, inputs), greedy(tiny("gpt2"), inputs))


def test_its_layers_are_offered_once_their_matrices_are_stored_so() -> None:
    model = build("gpt2")
    store_by_rows(model)
    assert {offered(block) for block in model.transformer.h} == {"DecoderLayerOfGPT2"}
    assert not offered(build("gpt2").transformer.h[0])


def test_layers_of_phi3_are_offered_as_they_come_and_others_once_they_are_fused() -> None:
    phi, llama = (tiny(name) for name in ("phi3", "llama"))
    for model in (phi, llama):
        store_by_rows(model)
    assert {offered(layer) for layer in phi.model.layers} == {"DecoderLayer"}
    assert not offered(llama.model.layers[0])


def test_layers_that_the_kernels_do_not_compute_are_not() -> None:
    from bitsandbytes.nn import Linear4bit

    model = build("gpt2")
    store_by_rows(model)
    first, second, *rest = model.transformer.h
    first.attn.c_attn = Linear4bit(32, 96)
    second.attn.config = second.attn.config.__class__(activation_function="relu")
    assert [bool(offered(block)) for block in model.transformer.h] == [False, False, *(True for _ in rest)]
    second.attn.config = second.attn.config.__class__(add_cross_attention=True)
    assert not offered(second)


@pytest.mark.parametrize("architecture", sorted(CONFIGS.keys() - {"gpt2"}))
def test_other_models_are_left_alone(architecture: str) -> None:
    model = build(architecture)
    before = [weight.stride() for weight in model.parameters()]
    store_by_rows(model)
    assert [weight.stride() for weight in model.parameters()] == before
