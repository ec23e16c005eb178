"""One arm's column: what it is in short, a dropdown for each axis about many requests, behind "All axes" the others."""

from collections.abc import Mapping
from typing import NamedTuple

import gradio as gr

from tokendyno.backend.config import ArmRequest
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations import all_axes, subject_of
from tokendyno.backend.optimizations.base import Optimization
from tokendyno.ui.batching.request import batch_axes, choice_values
from tokendyno.ui.compare.verdicts import describe_titled, verdict_box
from tokendyno.ui.run_page import axis_dropdown


class BatchArm(NamedTuple):
    """The dropdowns of an arm in the order of `batch_axes`, and what it is in short."""

    name: str
    axes: list[gr.Dropdown]
    verdicts: gr.HTML

    @property
    def key(self) -> str:
        """How ids of this page call the arm."""
        return f"batch-{self.name.lower()}"


def batch_arm(name: str, choices: Mapping[str, str], facts: ModelFacts | None, machine: Machine) -> BatchArm:
    """A column for one arm. `facts`: of the model that is selected when the page opens."""
    key, shown = f"batch-{name.lower()}", offered(choices, facts, machine)
    values = dict(zip(batch_axes(), choice_values(choices), strict=True))

    def dropdown(axis: Optimization) -> gr.Dropdown:
        titles = [(choice.title, choice.name) for choice in axis.choices]
        visible = not axis.many_requests or axis.name in shown
        return axis_dropdown(axis, titles, values[axis], key, visible=visible)

    with gr.Column(elem_id=f"arm-{key}", elem_classes=["td-card", f"arm-{name.lower()}"], min_width=300):
        asked = ArmRequest(name, dict(choices))
        verdicts = verdict_box(f"verdicts-{key}", describe_titled(asked, arm_title(choices), key, None))
        with gr.Row(elem_classes=["td-lead"]):
            made = {axis: dropdown(axis) for axis in batch_axes() if axis.many_requests}
        with gr.Row(elem_id=f"axes-{key}", elem_classes=["td-axes"]):
            made |= {axis: dropdown(axis) for axis in batch_axes() if not axis.many_requests}
    return BatchArm(name, [made[axis] for axis in batch_axes()], verdicts)


def offered(choices: Mapping[str, str], facts: ModelFacts | None, machine: Machine) -> set[str]:
    """The axes about many requests that have something to choose for this arm, or were set."""
    subject = None if facts is None else subject_of(facts, machine, choices)
    found = set()
    for axis in batch_axes():
        usable = any(
            choice.name != axis.default
            and not (subject and any(verdict.level == "blocked" for verdict in axis.verdicts(choice.name, subject)))
            for choice in axis.choices
        )
        if axis.many_requests and (usable or choices.get(axis.name, axis.default) != axis.default):
            found.add(axis.name)
    return found


def arm_title(choices: Mapping[str, str]) -> str:
    """How an arm batches, in words."""
    axis = next(one for one in all_axes() if one.name == "batching")
    title = axis.choice(choices.get(axis.name, axis.default)).title
    return "One after the other" if title == axis.off else f"{title.capitalize()} batching"
