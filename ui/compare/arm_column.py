"""One arm's column: its chips, and behind "All axes" a preset and a dropdown per axis, as the registry lists them."""

from typing import NamedTuple

import gradio as gr

from backend import hardware
from backend.config import ArmRequest
from backend.models import ModelFacts
from backend.optimizations import prompt_axes
from ui.compare.fold import fold_button
from ui.compare.request import CUSTOM, choice_values, preset_choices
from ui.compare.unsupported import Titles
from ui.compare.verdicts import unchecked, verdict_box


class ArmControls(NamedTuple):
    """One arm: its preset, a dropdown for each axis in the registry's order, the button that folds the less relevant
    ones, and the verdicts of the rules."""

    name: str
    preset: gr.Dropdown
    axes: list[gr.Dropdown]
    fold: gr.HTML
    verdicts: gr.HTML


def arm_controls(name: str, preset: str, facts: ModelFacts | None, titles: Titles) -> ArmControls:
    """A column for one arm, set to a preset. `facts`: of the model that is selected when the page opens."""
    arm, choices = name.lower(), preset_choices(preset, facts, hardware.detect())
    values = choice_values(choices)
    with gr.Column(elem_id=f"arm-{arm}", elem_classes=["td-card", f"arm-{arm}"], min_width=300):
        verdicts = verdict_box(f"verdicts-{arm}", unchecked(ArmRequest(name, choices)))
        with gr.Row(elem_id=f"axes-{arm}", elem_classes=["td-axes"]):
            presets = gr.Dropdown(
                [*titles.presets, (CUSTOM, CUSTOM)],
                value=preset,
                label=f"Arm {name}",
                min_width=96,
                elem_id=f"preset-{arm}",
                elem_classes=["td-preset"],
            )
            dropdowns = [
                gr.Dropdown(
                    choice_titles,
                    value=value,
                    label=axis.title,
                    min_width=96,
                    elem_id=f"axis-{arm}-{axis.name}",
                )
                for axis, choice_titles, value in zip(prompt_axes(), titles.choices, values, strict=True)
            ]
        fold = fold_button(arm, choices, facts)
    return ArmControls(name, presets, dropdowns, fold, verdicts)
