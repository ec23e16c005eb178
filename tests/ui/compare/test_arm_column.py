"""The controls of an arm come from the registry of axes."""

import dataclasses

import gradio as gr
import pytest

from backend.arms.presets import arm_presets
from backend.config import Workload
from backend.optimizations import prompt_axes
from tests.support.machines import CPU
from ui.compare import arm_column, request, unsupported
from ui.compare.work_row import WorkControls


@pytest.fixture
def arm() -> arm_column.ArmControls:
    with gr.Blocks(analytics_enabled=False):
        return arm_column.arm_controls("B", "unwindowed", None, unsupported.titles(None, CPU))


def test_every_axis_has_a_dropdown_with_all_its_choices(arm: arm_column.ArmControls) -> None:
    assert [box.label for box in arm.axes] == [axis.title for axis in prompt_axes()]
    for box, axis in zip(arm.axes, prompt_axes(), strict=True):
        assert box.choices == [(choice.title, choice.name) for choice in axis.choices]
        assert box.elem_id == f"axis-b-{axis.name}"


def test_an_arm_begins_at_its_preset(arm: arm_column.ArmControls) -> None:
    assert [box.value for box in arm.axes] == request.choice_values(request.preset_choices("unwindowed"))
    assert arm.preset.value == "unwindowed"
    assert [name for _, name in arm.preset.choices] == [*(preset.name for preset in arm_presets()), request.CUSTOM]


def test_a_new_axis_needs_no_change_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    more = (*prompt_axes(), prompt_axes()[0])
    monkeypatch.setattr(arm_column, "prompt_axes", lambda: more)
    monkeypatch.setattr(request, "prompt_axes", lambda: more)
    monkeypatch.setattr(unsupported, "prompt_axes", lambda: more)
    with gr.Blocks(analytics_enabled=False):
        assert len(arm_column.arm_controls("A", "baseline", None, unsupported.titles(None, CPU)).axes) == len(more)


def test_there_is_a_field_for_everything_in_a_workload() -> None:
    assert set(request.Fields._fields) == {"model"} | {field.name for field in dataclasses.fields(Workload)}
    assert request.Fields._fields == WorkControls._fields
