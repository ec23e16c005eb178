"""Says that the results on a page belong to other settings than those that are shown; the page dims them.

The value names the run that it was computed for: an answer that arrives after another run was started says nothing.
"""

from collections.abc import Sequence

import gradio as gr
import msgspec

from tokendyno.backend.runs.run import Run
from tokendyno.ui.components.scripts import bundle

UNREADABLE = "These results are of an earlier run: what is set now cannot run yet."


class Stale(msgspec.Struct):
    """The value of the component: what is said of that run; "" while the page shows its settings."""

    run: str
    text: str


def stale_line(panel: str, elem_id: str) -> gr.HTML:
    """The component; its value is what `stale_value` returns. `panel`: the id of the panel that shows the run."""
    return gr.HTML(
        value="",
        html_template='<div class="td-line-text" role="status"></div>',
        js_on_load=bundle("stale_line", panel=panel),
        apply_default_css=False,
        elem_id=elem_id,
        elem_classes=["td-line", "td-stale"],
    )


def stale_value(run: Run, changed: Sequence[str] | None) -> str:
    """The component's value for a run. `changed`: what was edited since; None: what is set cannot be read."""
    text = UNREADABLE if changed is None else _sentence(changed)
    return msgspec.json.encode(Stale(run.id, text)).decode()


def unchanged(value: str) -> bool:
    """Whether a run is shown with its settings, by the component's value."""
    return bool(value) and not msgspec.json.decode(value, type=Stale).text


def _sentence(parts: Sequence[str]) -> str:
    if not parts:
        return ""
    what = " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
    return f"You changed {what} since this run. Press Run for new results."
