"""Kernels that replace layers, and implementations of experts, on a GPU."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.test_attention import runnable
from tests.support.tiny_models import build
from tokendyno.backend.hardware import kernel_packages
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations.axes.experts import Experts
from tokendyno.backend.plan import LoadPlan
from tokendyno.backend.worker.witness import find
from tools.bench.gpu.bench_cli import bench, tell

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]

QWEN, REPLAYED = "random:Qwen3-0.6B", ",cache=static,compile=reduce-overhead"


def rows(model: str, arm: str, tokens: int = 64) -> dict[str, Any]:
    """The ledger by axis after a run of this arm."""
    runnable(model, arm)
    name = f"kernels-{model}-{arm}".replace("random:", "").replace("=", "-").replace(",", "_")
    document = bench(name, f"run --model {model} --arm {arm} --prompt-tokens 64 --max-new-tokens {tokens}")
    tell(document)
    found = {row["axis"]: row for row in document["arms"][0]["evidence"]}
    print(found["kernels"], found["experts"])
    return found


def fresh(kind: Any, folder: Path | str = "") -> LoadPlan:
    return LoadPlan(ModelSource("random"), device="cuda", kernels=kind, kernels_path=str(folder))


# --- the bundled RMSNorm ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "beside"), [(QWEN, ""), (QWEN, REPLAYED), ("pocket", "")])
def test_our_rms_norm_is_in_effect_and_runs_as_one_kernel(
    model: str, beside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENDYNO_KERNELS", str(kernel_packages.BUNDLED / "rmsnorm"))
    found = rows(model, f"kernels=local{beside}")["kernels"]
    assert (found["effective"], found["status"]) == ("local", "verified"), found
    assert "RMSNorm by tokendyno-rmsnorm" in found["proof"] and "rms_norm_kernel" in found["proof"], found


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("dtype", "nearness"), [("float32", 1e-5), ("bfloat16", 2e-2), ("float16", 2e-3)])
@pytest.mark.parametrize("shape", [(1, 1, 4096), (3, 5, 100), (2, 7, 4, 128), (1, 2, 8192)])
def test_our_rms_norm_is_one(shape: tuple[int, ...], dtype: str, nearness: float, compiled: bool) -> None:
    import torch
    from kernels import get_local_kernel

    layer = get_local_kernel(kernel_packages.BUNDLED / "rmsnorm").layers.RMSNorm
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=getattr(torch, dtype), device="cuda")
    module = torch.nn.Module()
    module.weight, module.variance_epsilon = torch.rand(shape[-1], device="cuda").to(x.dtype), 1e-5
    wide = x.double()
    wanted = wide * (wide.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * module.weight.double()
    torch._dynamo.reset()

    def run(values: Any) -> Any:
        return layer.forward(module, values)

    made = (torch.compile(run) if compiled else run)(x)
    assert (made.shape, made.dtype) == (x.shape, x.dtype)
    torch.testing.assert_close(made.double(), wanted, atol=nearness, rtol=nearness)


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "mistral", "olmo3", "gpt_oss"])
def test_the_text_with_it_is_the_text_without(architecture: str) -> None:
    import torch

    from tokendyno.backend.worker.load.loader import apply_patches

    ids = torch.arange(5, 17, device="cuda")[None]
    more: dict[str, Any] = {"attention_mask": torch.ones_like(ids), "max_new_tokens": 24, "do_sample": False}
    model = build(architecture, device="cuda")
    wanted = model.generate(ids, **more)
    apply_patches(model, fresh("local", kernel_packages.BUNDLED / "rmsnorm"))
    for settings in ({}, {"cache_implementation": "static"}):
        assert torch.equal(model.generate(ids, **more, **settings), wanted), settings


# --- the Hub's ------------------------------------------------------------------------------------


def test_a_folder_for_a_repository_of_the_hub_is_loaded_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code that loads Hub kernels, with the bundled kernel under the name of the Hub's."""
    from tokendyno.backend.plan import Plan
    from tokendyno.backend.worker.load.loader import apply_patches
    from tokendyno.backend.worker.prove.observation import Observation

    ours = kernel_packages.BUNDLED / "rmsnorm" / "build" / "torch-cuda"
    there = tmp_path / "build" / "torch-cuda"
    there.mkdir(parents=True)
    metadata = json.loads((ours / "metadata.json").read_text()) | {"id": "stand_in_cuda_1", "name": "liger-kernels"}
    (there / "metadata.json").write_text(json.dumps(metadata))
    (there / "__init__.py").write_text((ours / "__init__.py").read_text())
    code = (ours / "layers.py").read_text().replace("class RMSNorm", "class LigerRMSNorm")
    (there / "layers.py").write_text(code.replace("tokendyno_rmsnorm::", "stand_in::"))
    monkeypatch.setenv("LOCAL_KERNELS", f"kernels-community/liger-kernels={tmp_path}")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    model = build("llama", device="cuda")
    apply_patches(model, fresh("hub"))
    finding = find("kernels", Observation(model, None, Plan(fresh("hub"))))
    assert finding.effective == "hub"
    assert finding.proof == "9 x RMSNorm by kernels-community/liger-kernels (LOCAL_KERNELS)"


# --- experts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("beside", ["", REPLAYED])
@pytest.mark.parametrize("way", [choice.name for choice in Experts().choices])
def test_each_way_of_experts_is_in_effect(way: str, beside: str) -> None:
    found = rows("pocket", f"experts={way}{beside}")["experts"]
    assert (found["effective"], found["status"]) == (found["planned"], "verified"), found
