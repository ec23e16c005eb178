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
    asked = {axis for axis in a.planned if a.requested.get(axis) != b.requested.get(axis)}

    def left_open(arm: Settled, axis: str) -> bool:
        known, planned = axes.get(axis), arm.planned[axis]
        requested = arm.requested.get(axis, planned)
        return known is not None and requested == known.default and planned not in (requested, known.off)

    return {
        axis: pair
        for axis, pair in apart(a, b).items()
        if axis not in asked or (asked != {axis} and any(left_open(arm, axis) for arm in (a, b)))
    }
