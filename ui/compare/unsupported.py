"""Titles of presets and choices, with a sign behind those that cannot run with this model on this machine."""

from typing import NamedTuple

from backend.arms.bundles import grant
from backend.arms.check import check
from backend.arms.parse import make_config
from backend.arms.presets import ArmPreset, arm_presets
from backend.arms.usable import usable_choices
from backend.config import Workload
from backend.hardware import Machine
from backend.models import ModelFacts
from backend.optimizations import prompt_axes

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
