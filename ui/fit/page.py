"""The Fit page: what fits on a GPU, by a model's config alone. Wiring only: `tokendyno.backend.fit` computes it."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import gradio as gr
import msgspec

from tokendyno.backend.config import MAX_BATCH_SIZE
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.fit.device import THIS
from tokendyno.backend.fit.sharding import SHARDING_COLUMNS, Sharding, sharding, sharding_cells
from tokendyno.backend.fit.view import view
from tokendyno.backend.hardware.gpu_specs import gpus
from tokendyno.backend.history.measured import measured
from tokendyno.backend.models import RANDOM, catalogue, without
from tokendyno.backend.redact import redact
from tokendyno.ui.compare.page import ComparePage
from tokendyno.ui.compare.request import choice_values
from tokendyno.ui.components.counting import wire_counting
from tokendyno.ui.components.events import FOCUS_RUN, QUIET, Settled
from tokendyno.ui.components.html import component, text_line
from tokendyno.ui.components.inputs import model_input, number_input, read_text, read_whole
from tokendyno.ui.errors import Updates, shows_errors
from tokendyno.ui.fit.request import find, read_amounts, read_taken, write_amounts
from tokendyno.ui.visitor import visitor_of

AMOUNTS = """
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
"""Context and batch size: two sliders with logarithmic steps, each with a field for the exact number. The value is JSON
(`request.Amounts`). The browser writes it; a change fires the event "input" when nothing has moved for a moment. The
context's end is the number of the model's positions, which the answer names ("tokendyno-fit")."""

RESULT = """
<div class="td-fit">
  <p class="td-fit-tools"><button type="button" class="td-seek">Find the best arm for this: Advise</button></p>
  <p class="td-fit-measured" hidden><a></a></p>
  <figure class="td-fit-curve"></figure>
  <figure class="td-fit-chart" aria-hidden="true">
    <figcaption><span class="td-legend"></span></figcaption>
    <div class="td-axis"></div>
    <div class="td-bars"></div>
  </figure>
  <p class="td-fit-tools"><button type="button" class="td-all" aria-pressed="false"></button>
    <span class="td-fit-hint"></span></p>
  <div class="td-fit-rows" role="region" tabindex="0" aria-label="What fits: every figure of the chart as text"></div>
  <figure class="td-fit-kinds"></figure>
  <figure class="td-fit-windows"></figure>
</div>
"""
"""The answer. The value is JSON (`FitView`), "" for none. "Run this" fires "take" with the row's choices, and the way
to Advise "seek" with the context."""


class FitControls(NamedTuple):
    """What another page or an address may set, where messages go, and the answer, whose event "take" runs a row.

    show  fills `outputs` from the request, the model, the GPU, the amounts and the number of GPUs
    """

    model: gr.Dropdown
    gpu: gr.Dropdown
    gpus: gr.Number
    amounts: gr.HTML
    message: gr.HTML
    result: gr.HTML
    outputs: list[Any]
    show: Callable[..., Updates]


def fit_page(bench: Bench, opened: gr.Tab, address: gr.HTML) -> FitControls:
    """Build the page inside the current tab. It is filled when the tab is opened, and at every change. `address`: ""
    until a visit's address has been read, which may ask for other values than those that are there at first."""
    with gr.Row(elem_id="fit-work", elem_classes=["td-work"], equal_height=True):
        model = model_input(bench.offered if bench.limits.models else catalogue(), "fit-model")
        gpu = gr.Dropdown(
            [(THIS.capitalize(), THIS), *((spec.name, spec.name) for spec in gpus())],
            value=THIS,
            label="GPU, or a memory size such as 24GiB",
            allow_custom_value=True,
            min_width=200,
            scale=2,
            elem_id="fit-gpu",
        )
        count = number_input("GPUs", 1, "fit-gpus")
    template = AMOUNTS.replace("MOST", str(MAX_BATCH_SIZE))  # an event's answer may empty `props`
    amounts = component("fit_amounts", template, "fit-amounts", write_amounts(None, 1))
    message = text_line("fit-message", role="alert", classes="td-failure")
    answer = text_line("fit-best", role="status", classes="td-best")
    title = text_line("fit-heading", classes="td-facts")
    result = component("fit", RESULT, "fit-result", plots=True)
    notes = text_line("fit-notes", classes="td-facts")
    sharding_table(bench, model, count)
    outputs = [message, title, answer, result, notes]

    def show(request: gr.Request, *values: Any) -> Updates:
        try:
            fit, lowered = find(bench, *values)
        except InputError as error:
            return {message: redact(str(error)), title: "", answer: "", result: "", notes: ""}
        run = measured(fit, bench.history.listing, visitor_of(request))
        fit_view = view(fit, run.run if run else "", run.words if run else "")
        return {
            message: "",
            title: fit_view.heading,
            answer: " ".join(filter(None, [lowered, fit_view.answer.words])),
            notes: " ".join(fit_view.remarks),
            result: msgspec.json.encode(fit_view).decode(),
        }

    wire_counting(model, message, bench, shows_errors(message))

    def show_opened(request: gr.Request, address_read: object, *values: Any) -> Updates:
        return show(request, *values) if address_read else {}

    show_safely, inputs = shows_errors(message)(show), [model, gpu, amounts, count]
    opened.select(shows_errors(message)(show_opened), [address, *inputs], outputs, **QUIET)
    changes = [model.change, gpu.change, count.change, amounts.input]
    Settled("fit").after(changes)(show_safely, inputs, outputs, trigger_mode="always_last", **QUIET)
    return FitControls(model, gpu, count, amounts, message, result, outputs, show_safely)


# --- sharding ------------------------------------------------------------------------------------

WORKING = "transformers splits the model, without its weights: this takes seconds."
KINDS = {"tensor": "Tensor parallel", "expert": "Expert parallel"}


def sharding_table(bench: Bench, model: gr.Dropdown, gpus: gr.Number) -> None:
    """A closed section with a button for each kind, since transformers takes seconds to split a model. What it shows
    goes when the model or the number of GPUs changes."""
    with gr.Accordion("How several GPUs split it, layer by layer", open=False, elem_id="fit-sharding"):
        with gr.Row():
            buttons = {kind: gr.Button(title, size="sm", elem_id=f"fit-{kind}") for kind, title in KINDS.items()}
        message = text_line("fit-sharding-message", role="alert", classes="td-failure")
        working = text_line("fit-sharding-working")
        template = '<div class="td-fit-rows td-sharding" role="region" tabindex="0"></div>'
        table = component("sharding", template, "fit-sharding-table")

    def show(kind: str, name: object, count: object) -> Updates:
        shards = split(bench, kind, name, count)
        rows = list(map(sharding_cells, shards.rows))
        sheet = {"heading": shards.heading, "columns": SHARDING_COLUMNS, "rows": rows}
        return {message: "", table: msgspec.json.encode(sheet).decode()}

    for kind, button in buttons.items():
        button.click(lambda: ("", "", WORKING), None, [message, table, working], **QUIET).then(
            shows_errors(message)(functools.partial(show, kind)),
            [model, gpus],
            [message, table],
            show_progress="hidden",
            concurrency_limit=1,
            concurrency_id="sharding",
            api_visibility="private",
        ).then(lambda: "", None, working, **QUIET)
    gr.on([model.change, gpus.change], None, None, [message, table], js="() => ['', '']", **QUIET)


def split(bench: Bench, kind: str, model: object, gpus: object) -> Sharding:
    """The model of the control as so many GPUs would split it. InputError where they cannot."""
    name, count = read_text("The model", model).strip(), read_whole("GPUs", gpus)
    if count < 2:
        raise InputError("One GPU has the whole model. Set GPUs to 2 or more to see how they split it.")
    return sharding(bench.facts(RANDOM + without(RANDOM, name)), f"{kind}-{count}")


def run_this(fit: FitControls, compare: ComparePage, pages: gr.Tabs) -> None:
    """Connect "Run this": a row becomes arm B of the Compare page, with its model and batch size."""
    arm_b = compare.arms[1].axes

    def take(event: gr.EventData, model: object, amounts: object) -> Updates:
        choices = read_taken(event)
        try:
            batch = read_whole("Batch size", read_amounts(amounts).batch)
        except InputError:  # the row was computed before
            batch = 1
        return {
            pages: gr.Tabs(selected="compare"),
            compare.model: read_text("The model", model).strip(),
            compare.work.batch_size: batch,
            fit.message: "",
            **dict(zip(arm_b, choice_values(choices), strict=True)),
        }

    outputs = [pages, compare.model, compare.work.batch_size, *arm_b, fit.message]
    taken = fit.result.take(shows_errors(fit.message)(take), [fit.model, fit.amounts], outputs, **QUIET)
    taken.success(None, None, None, js=FOCUS_RUN, **QUIET)
