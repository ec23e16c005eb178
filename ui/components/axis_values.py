"""The values of the controls of an arm, one for each of some axes, as choices and back. Every value is untrusted."""

from collections.abc import Mapping, Sequence

import gradio as gr

from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.optimizations.base import Optimization, divided
from tokendyno.ui.components.inputs import read_text
from tokendyno.ui.errors import Updates


def choices_of(axes: Sequence[Optimization], values: Sequence[object]) -> dict[str, str]:
    """The choices that differ from the default, by axis. InputError for what is no choice."""
    named = {axis.name: read_text(axis.title, value) for axis, value in zip(axes, values, strict=True)}
    return dict(make_config("", named).choices)


def values_of(axes: Sequence[Optimization], choices: Mapping[str, str]) -> list[str]:
    """One value for each axis, its default where nothing was chosen."""
    return [choices.get(axis.name, axis.default) for axis in axes]


def all_known(axes: Sequence[Optimization], choices: Mapping[str, str]) -> bool:
    """Whether the controls can show these choices: those of an old run may no longer exist."""
    known = {axis.name: {choice.name for choice in axis.choices} for axis in axes}
    return all(divided(choice)[0] in known.get(axis, ()) for axis, choice in choices.items())


def edited(
    axes: Sequence[Optimization], controls: Sequence[gr.Dropdown], values: Sequence[object], choices: Mapping[str, str]
) -> Updates:
    """Updates of the controls of the axes in `choices`; others are left alone. InputError for what is no choice."""
    before = dict(zip((axis.name for axis in axes), values, strict=True))
    after = values_of(axes, choices_of(axes, [{**before, **choices}[axis.name] for axis in axes]))
    return {control: value for axis, control, value in zip(axes, controls, after, strict=True) if axis.name in choices}
