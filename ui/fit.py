"""The Fit page: what fits on a GPU, from a model's config alone. Wiring only: `backend.fit` computes and words it."""

from typing import Any

import gradio as gr

from backend import hardware
from backend.engine.allowed import check_model
from backend.engine.bench import Bench
from backend.errors import InputError
from backend.fit.device import THIS, device_of, is_size
from backend.fit.table import DEFAULT_CONTEXT, Fit, fit
from backend.fit.text import best, cells, columns, heading, remarks, usual_columns
from backend.hardware.gpu_specs import gpus
from backend.redact import redact
from ui.components.counting import COUNTING, slow_to_resolve
from ui.components.inputs import model_input, number_input, read_text, read_whole
from ui.components.text_line import text_line
from ui.errors import Updates, shows_errors

COLUMN_WIDTHS = ("170px", "190px", "180px", "130px", "130px", "130px", "190px", "200px", "340px")


def fit_page(bench: Bench, opened: gr.Tab) -> None:
    """Build the page inside the current tab. It is filled when the tab is opened, and at every change."""
    with gr.Row(elem_id="fit-work", elem_classes=["td-work"], equal_height=True):
        model = model_input("fit-model")
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
        context = number_input(f"Context (0: up to {DEFAULT_CONTEXT:,})", 0, "fit-context")
        batch = number_input("Batch size", 1, "fit-batch")
    message = text_line("fit-message", role="alert", classes="td-failure")
    title = text_line("fit-heading", classes="td-facts")
    answer = text_line("fit-best", role="status", classes="td-best")
    table = gr.Dataframe(
        headers=usual_columns(), datatype="str", interactive=False, show_label=False, wrap=True, max_height=640,
        column_widths=list(COLUMN_WIDTHS), buttons=["copy"], elem_id="fit-table", visible=False,
    )  # fmt: skip
    notes = text_line("fit-notes", classes="td-facts")
    outputs = [message, title, answer, table, notes]

    def show(*values: Any) -> Updates:
        try:
            found = find(bench, *values)
        except InputError as error:
            return {message: redact(str(error)), title: "", answer: "", table: gr.update(visible=False), notes: ""}
        return {
            message: "", title: heading(found), answer: best(found), notes: " ".join(remarks(found)),
            table: gr.update(value=cells(found), headers=columns(found), visible=True),
        }  # fmt: skip

    def announce(value: object) -> Updates:
        return {message: COUNTING} if slow_to_resolve(value, bench) else {}

    model.change(
        shows_errors(message)(announce), model, [message], queue=False, show_progress="hidden",
        api_visibility="private",
    )  # fmt: skip
    gr.on(
        [opened.select, model.change, gpu.change, count.change, context.change, batch.change],
        shows_errors(message)(show), [model, gpu, context, batch, count], outputs, show_progress="hidden",
        trigger_mode="always_last", concurrency_limit=None, api_visibility="private",
    )  # fmt: skip


def find(bench: Bench, model: object, gpu: object, context: object, batch: object, gpus: object = 1) -> Fit:
    """The table for the values of the controls, all of them untrusted."""
    name = read_text("The model", model).strip()
    card = read_text("The GPU", gpu).strip()
    machine = hardware.detect()
    device = device_of(machine, vram=card) if is_size(card) else device_of(machine, card, held_bytes=bench.held_bytes)
    tokens, sequences = read_whole("Context", context), read_whole("Batch size", batch)
    count = read_whole("GPUs", gpus)
    check_model(name, bench.limits)
    return fit(name, device, tokens or None, sequences, bench.models_dir, gpus=count, local_paths=bench.local_paths)
