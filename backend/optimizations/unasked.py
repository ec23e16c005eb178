"""In what two arms differ although nobody chose it, such as what "auto" came to."""

from collections.abc import Mapping
from typing import Protocol

from tokendyno.backend.optimizations import all_axes


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
