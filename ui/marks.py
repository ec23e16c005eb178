"""Titles of presets and choices; what this model cannot use on this machine is marked."""

from typing import NamedTuple

from backend.arms import make_config
from backend.config import Workload
from backend.doctor import usable_choices
from backend.hardware import Machine
from backend.models import ModelFacts
from backend.optimizations import axes
from backend.presets import arm_presets
from backend.rules import check

NOT_HERE = " \u2715"
"""The sign of a blocked verdict, behind a title."""


class Titles(NamedTuple):
    """(title, name) of every preset, and of every choice, axis by axis."""

    presets: list[tuple[str, str]]
    choices: list[list[tuple[str, str]]]


def titles(facts: ModelFacts | None, machine: Machine) -> Titles:
    """What stands in the lists; unmarked where the model is not known."""
    rows = [] if facts is None else usable_choices(facts, machine)
    blocked = {(row.axis, row.choice) for row in rows if row.blocked}
    return Titles(
        [(preset.title + NOT_HERE * _refused(facts, machine, preset.choices), preset.name) for preset in arm_presets()],
        [
            [(choice.title + NOT_HERE * ((axis.name, choice.name) in blocked), choice.name) for choice in axis.choices]
            for axis in axes()
        ],
    )


def _refused(facts: ModelFacts | None, machine: Machine, choices: dict[str, str]) -> bool:
    if facts is None:
        return False
    return bool(check(make_config(facts.model, choices), facts, machine, Workload(prompt="?")).blocked)
