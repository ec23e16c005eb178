"""Controls come from the registry, and the page names every one of them."""

import dataclasses

import gradio as gr
import pytest

from backend.config import Workload
from backend.optimizations import axes
from backend.presets import arm_presets
from tests.facts import CPU
from ui import controls, form, marks


@pytest.fixture
def arm() -> controls.ArmControls:
    with gr.Blocks(analytics_enabled=False):
        return controls.arm_controls("B", "unwindowed", None, marks.titles(None, CPU))


def test_every_axis_has_a_dropdown_with_all_its_choices(arm: controls.ArmControls) -> None:
    assert [box.label for box in arm.axes] == [axis.title for axis in axes()]
    for box, axis in zip(arm.axes, axes(), strict=True):
        assert box.choices == [(choice.title, choice.name) for choice in axis.choices]
        assert box.elem_id == f"axis-b-{axis.name}"


def test_an_arm_begins_at_its_preset(arm: controls.ArmControls) -> None:
    assert [box.value for box in arm.axes] == form.choice_values(form.preset_choices("unwindowed"))
    assert arm.preset.value == "unwindowed"
    assert [name for _, name in arm.preset.choices] == [*(preset.name for preset in arm_presets()), form.CUSTOM]


def test_a_new_axis_needs_no_change_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    more = (*axes(), axes()[0])
    monkeypatch.setattr(controls, "axes", lambda: more)
    monkeypatch.setattr(form, "axes", lambda: more)
    monkeypatch.setattr(marks, "axes", lambda: more)
    with gr.Blocks(analytics_enabled=False):
        assert len(controls.arm_controls("A", "baseline", None, marks.titles(None, CPU)).axes) == len(more)


def test_the_form_has_a_field_for_everything_in_a_workload() -> None:
    assert set(form.Fields._fields) == {"model"} | {field.name for field in dataclasses.fields(Workload)}
    assert form.Fields._fields == controls.WorkControls._fields
