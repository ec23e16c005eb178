"""The Fit page: what fits on a GPU, by a model's config alone. Wiring only: `tokendyno.backend.fit` computes it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import gradio as gr

from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.fit.device import THIS
from tokendyno.backend.fit.view import view
from tokendyno.backend.hardware.gpu_specs import gpus
from tokendyno.backend.models import catalogue
from tokendyno.backend.redact import redact
from tokendyno.ui.components.counting import wire_counting
from tokendyno.ui.components.inputs import model_input, number_input
from tokendyno.ui.components.text_line import text_line
from tokendyno.ui.errors import Updates, shows_errors
from tokendyno.ui.fit.amounts import amounts_input
from tokendyno.ui.fit.request import find
from tokendyno.ui.fit.result import encode, fit_result
from tokendyno.ui.fit.sharding import sharding_table


class FitControls(NamedTuple):
    """What another page or an address may set, where messages go, and the answer, whose event "take" runs a row.

    show  fills `outputs` from the model, the GPU, the amounts and the number of GPUs
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
    amounts = amounts_input()
    message = text_line("fit-message", role="alert", classes="td-failure")
    answer = text_line("fit-best", role="status", classes="td-best")
    title = text_line("fit-heading", classes="td-facts")
    result = fit_result()
    notes = text_line("fit-notes", classes="td-facts")
    sharding_table(bench, model, count)
    outputs = [message, title, answer, result, notes]

    def show(*values: Any) -> Updates:
        try:
            found, lowered = find(bench, *values)
        except InputError as error:
            return {message: redact(str(error)), title: "", answer: "", result: "", notes: ""}
        shown = view(found)
        said = " ".join(sentence for sentence in (lowered, shown.best) if sentence)
        return {
            message: "",
            title: shown.heading,
            answer: said,
            notes: " ".join(shown.remarks),
            result: encode(shown),
        }

    wire_counting(
        model,
        message,
        bench,
        shows_errors(message),
        {"queue": False, "show_progress": "hidden", "api_visibility": "private"},
    )

    def show_opened(read: object, *values: Any) -> Updates:
        return show(*values) if read else {}

    safe, asked = shows_errors(message)(show), [model, gpu, amounts, count]
    opened.select(
        shows_errors(message)(show_opened),
        [address, *asked],
        outputs,
        show_progress="hidden",
        queue=False,
        api_visibility="private",
    )
    gr.on(
        [model.change, gpu.change, count.change, amounts.input],
        safe,
        asked,
        outputs,
        show_progress="hidden",
        trigger_mode="always_last",
        queue=False,
        api_visibility="private",
    )
    return FitControls(model, gpu, count, amounts, message, result, outputs, safe)
