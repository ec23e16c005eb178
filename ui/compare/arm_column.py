"""One arm's column: its chips, and behind "All axes" a preset and a dropdown per axis, as the registry lists them."""

from typing import NamedTuple

import gradio as gr

from tokendyno.backend import hardware
from tokendyno.backend.arms.bundles import grant
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.arms.presets import ArmPreset, arm_presets
from tokendyno.backend.arms.usable import usable_choices
from tokendyno.backend.config import ArmRequest, Workload
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations import prompt_axes
from tokendyno.ui.compare.request import CUSTOM, choice_values, preset_choices
from tokendyno.ui.compare.verdicts import describe, verdict_box
from tokendyno.ui.run_page import axis_dropdown


class ArmControls(NamedTuple):
    """One arm: its preset, a dropdown for each axis in the registry's order, and the verdicts of the rules."""

    name: str
    preset: gr.Dropdown
    axes: list[gr.Dropdown]
    verdicts: gr.HTML


def arm_controls(name: str, preset: str, facts: ModelFacts | None, titles: "Titles") -> ArmControls:
    """A column for one arm, set to a preset. `facts`: of the model that is selected when the page opens."""
    arm, chosen = name.lower(), preset_choices(preset, facts, hardware.detect())
    values = choice_values(chosen)
    with gr.Column(elem_id=f"arm-{arm}", elem_classes=["td-card", f"arm-{arm}"], min_width=300):
        verdicts = verdict_box(f"verdicts-{arm}", describe(ArmRequest(name, chosen), preset, None))
        with gr.Row(elem_id=f"axes-{arm}", elem_classes=["td-axes"]):
            presets = gr.Dropdown(
                [*titles.presets, (CUSTOM, CUSTOM)],
                value=preset,
                label=f"Arm {name}",
                min_width=96,
                elem_id=f"preset-{arm}",
                elem_classes=["td-preset"],
            )
            entries = zip(prompt_axes(), titles.choices, values, strict=True)
            dropdowns = [axis_dropdown(axis, choices, value, arm) for axis, choices, value in entries]
    return ArmControls(name, presets, dropdowns, verdicts)


# --- titles: what cannot run here has a sign -------------------------------------------------------

UNSUPPORTED = " \u2715"
"""The sign of a blocked verdict, behind a title."""


class Titles(NamedTuple):
    """(title, name) of every preset, and of every choice, axis by axis."""

    presets: list[tuple[str, str]]
    choices: list[list[tuple[str, str]]]


def titles(facts: ModelFacts | None, machine: Machine) -> Titles:
    """The entries of the dropdowns; without a sign where the model is not known."""
    rows = [] if facts is None else usable_choices(facts, machine)
    blocked = {(row.axis, row.choice) for row in rows if row.blocked}
    return Titles(
        [(preset.title + UNSUPPORTED * _blocked(facts, machine, preset), preset.name) for preset in arm_presets()],
        [
            [
                (choice.title + UNSUPPORTED * ((axis.name, choice.name) in blocked), choice.name)
                for choice in axis.choices
            ]
            for axis in prompt_axes()
        ],
    )


def _blocked(facts: ModelFacts | None, machine: Machine, preset: ArmPreset) -> bool:
    if facts is None:
        return False
    work = Workload(prompt="?")
    choices = grant(preset, facts, machine, work).choices
    return bool(check(make_config(facts.model, choices), facts, machine, work).blocked)
