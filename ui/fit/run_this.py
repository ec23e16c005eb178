""" "Run this": a row of the Fit page becomes arm B of the Compare page, with its model and batch size."""

import gradio as gr

from tokendyno.backend.errors import InputError
from tokendyno.ui.compare.page import CompareControls
from tokendyno.ui.compare.request import choice_values
from tokendyno.ui.components.events import QUIET
from tokendyno.ui.components.inputs import read_text, read_whole
from tokendyno.ui.errors import Updates, shows_errors
from tokendyno.ui.fit.page import FitControls
from tokendyno.ui.fit.request import read_amounts, read_taken

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


def run_this(fit: FitControls, compare: CompareControls, pages: gr.Tabs) -> None:
    """Connect the rows' buttons."""

    def take(event: gr.EventData, model: object, amounts: object) -> Updates:
        choices = read_taken(event._data)
        try:
            batch = read_whole("Batch size", read_amounts(amounts).batch)
        except InputError:  # the row was computed before
            batch = 1
        updates: Updates = {pages: gr.Tabs(selected="compare"), compare.model: read_text("The model", model).strip()}
        updates |= {compare.batch_size: batch, fit.message: ""}
        return updates | dict(zip(compare.arm_b, choice_values(choices), strict=True))

    outputs = [pages, compare.model, compare.batch_size, *compare.arm_b, fit.message]
    taken = fit.result.take(shows_errors(fit.message)(take), [fit.model, fit.amounts], outputs, **QUIET)
    taken.success(None, None, None, js=FOCUS_RUN, **QUIET)
