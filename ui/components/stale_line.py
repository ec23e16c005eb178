"""Says that the results on a page belong to other settings than those that are shown; the page dims them.

The value names the run that it was computed for: an answer that arrives after another run was started says nothing.
"""

from collections.abc import Sequence

import gradio as gr
import msgspec

from tokendyno.backend.config import ArmRequest, Request
from tokendyno.backend.optimizations import defaults
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.ledger import and_list
from tokendyno.ui.components.html import component

UNREADABLE = "These results are of an earlier run: what is set now cannot run yet."


class Stale(msgspec.Struct):
    """The value of the component: what is said of that run; "" while the page shows its settings."""

    run: str
    text: str


def stale_line(panel: str, elem_id: str) -> gr.HTML:
    """The component; its value is what `stale_value` returns. `panel`: the id of the panel that shows the run."""
    template = '<div class="td-line-text" role="status"></div>'
    return component("stale_line", template, elem_id, classes=["td-line", "td-stale"], panel=panel)


def stale_value(run: Run | None, changed: Sequence[str] | None) -> str:
    """The component's value for a run. `changed`: what was edited since; None: what is set cannot be read."""
    if run is None:
        return ""
    text = ""
    if changed is None:
        text = UNREADABLE
    elif changed:
        text = f"You changed {and_list(changed)} since this run. Press Run for new results."
    return msgspec.json.encode(Stale(run.id, text)).decode()


def unchanged(value: str) -> bool:
    """Whether a run is shown with its settings, by the component's value."""
    return bool(value) and not msgspec.json.decode(value, type=Stale).text


def changed_since(ran: Request, request: Request, workload: Sequence[str]) -> list[str]:
    """What was edited since that run. `workload`: what of the workload, by name; how many pairs may be run, and for
    how long, does not count."""
    return [
        *(["the model"] if ran.model != request.model else []),
        *workload,
        *(["the price"] if ran.price_per_hour != request.price_per_hour and ran.quality is None else []),
        *(f"arm {name}" for name in changed_arms(ran.arms, request.arms)),
    ]


def changed_arms(ran: Sequence[ArmRequest], arms: Sequence[ArmRequest]) -> list[str]:
    """Names of the arms that were edited since a run of them."""
    default = defaults()

    def arm_choices(arms: Sequence[ArmRequest]) -> dict[str, dict[str, str]]:
        return {
            arm.name: {axis: choice for axis, choice in arm.choices.items() if choice != default.get(axis)}
            for arm in arms
        }

    before, now = arm_choices(ran), arm_choices(arms)
    return [name for name, choices in now.items() if before.get(name, choices) != choices]
