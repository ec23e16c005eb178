"""How the page's events are wired."""

from collections.abc import Sequence
from typing import Any

import gradio as gr

from tokendyno.ui.components.scripts import bundle

QUIET: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
"""Of every event of the page. None goes through Gradio's queue: its client does not open a stream of answers while it
believes the last one open, so that a press whose answer was late by milliseconds was never answered."""


CHANGED = """() => {
  (window.tokendynoChanged ??= new Set()).add('PAGE');
  document.dispatchEvent(new Event('tokendyno-changed'));
  return [];
}"""


class Settled:
    """One event for all controls of a page that change at about the same time, as when a story or a run sets them.

    Gradio sends a request for each of them, side by side although the trigger mode is `always_last`, and shows the
    answers in the order in which they come: that to older values may be the last.

    changed  JavaScript of an event after which there is something to look at
    box      fires "settled" a moment after the last change
    """

    def __init__(self, page: str) -> None:
        self.changed = CHANGED.replace("PAGE", page)
        self.box = gr.HTML(
            value="",
            html_template="",
            js_on_load=bundle("settled", page=page),
            apply_default_css=False,
            elem_id=f"settled-{page}",
        )

    def after(self, changes: Sequence[Any]) -> Any:
        """The event "settled" after these changes, to be listened to like a control's."""
        gr.on(changes, None, None, None, js=self.changed, trigger_mode="multiple", **QUIET)
        return self.box.settled
