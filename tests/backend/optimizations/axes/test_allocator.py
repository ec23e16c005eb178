"""Segments of the CUDA allocator: what scripts say of them, and that they are told apart by the bytes of a snapshot."""

from typing import Any

import pytest
import torch

from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations.axes.allocator import AXIS
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.script.parts import Script
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.witness import find


def plan(device: str) -> Plan:
    return Plan(LoadPlan(ModelSource("folder"), device=device, allocator="expandable"))


@pytest.mark.parametrize(("device", "lines"), [("cpu", 0), ("cuda", 2)])
def test_only_a_script_for_a_gpu_sets_them(device: str, lines: int) -> None:
    script = Script()
    AXIS.write(script, plan(device))
    assert len(script.prepare) == lines


@pytest.mark.parametrize(
    ("can_grow", "effective", "reached"), [(2, "expandable", 6), (1, "expandable", 4), (0, "fixed", None)]
)
def test_they_are_told_by_bytes(
    can_grow: int, effective: str, reached: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments: list[dict[str, Any]] = [{"total_size": 4 - 2 * i, "is_expandable": i < can_grow} for i in range(2)]
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: segments)
    finding = find("allocator", Observation(None, None, plan("cuda")))
    assert (finding.effective, finding.reached) == (effective, reached)
