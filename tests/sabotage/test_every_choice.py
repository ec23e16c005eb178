"""Every choice of every axis has a saboteur, or a stated reason; and no proof is satisfied by nothing."""

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest
from transformers import DynamicCache

from backend.evidence import Evidence
from backend.models.source import ModelSource
from backend.optimizations import Observation, Optimization, all_axes
from backend.plan import LoadPlan, Plan
from backend.worker.prove.findings import find_all
from tests.sabotage.saboteur import Sabotage
from tests.support.tiny_models import tiny

HERE = Path(__file__).parent
CHOICES = [(axis.name, choice.name) for axis in all_axes() for choice in axis.choices]
OFF = {(axis.name, axis.off) for axis in all_axes() if axis.off}
"""Choices with which nothing is done: their row is never green, so there is nothing to break."""


def modules() -> list[ModuleType]:
    names = [f"tests.sabotage.{file.stem}" for file in sorted(HERE.glob("test_*.py")) if file != Path(__file__)]
    names += [f"tests.gpu.{file.stem}" for file in sorted((HERE.parent / "gpu").glob("test_sabotage*.py"))]
    return [importlib.import_module(name) for name in names]


SABOTEURS: list[Sabotage] = [one for module in modules() for one in getattr(module, "SABOTEURS", ())]
REASONS: dict[tuple[str, str], str] = {
    key: reason for module in modules() for key, reason in getattr(module, "REASONS", {}).items()
}


@pytest.mark.parametrize(("axis", "choice"), CHOICES, ids=[f"{axis}={choice}" for axis, choice in CHOICES])
def test_a_choice_has_a_saboteur_or_a_reason(axis: str, choice: str) -> None:
    broken = any((one.axis, one.choice) == (axis, choice) for one in SABOTEURS)
    said = REASONS.get((axis, choice), "")
    assert broken or said or (axis, choice) in OFF, "nobody breaks it, and nobody says why"
    assert not (broken and said), "it is broken after all: the reason is out of date"


BY_LAYER = ("dtype", "quantization", "attention", "kernels", "experts", "projections", "parallel", "cache")
"""Axes that reach some layers or all of them."""
LEVELS = {"one": "one", "half": "half", "whole": "all|removed|measured run|does nothing|nothing is"}
"""How much of a model is broken, and how a manner says so."""
UNLEVELLED = {
    ("dtype", "auto"): "It is bfloat16 or float32 by another name, both of which are broken at every level.",
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("axis", "choice"), sorted({(one.axis, one.choice) for one in SABOTEURS if one.axis in BY_LAYER})
)
def test_what_reaches_layers_is_broken_in_one_in_half_and_whole(axis: str, choice: str, level: str) -> None:
    if (axis, choice) in UNLEVELLED:
        return
    manners = [one.manner for one in SABOTEURS if (one.axis, one.choice) == (axis, choice)]
    assert any(re.search(rf"\b({LEVELS[level]})\b", manner) for manner in manners), manners


def test_what_is_registered_exists() -> None:
    known = {(one.axis, one.choice) for one in SABOTEURS} | set(REASONS)
    assert known <= set(CHOICES)
    assert all(reason.endswith(".") for reason in REASONS.values())


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__.rpartition(".")[2])
def test_a_file_that_lists_sabotage_runs_it(module: ModuleType) -> None:
    listed = getattr(module, "SABOTEURS", None)
    if not listed:
        return
    for name in ("test_sabotage_turns_the_row", "test_the_control_is_verified"):
        (mark,) = (m for m in getattr(module, name).pytestmark if m.name == "parametrize")
        arms = {parameter.values[0].arm for parameter in mark.args[1]}
        assert arms == {one.arm for one in listed}
    assert len({(one.arm, one.manner) for one in listed}) == len(listed), "two have the same name"


TOLD_BY_THE_MODEL = {("dtype", "float32")}
"""Choices of which a loaded model that never ran is proof enough."""


@pytest.mark.parametrize("axis", all_axes(), ids=lambda axis: axis.name)
def test_no_proof_is_satisfied_where_nothing_ran(axis: Optimization) -> None:
    """A tiny model in float32 that was loaded and never called, an empty trace, and no counts."""
    seen = Observation(tiny("llama"), DynamicCache(), Plan(LoadPlan(ModelSource("random"))))
    (finding,) = (one for one in find_all(seen) if one.axis == axis.name)
    rows = {choice.name: Evidence(choice.name, choice.name, finding, axis.off) for choice in axis.choices}
    green = {(axis.name, name) for name, row in rows.items() if row.status == "verified"}
    assert green <= TOLD_BY_THE_MODEL, finding
