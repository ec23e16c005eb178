"""The controls of an arm: what a press changes, and what they can show."""

from typing import Any

import gradio as gr
import pytest

from tokendyno.backend.optimizations import prompt_axes
from tokendyno.ui.components.axis_values import all_known, edited, values_of

AXES = prompt_axes()
BEFORE = {"cache": "static", "compile": "default"}


@pytest.fixture(scope="module")
def controls() -> list[Any]:
    with gr.Blocks(analytics_enabled=False):
        return [gr.Dropdown([], elem_id=axis.name) for axis in AXES]


def test_a_press_changes_what_it_asks_for_and_leaves_what_was_pressed_before_it_alone(controls: list[Any]) -> None:
    updates = edited(AXES, controls, values_of(AXES, BEFORE), {"cache": "dynamic"})
    assert {control.elem_id: value for control, value in updates.items()} == {"cache": "dynamic"}


@pytest.mark.parametrize(
    ("choices", "known"), [(BEFORE, True), ({}, True), ({"cache": "gone"}, False), ({"gone": "static"}, False)]
)
def test_controls_show_what_still_exists(choices: dict[str, str], known: bool) -> None:
    assert all_known(AXES, choices) == known
