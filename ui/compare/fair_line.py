"""The line above the results that says in what the arms differ, and with one button makes them the same in the rest."""

import gradio as gr
import msgspec

from tokendyno.backend.views.fairness import Fairness
from tokendyno.ui.components.scripts import bundle


class Same(msgspec.Struct):
    """What a press of its button sends: choices to be set, by axis, of each arm."""

    fix: dict[str, dict[str, str]]


def fair_line() -> gr.HTML:
    """The component; its value is what `fair_value` returns. Its button fires "fix" with `Same`."""
    return gr.HTML(
        value="",
        html_template='<div class="td-fair" role="status"></div>',
        js_on_load=bundle("fair"),
        apply_default_css=False,
        elem_id="same",
        elem_classes=["td-line"],
    )


def fair_value(found: Fairness | None) -> str:
    """The component's value; "" where there is nothing to say."""
    return "" if found is None else msgspec.json.encode(found).decode()
