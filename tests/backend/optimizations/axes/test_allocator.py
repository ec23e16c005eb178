"""Segments of the CUDA allocator: what scripts say of them, and that they are told apart by the bytes of a snapshot."""

from typing import Any

import pytest
import torch

from tests.support.machines import CPU, H200
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models.resolve import resolve
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import subject_of
from tokendyno.backend.optimizations.axes.allocator import Allocator
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.script.parts import Script
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.witness import find


def plan(machine: Machine) -> Plan:
    """What `expandable` comes to on that machine."""
    begun = Plan(LoadPlan(ModelSource("folder"), device=machine.device))
    axis, subject = Allocator(), subject_of(resolve("pocket"), machine, {})
    return axis.edit(begun, axis.resolve("expandable", subject), subject)


@pytest.mark.parametrize(("machine", "lines"), [(CPU, 0), (H200, 2)], ids=["cpu", "cuda"])
def test_without_a_gpu_nothing_is_set_and_the_plan_is_that_of_the_default(machine: Machine, lines: int) -> None:
    script, planned = Script(), plan(machine)
    Allocator().write(script, planned)
    assert len(script.prepare) == lines and planned.load.allocator == ("expandable" if lines else "fixed")


@pytest.mark.parametrize(
    ("can_grow", "effective", "reached"), [(2, "expandable", 6), (1, "expandable", 4), (0, "fixed", None)]
)
def test_they_are_told_by_bytes(
    can_grow: int, effective: str, reached: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments: list[dict[str, Any]] = [{"total_size": 4 - 2 * i, "is_expandable": i < can_grow} for i in range(2)]
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: segments)
    finding = find("allocator", Observation(None, None, plan(H200)))
    assert (finding.effective, finding.reached) == (effective, reached)
