"""Tests that run everything cannot be made green by a rule that forbids: what may be refused is listed."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.gpu import test_attention, test_axes, test_encoder, test_quantization, test_reach
from tests.support.machines import CPU, EIGHT, facts, settled
from tests.support.refusals import FLASH2, FLASH3, NEEDED, absent, expected, skip_or_fail
from tests.support.scripts import CHOICES
from tokendyno.backend import hardware
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.config import Workload
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import resolve
from tokendyno.backend.paths import PRESETS

WORK = Workload(prompt_tokens=64, max_new_tokens=64)
ALL = replace(EIGHT, kernel_layers=("DecoderLayer", "Linear", "RMSNorm", "RotaryEmbedding", "StepEnd"))
FLASH = "This needs the kernel kernels-community/flash-attn2: it is not in the Hub cache, and the Hub is offline"


def gpu_arms() -> Iterator[tuple[str, str, bool]]:
    """Model, arm, and whether the test presses the fixes of other axes."""
    yield from ((model, arm if "=" in arm else "", True) for model, arm in test_axes.arms())
    yield from ((model, f"attention={name}{more},dtype=bfloat16", False) for model, name, more in test_attention.ARMS)
    yield from ((test_encoder.MODEL, arm, False) for arm in test_encoder.arms())
    yield from ((model, f"quantization={choice}", False) for model, choice in test_quantization.ARMS)
    yield from ((pair.model, arm, False) for pair in test_reach.PAIRS.values() for arm in (pair.a, pair.b))


def test_with_every_package_an_h200_refuses_no_arm_of_the_gpu_tests_but_what_is_listed() -> None:
    for model, arm, fixes in gpu_arms():
        config = parse_arm(model, arm)
        plain = check(config, facts(model), ALL, WORK)
        checked = settled(facts(model), dict(config.choices), ALL, WORK) if fixes else plain
        for verdict in checked.blocked:
            assert expected(arm, verdict.reason, model) == "impossible", (model, arm, verdict.reason)


@pytest.mark.parametrize("machine", [CPU, ALL], ids=["cpu", "h200"])
def test_every_choice_becomes_a_script_with_some_small_model_but_what_is_listed(machine: Machine) -> None:
    """By the rules, models like those of `small_models`."""
    models = [facts("pocket"), resolve(str(PRESETS / "models" / "pocket-mxfp4")), facts("random:Qwen3-0.6B")]
    for axis, choice in CHOICES:
        arms = [settled(model, {axis.name: choice.name}, machine) for model in models]
        if all(arm.blocked for arm in arms):
            reason = arms[0].blocked[0].reason
            assert expected(f"{axis.name}={choice.name}", reason, device=machine.device), reason


def test_a_refusal_that_is_not_listed_fails_and_one_that_is_listed_needs_its_reason() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"does not list it: No\."):
        skip_or_fail("cache=static", "No.")
    with pytest.raises(pytest.skip.Exception, match="impossible: MXFP4 is supported"):
        skip_or_fail("quantization=mxfp4", "MXFP4 is supported for the experts of gpt-oss only.", "random:Qwen3-0.6B")
    with pytest.raises(pytest.fail.Exception):
        skip_or_fail("quantization=mxfp4", "Some other reason.", "random:Qwen3-0.6B")
    with pytest.raises(pytest.fail.Exception):
        skip_or_fail("quantization=torchao-int4", "It supports bfloat16 only.", "random:Qwen3-0.6B")


def test_what_is_missing_is_looked_up_and_not_taken_from_the_rule(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("LOCAL_KERNELS", raising=False)
    arm = f"attention={FLASH2}"
    assert expected(arm, FLASH) == "missing here"
    assert expected("cache=static", FLASH) == ""
    assert not absent("pytest", FLASH2), "a package that is installed"
    for kernel in NEEDED[arm][1:]:
        with monkeypatch.context() as patch:
            patch.setenv("LOCAL_KERNELS", f"{kernel}=/somewhere")
            assert expected(arm, FLASH) == ""
    (tmp_path / "hub" / f"models--{FLASH3.replace('/', '--')}").mkdir(parents=True)
    assert expected(arm, FLASH) == "", "it is in the Hub's cache"
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    assert not absent("", "kernels-community/other"), "online, it can be fetched"


def test_on_a_cpu_only_what_is_for_gpus_may_be_refused() -> None:
    assert hardware.detect().device == "cpu"
    assert expected("cache=offloaded", "This machine has no GPU.", device="cpu") == "for GPUs"
    assert expected("cache=offloaded", "This machine has no GPU.", device="cuda") == ""
    assert expected("cache=static", "This machine has no GPU.", device="cpu") == ""
    assert expected("cache=offloaded", "Some other reason.", device="cpu") == ""
