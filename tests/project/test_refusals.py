"""Tests that run everything cannot be made green by a rule that forbids: what may be refused is listed."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.gpu import test_attention, test_axes, test_encoder, test_quantization, test_reach
from tests.support.machines import CPU, EIGHT, facts, settled
from tests.support.refusals import expected
from tests.support.scripts import CHOICES
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.config import Workload
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import resolve
from tokendyno.backend.paths import PRESETS

WORK = Workload(prompt_tokens=64, max_new_tokens=64)
ALL = replace(EIGHT, kernel_layers=("DecoderLayer", "Linear", "RMSNorm", "RotaryEmbedding", "StepEnd"))


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
