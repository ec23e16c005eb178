"""An arm is one call of the real package `spaces`: scheduled for the predicted seconds, forked, streamed, released; a
stop ends it, and a call that the platform ends is a death with its cause."""

import importlib.util
import json
import subprocess
import sys
import types
from dataclasses import replace

import pytest

from tests.support.machines import H200, facts
from tests.support.worker import light
from tests.support.zero_gpu import tokens_of
from tokendyno.backend.arms.check import Checked, check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.engine.executor import Died, Inbox
from tokendyno.backend.engine.prediction import BEGIN_S, expected_device_s
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors import open_bench, zero_gpu
from tokendyno.backend.hardware.machine import detect
from tokendyno.backend.messages import Load, Ready
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.paths import ROOT

ZERO_GPU = replace(H200, zero_gpu=True)


def arm_of(model: ModelFacts, choices: dict[str, str]) -> Checked:
    """An arm as a ZeroGPU Space checks it."""
    return check(make_config(model.model, choices), model, ZERO_GPU, Workload(prompt="Once"))


@pytest.mark.full
@pytest.mark.skipif(importlib.util.find_spec("spaces") is None, reason="pip install --no-deps spaces")
def test_a_run_goes_through_the_calls_of_the_real_package(warm_bench: Bench) -> None:
    command = [sys.executable, "-m", "tests.support.zero_gpu", "cpu"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["status"] == "done", seen["message"]
    assert any("call of its own" in reason for reason in seen["remarks"])
    assert len(seen["durations"]) == len(seen["pids"]) == 4
    assert seen["durations"][0] < seen["durations"][2] == zero_gpu.CALL_S[1], "3,000 tokens take longer than 8"
    assert seen["own"] not in seen["pids"] and len(set(seen["pids"])) == 4
    assert seen["stopped"][0] == "cancelled" and 0 < seen["stopped"][1] < 3000
    assert (
        seen["lost"][0] == "failed"
        and "ZeroGPU ended the call, which had asked for 120 s: GPU task aborted." in seen["lost"][1]
    )
    assert seen["fails"][:3] == ["false"] * 3 and seen["fails"][3] == "true"
    assert seen["ids"] == tokens_of(warm_bench)


def test_a_call_that_ends_without_an_answer_is_a_death(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokendyno.backend.worker.serve", types.ModuleType("serve"))
    monkeypatch.setattr(zero_gpu, "call_on_gpu", lambda: lambda pipe, expected_s: iter(()))
    inbox = Inbox()
    worker = zero_gpu.ZeroGpuWorker(inbox)
    try:
        assert isinstance(inbox.get(timeout=5).body, Ready)
        plan = arm_of(facts("pocket"), {}).plan
        worker.send(Load(plan, 0, expected_s=20.0))
        died = inbox.get(timeout=5).body
    finally:
        worker.end()
    assert isinstance(died, Died) and "had asked for 20 s: it ended without an answer" in died.cause


def test_the_seconds_asked_for_grow_with_the_tokens_and_the_weights() -> None:
    small, large = facts("pocket"), facts("random:Llama-3-8B")
    seconds = [
        expected_device_s(light({}, max_new_tokens=tokens), arm_of(model, {}), model, ZERO_GPU)
        for model, tokens in ((small, 8), (small, 500), (large, 500))
    ]
    assert BEGIN_S < seconds[0] < seconds[1] < seconds[2]
    assert zero_gpu.call_s("", 1.0) == 15.0 and zero_gpu.call_s("", 1e6) == 120.0


@pytest.mark.parametrize(
    "choices", [{"compile": "default", "cache": "static"}, {"parallel": "tensor-2"}, {"attention": "flex_attention"}]
)
def test_what_zero_gpu_cannot_have_is_refused_with_that_reason(choices: dict[str, str]) -> None:
    model = facts("random:Qwen3-0.6B")
    reasons = [verdict.reason for verdict in arm_of(model, choices).blocked]
    assert any("ZeroGPU" in reason for reason in reasons), reasons
    assert not arm_of(model, {"cache": "static", "loop": "own", "cuda_graphs": "manual"}).blocked


def test_a_space_on_zero_gpu_has_the_gpu_that_is_lent_and_needs_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    monkeypatch.setenv("ZEROGPU_CUDA_DEVICE_NAME", "NVIDIA RTX PRO 6000 Blackwell Server Edition")
    monkeypatch.setenv("ZEROGPU_CUDA_TOTAL_MEMORY", "101973950464")
    monkeypatch.delenv("TOKENDYNO_DEVICE", raising=False)
    found = detect()
    assert found.zero_gpu and found.device == "cuda" and found.free_device_bytes == 101_973_950_464
    monkeypatch.setitem(sys.modules, "spaces", None)
    zero_gpu.call_on_gpu.cache_clear()
    with pytest.raises(InputError, match=r"tools\.space zerogpu"):
        open_bench(executor="zero-gpu")
