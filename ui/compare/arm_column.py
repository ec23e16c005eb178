"""One arm's column: its chips, and behind "All axes" a preset and a dropdown per axis, as the registry lists them."""

from collections.abc import Mapping
from typing import NamedTuple

import gradio as gr
import msgspec

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
from tokendyno.ui.compare.verdicts import unchecked, verdict_box
from tokendyno.ui.components.scripts import bundle


class ArmControls(NamedTuple):
    """One arm: its preset, a dropdown for each axis in the registry's order, the button that folds the less relevant
    ones, and the verdicts of the rules."""

    name: str
    preset: gr.Dropdown
    axes: list[gr.Dropdown]
    fold: gr.HTML
    verdicts: gr.HTML


def arm_controls(name: str, preset: str, facts: ModelFacts | None, titles: "Titles") -> ArmControls:
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
                    allow_custom_value=any(choice.values for choice in axis.choices),
                    elem_id=f"axis-{arm}-{axis.name}",
                )
                for axis, choice_titles, value in zip(prompt_axes(), titles.choices, values, strict=True)
            ]
        fold = fold_button(arm, choices, facts)
    return ArmControls(name, presets, dropdowns, fold, verdicts)


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


# --- folding --------------------------------------------------------------------------------------


class Fold(msgspec.Struct):
    """The folded axes of an arm, by name."""

    arm: str
    folded: list[str]


def fold_button(arm: str, choices: Mapping[str, str], facts: ModelFacts | None) -> gr.HTML:
    """The component; its value is what `folded` returns. Its template hides the axes before any script has run."""
    names = folded_axes(choices, facts)
    hidden = ", ".join(f"#axis-{arm}-{name}" for name in names) or "#none"
    return gr.HTML(
        value=folded(arm, choices, facts),
        html_template="<style>" + hidden + " { display: none !important; }</style>"
        f'<button type="button" class="td-more" aria-expanded="false" aria-controls="axes-{arm}">'
        f"More options ({len(names)}) \u25be</button>",
        js_on_load=bundle("fold"),
        apply_default_css=False,
        elem_id=f"fold-{arm}",
        elem_classes=["td-fold"],
    )


def folded(arm: str, choices: Mapping[str, str], facts: ModelFacts | None) -> str:
    """The component's value. `arm`: "a" or "b", as in the ids of the controls."""
    return msgspec.json.encode(Fold(arm, folded_axes(choices, facts))).decode()


def folded_axes(choices: Mapping[str, str], facts: ModelFacts | None) -> list[str]:
    """Axes that are folded: those that do not lead or make no difference for this model, unless they were set."""
    return [
        axis.name
        for axis in prompt_axes()
        if choices.get(axis.name, axis.default) == axis.default
        and not (axis.leading and (facts is None or axis.matters(facts)))
    ]
