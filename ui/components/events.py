"""How the page's events are wired."""

from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr
import msgspec

from tokendyno.ui.components.html import component

QUIET: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
"""Of every event of the page. None goes through Gradio's queue: its client does not open a stream of answers while it
believes the last one open, so that a press whose answer was late by milliseconds was never answered."""


CHANGED = """() => {
  (window.tokendynoChanged ??= new Set()).add('PAGE');
  document.dispatchEvent(new Event('tokendyno-changed'));
  return [];
}"""


UNFOLD = """() => {
  const button = document.querySelector('#BOX-button'), box = document.querySelector('#BOX');
  button.setAttribute('aria-expanded', String(box.classList.toggle('td-open')));
}"""


FOCUS_RUN = """() => {
  let tries = 40;
  const go = () => {
    const buttons = [...document.querySelectorAll('#run, #stop, #batch-run, #batch-stop, #advise .td-worth-begin')];
    const run = buttons.find(one => one.offsetParent && !one.disabled);
    if (run) { run.focus(); run.scrollIntoView({ block: 'nearest' }); }
    else if (tries-- > 0) setTimeout(go, 50);
  };
  go();
  return [];
}"""
"""Puts the focus where the visitor goes on, once that page is shown: on Run, or on Stop where a run has begun."""


def unfolds(button: gr.Button, box: str) -> None:
    """A press of the button, whose id is the box's with "-button", shows the box, or hides it."""
    button.click(None, None, None, js=UNFOLD.replace("BOX", box), **QUIET)


def fills(preset: gr.Dropdown, controls: Sequence[Any], known: Mapping[str, Sequence[object]]) -> Any:
    """A preset fills the controls that it decides, in the browser: an answer could overwrite the visitor's next keys.
    `known`: their values by preset. Returns the event."""
    fill = f"(name) => ({msgspec.json.encode(known).decode()})[name]"
    # "select", not "input": Gradio also sends "input" when the focus leaves the list
    return preset.select(None, preset, controls, js=fill, **QUIET)


class Settled:
    """One event for all controls of a page that change at about the same time, as when a story or a run sets them.

    Gradio sends a request for each of them, side by side although the trigger mode is `always_last`, and shows the
    answers in the order in which they come: that to older values may be the last.

    changed  JavaScript of an event after which there is something to look at
    box      fires "settled" a moment after the last change
    """

    def __init__(self, page: str) -> None:
        self.changed = CHANGED.replace("PAGE", page)
        self.box = component("settled", "", f"settled-{page}", page=page)

    def after(self, changes: Sequence[Any]) -> Any:
        """The event "settled" after these changes, to be listened to like a control's."""
        gr.on(changes, None, None, None, js=self.changed, trigger_mode="multiple", **QUIET)
        return self.box.settled
