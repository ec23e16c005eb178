"""The registry of optimizations: every subclass of `Optimization` that a module or folder of `axes/` defines."""

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from typing import Protocol

from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations.base import Choice, Optimization, divided
from tokendyno.backend.optimizations.subject import Subject

__all__ = ["Choice", "Optimization", "Subject"]


@functools.cache
def all_axes() -> tuple[Optimization, ...]:
    """All axes, in the order in which they are shown and edit the plan."""
    package = importlib.import_module(f"{__name__}.axes")
    names = [info.name for info in pkgutil.iter_modules(package.__path__)]
    modules = [importlib.import_module(f"{package.__name__}.{name}") for name in names]
    classes = [kind for module in modules for kind in vars(module).values() if inspect.isclass(kind)]
    own = [kind for kind in classes if kind.__module__.startswith(package.__name__)]  # not the bases that are imported
    axes = [kind() for kind in own if issubclass(kind, Optimization)]
    return tuple(sorted(axes, key=lambda axis: (axis.order, axis.name)))


def prompt_axes() -> tuple[Optimization, ...]:
    """The axes that matter to a single prompt: all but those about many requests."""
    return tuple(axis for axis in all_axes() if not axis.many_requests)


def axis_names() -> tuple[str, ...]:
    return tuple(axis.name for axis in all_axes())


def defaults() -> dict[str, str]:
    return {axis.name: axis.default for axis in all_axes()}


def axis_title(name: str) -> str:
    """What the page calls an axis; the name of one that is no longer there."""
    return next((axis.title for axis in all_axes() if axis.name == name), name)


def choice_title(axis: str, name: str) -> str:
    """What the page calls a choice; its name where there is no such choice any more."""
    name, values = divided(name)
    choices = (choice for known in all_axes() if known.name == axis for choice in known.choices)
    title = next((choice.title for choice in choices if choice.name == name), name)
    return ", ".join([title, *(f"{key}={value}" for key, value in sorted(values.items()))])


def choices_called(alias: str) -> list[tuple[str, str]]:
    """What goes by another name, such as transformers': each axis with its choice, "" for the axis as a whole."""
    alias = alias.casefold()
    return [
        (axis.name, name)
        for axis in all_axes()
        for name in ("", *(choice.name for choice in axis.choices))
        if alias
        in {form.casefold() for known in axis.aliases.get(name, ()) for form in (known, known.partition("(")[0])}
        or (alias == name.casefold() and name not in ("", axis.default))
    ]


def said_of(alias: str) -> str:
    """What transformers 5.22 takes in place of a name, or where else it is set; "" where nothing is known."""
    alias = alias.casefold()
    for axis in all_axes():
        for name, new in axis.renamed.items():
            if name.casefold() == alias:
                return f"In transformers 5.22: {new}."
        for names, sentence in axis.elsewhere.items():
            if alias in {name.casefold() for name in names}:
                return sentence
    return ""


BESIDE = " + "
"""Between the titles of an arm's choices, which may stand in a sentence with commas and semicolons of its own."""


def titles_text(choices: Mapping[str, str]) -> str:
    titles = (f"{axis_title(axis)} {choice_title(axis, choice)}" for axis, choice in choices.items())
    return BESIDE.join(titles) or "defaults"


def subject_of(facts: ModelFacts, machine: Machine, choices: Mapping[str, str], batch_size: int = 1) -> Subject:
    """The subject of an arm's rules: these choices, and the default of every other axis."""
    parts = {axis: divided(choice) for axis, choice in (defaults() | dict(choices)).items()}
    names = {axis: name for axis, (name, _) in parts.items()}
    return Subject(facts, machine, names, batch_size, {axis: values for axis, (_, values) in parts.items() if values})


# --- two arms -------------------------------------------------------------------------------------


class Settled(Protocol):
    """An arm after the rules: for every axis, what was requested and what will be done."""

    @property
    def requested(self) -> Mapping[str, str]: ...
    @property
    def planned(self) -> Mapping[str, str]: ...


def apart(a: Settled, b: Settled) -> dict[str, tuple[str, str]]:
    """Axes on which two arms are planned differently: axis -> choices of A and of B."""
    both = {axis: (choice, b.planned.get(axis, choice)) for axis, choice in a.planned.items()}
    return {axis: pair for axis, pair in both.items() if pair[0] != pair[1]}


def unasked(a: Settled, b: Settled) -> dict[str, tuple[str, str]]:
    """What nobody chose: both arms asked for the same, or one was left at a default that stands for another choice."""
    axes = {axis.name: axis for axis in all_axes()}
    changed = {axis for axis in a.planned if a.requested.get(axis) != b.requested.get(axis)}

    def left_open(arm: Settled, name: str) -> bool:
        axis, planned = axes.get(name), arm.planned[name]
        requested = arm.requested.get(name, planned)
        return axis is not None and requested == axis.default and planned not in (requested, axis.off)

    return {
        name: pair
        for name, pair in apart(a, b).items()
        if name not in changed or (changed != {name} and any(left_open(arm, name) for arm in (a, b)))
    }
