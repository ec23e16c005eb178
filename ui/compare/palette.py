"""The searchable list of what can be added to an arm: one dialog for both arms.

It opens on the window event "tokendyno-palette", which names the arm. What is taken fires the event "take" with the
arm, the choices, and whether they replace the whole arm.
"""

import gradio as gr
import msgspec

from tokendyno.backend import hardware
from tokendyno.backend.arms.palette import Entry, palette
from tokendyno.backend.models import ModelFacts
from tokendyno.ui.components.scripts import bundle

_TEMPLATE = """
<dialog class="td-palette" aria-label="What can be added to an arm">
  <header><h2></h2><button type="button" class="td-close" aria-label="Close">\u2715</button></header>
  <input type="search" placeholder="Search: fast, int8, cache, graph ..." aria-label="Search optimizations and presets">
  <nav class="td-jumps" aria-label="Groups"></nav>
  <div class="td-entries"></div>
</dialog>
"""


class Taken(msgspec.Struct):
    """What the browser sends when an entry was taken."""

    arm: str
    choices: dict[str, str]
    whole: bool


def palette_dialog(facts: ModelFacts | None) -> gr.HTML:
    """The component; its value is what `entries` returns."""
    return gr.HTML(
        value=entries(facts),
        html_template=_TEMPLATE,
        js_on_load=bundle("palette"),
        apply_default_css=False,
        elem_id="palette",
    )


def entries(facts: ModelFacts | None) -> str:
    """The component's value: all entries for this model here; none for a model that is not known."""
    found: list[Entry] = [] if facts is None else palette(facts, hardware.detect())
    return msgspec.json.encode(found).decode()
