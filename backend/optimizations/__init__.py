"""The registry of optimizations: every module of this folder that defines `AXIS`, found by discovery."""

import functools
import importlib
import pkgutil

from backend.optimizations.base import Choice, Optimization, Rule, Seen, Subject

__all__ = ["Choice", "Optimization", "Rule", "Seen", "Subject", "axes", "axis_names"]


@functools.cache
def axes() -> tuple[Optimization, ...]:
    """All axes, in the order in which they are shown and edit the plan."""
    found: list[Optimization] = []
    for info in pkgutil.iter_modules(__path__):
        axis = getattr(importlib.import_module(f"{__name__}.{info.name}"), "AXIS", None)
        if axis is not None:
            found.append(axis)
    return tuple(sorted(found, key=lambda axis: (axis.order, axis.name)))


def axis_names() -> tuple[str, ...]:
    """Names of all axes, in order."""
    return tuple(axis.name for axis in axes())
