"""Context and batch size: two sliders with logarithmic steps, each with a field for the exact number.

The value is JSON (`request.Amounts`). The browser writes it; a change fires the event "input" when nothing has moved
for a moment. The context's end is the number of the model's positions, which the answer names ("tokendyno-fit").
"""

from pathlib import Path

import gradio as gr

from tokendyno.backend.config import MAX_BATCH_SIZE
from tokendyno.ui.fit.request import write_amounts

SCRIPT = Path(__file__).resolve().parent / "js" / "amounts.js"

_TEMPLATE = """
<div class="td-amounts">
  <fieldset class="td-amount" data-name="context"><legend>Context</legend>
    <input type="range" min="0" step="1" aria-label="Context in tokens, in logarithmic steps">
    <input type="number" min="1" step="1" inputmode="numeric" aria-label="Context in tokens, exactly">
    <small></small>
  </fieldset>
  <fieldset class="td-amount" data-name="batch" data-most="MOST"><legend>Batch size</legend>
    <input type="range" min="0" step="1" aria-label="Batch size, in logarithmic steps">
    <input type="number" min="1" step="1" inputmode="numeric" aria-label="Batch size, exactly">
    <small></small>
  </fieldset>
</div>
"""


def amounts_input() -> gr.HTML:
    """The component."""
    return gr.HTML(
        value=write_amounts(None, 1),
        html_template=_TEMPLATE.replace("MOST", str(MAX_BATCH_SIZE)),  # an event's answer may empty `props`
        js_on_load=SCRIPT.read_text(encoding="utf-8"),
        apply_default_css=False,
        elem_id="fit-amounts",
    )
