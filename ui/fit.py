"""The Fit page: what fits on a GPU, from a model's config alone. Wiring only: `backend.fit` knows, `fit_table` says."""

from typing import Any

import gradio as gr

from backend import hardware
from backend.engine import Bench
from backend.errors import InputError
from backend.fit import DEFAULT_CONTEXT, Fit, fit
from backend.fit_device import THIS, device_of, is_size
from backend.fit_table import COLUMNS, best, cells, columns, heading, remarks
from backend.gpus import gpus
from backend.redact import redact
from ui.calm import Updates, calmly
from ui.controls import model_control, number_control
from ui.form import read_text, read_whole
from ui.words import words

WIDTHS = ("170px", "190px", "180px", "130px", "130px", "130px", "190px", "200px", "340px")


def fit_page(bench: Bench, opened: gr.Tab) -> None:
    """Build the page inside the current tab; it is filled when the tab is opened first, and at every change."""
    with gr.Row(elem_id="fit-work", elem_classes=["td-work"], equal_height=True):
        model = model_control("fit-model")
        gpu = gr.Dropdown(
            [(THIS.capitalize(), THIS), *((spec.name, spec.name) for spec in gpus())],
            value=THIS,
            label="GPU, or its memory such as 24GiB",
            allow_custom_value=True,
            min_width=200,
            scale=2,
            elem_id="fit-gpu",
        )
        count = number_control("GPUs", 1, "fit-gpus")
        context = number_control(f"Context (0: up to {DEFAULT_CONTEXT:,})", 0, "fit-context")
        batch = number_control("Batch size", 1, "fit-batch")
    message = words("fit-message", role="alert", classes="td-failure")
    title = words("fit-heading", classes="td-facts")
    answer = words("fit-best", role="status", classes="td-best")
    table = gr.Dataframe(
        headers=list(COLUMNS), datatype="str", interactive=False, show_label=False, wrap=True, max_height=640,
        column_widths=list(WIDTHS), buttons=["copy"], elem_id="fit-table", visible=False,
    )  # fmt: skip
    notes = words("fit-notes", classes="td-facts")
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

    gr.on(
        [opened.select, model.change, gpu.change, count.change, context.change, batch.change],
        calmly(message)(show), [model, gpu, context, batch, count], outputs, show_progress="hidden",
        trigger_mode="always_last", concurrency_limit=None, api_visibility="private",
    )  # fmt: skip


def find(bench: Bench, model: object, gpu: object, context: object, batch: object, gpus: object = 1) -> Fit:
    """The table for what stands in the controls. Every value is a stranger's."""
    name = read_text("The model", model).strip()
    card = read_text("The GPU", gpu).strip()
    held = sum(worker.held_bytes for worker in list(bench.slots.values()))
    machine = hardware.machine()
    device = device_of(machine, vram=card) if is_size(card) else device_of(machine, card, held_bytes=held)
    tokens, sequences = read_whole("Context", context), read_whole("Batch size", batch)
    count = read_whole("GPUs", gpus)
    return fit(name, device, tokens or None, sequences, bench.models_dir, gpus=count, local_paths=bench.local_paths)
