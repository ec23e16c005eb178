"""Which choices this machine can run, and why not the others."""

from collections.abc import Mapping
from dataclasses import dataclass

from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations import Optimization, all_axes, subject_of


@dataclass(frozen=True, slots=True)
class Usable:
    """One choice of one axis on this machine.

    blocked  it would be refused; a choice that is neither usable nor blocked falls back
    needs    choices of other axes that it requires
    """

    axis: str
    choice: str
    usable: bool
    why: str
    blocked: bool
    needs: Mapping[str, str]


def usable_choices(facts: ModelFacts, machine: Machine) -> list[Usable]:
    """Every choice of every axis with this model on this machine, together with other choices that it requires."""
    return [
        usable_choice(axis, choice.name, choice.example or choice.name, facts, machine)
        for axis in all_axes()
        for choice in axis.choices
    ]


def usable_choice(axis: Optimization, name: str, written: str, facts: ModelFacts, machine: Machine) -> Usable:
    """Whether one choice can run, as it is `written`: with its values."""
    verdicts = axis.verdicts(written, subject_of(facts, machine, {axis.name: written}))
    needs = {a: c for v in verdicts for a, c in v.fix.items() if v.level == "blocked" and a != axis.name}
    reasons = [v.reason for v in verdicts]
    if needs:
        wanted = ", ".join(f"{a}={c}" for a, c in needs.items())
        subject = subject_of(facts, machine, {**needs, axis.name: written})
        verdicts = axis.verdicts(written, subject)
        reasons = [f"with {wanted}", *(v.reason for v in verdicts)]
    usable = all(v.level in ("ok", "note") for v in verdicts)
    blocked = any(v.level == "blocked" for v in verdicts)
    return Usable(axis.name, name, usable, " ".join(reasons), blocked, needs)
