"""Every choice of every axis has a saboteur, or a stated reason; and no proof is satisfied by nothing."""

import importlib
from pathlib import Path

import pytest
from transformers import DynamicCache

from tests.support.tiny_models import tiny
from tokendyno.backend.evidence import Evidence
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import Observation, Optimization, all_axes
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.worker.prove.findings import find_all

HERE = Path(__file__).parent
NAMES = [f"tests.sabotage.{file.stem}" for file in sorted(HERE.glob("test_*.py")) if file != Path(__file__)]
MODULES = [importlib.import_module(name) for name in [*NAMES, "tests.gpu.test_sabotage"]]
BROKEN = {(one.axis, one.choice) for module in MODULES for one in getattr(module, "SABOTEURS", ())}
UNBROKEN: dict[tuple[str, str], str] = {
    ("cuda_graphs", "auto"): "It is another name for off or compile, whichever the compile mode implies.",
}
for module in MODULES:
    UNBROKEN |= getattr(module, "REASONS", {})
CHOICES = {(axis.name, choice.name) for axis in all_axes() for choice in axis.choices}
OFF = {(axis.name, axis.off) for axis in all_axes() if axis.off}
"""Choices with which nothing is done: their row is never green, so there is nothing to break."""


def test_a_choice_has_a_saboteur_or_a_reason() -> None:
    assert not CHOICES - BROKEN - UNBROKEN.keys() - OFF, "nobody breaks them, and nobody says why"
    assert not BROKEN & UNBROKEN.keys(), "they are broken after all: the reason is out of date"
    assert BROKEN | UNBROKEN.keys() <= CHOICES, "no axis has such a choice"


@pytest.mark.parametrize("axis", all_axes(), ids=lambda axis: axis.name)
def test_no_proof_is_satisfied_where_nothing_ran(axis: Optimization) -> None:
    """A tiny model in float32 that was loaded and never called, an empty trace, and no counts: float32 is told by the
    loaded model alone."""
    seen = Observation(tiny("llama"), DynamicCache(), Plan(LoadPlan(ModelSource("random"))))
    (finding,) = (one for one in find_all(seen) if one.axis == axis.name)
    rows = {choice.name: Evidence(choice.name, choice.name, finding, axis.off) for choice in axis.choices}
    green = {(axis.name, name) for name, row in rows.items() if row.status == "verified"}
    assert green <= {("dtype", "float32")}, finding
