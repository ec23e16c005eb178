"""The arms that a newcomer finds: both run, and they differ."""

import pytest

from tests.support.machines import CPU, H200, facts
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.hardware import Machine
from tokendyno.ui.compare.page import FIRST
from tokendyno.ui.compare.request import preset_choices


@pytest.mark.parametrize("machine", [CPU, H200], ids=["cpu", "cuda"])
def test_the_first_arms_run_and_differ_and_a_sentence_says_why(machine: Machine) -> None:
    presets, why = FIRST["cuda" if machine.device == "cuda" else "cpu"]
    arms = [make_config("pocket", preset_choices(name, facts(), machine)) for name in presets]
    assert arms[0] != arms[1] and why.startswith("The first two arms are ")
    for arm in arms:
        assert not check(arm, facts(), machine, Workload(prompt="x")).blocked
