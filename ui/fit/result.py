"""The answer on the Fit page: a chart of bars against lines of memory, and the table, which says the same in text.

The value is JSON (`tokendyno.backend.fit.view.FitView`), "" for none. "Run this" fires "take" with the row's choices.
"""

from pathlib import Path

import gradio as gr
import msgspec

from tokendyno.backend.fit.view import FitView
from tokendyno.ui.components.scripts import with_helper

SCRIPTS = [Path(__file__).resolve().parent / "js" / f"{name}.js" for name in ("chart", "table", "result")]

_TEMPLATE = """
<div class="td-fit">
  <figure class="td-fit-chart" aria-hidden="true">
    <figcaption><span class="td-legend"></span></figcaption>
    <div class="td-axis"></div>
    <div class="td-bars"></div>
  </figure>
  <p class="td-fit-tools"><button type="button" class="td-all" aria-pressed="false"></button>
    <span class="td-fit-hint"></span></p>
  <div class="td-fit-rows" role="region" tabindex="0" aria-label="What fits: every figure of the chart as text"></div>
</div>
"""


def fit_result() -> gr.HTML:
    """The component."""
    return gr.HTML(
        value="",
        html_template=_TEMPLATE,
        js_on_load=with_helper(SCRIPTS),
        apply_default_css=False,
        elem_id="fit-result",
    )


def encode(shown: FitView) -> str:
    """The component's value."""
    return msgspec.json.encode(shown).decode()
