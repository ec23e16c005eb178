"""How several GPUs split the model of the Fit page, parameter by parameter.

transformers splits it for that, without its weights, which takes seconds: the table is made when it is asked for.
"""

import functools
from typing import Any

import gradio as gr
import msgspec

from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import UNDECODABLE, InputError
from tokendyno.backend.fit.sharding import SHARDING_COLUMNS, Sharding, sharding, sharding_cells
from tokendyno.ui.components.inputs import read_text, read_whole
from tokendyno.ui.components.scripts import bundle
from tokendyno.ui.components.text_line import text_line
from tokendyno.ui.errors import Updates, shows_errors

WORKING = "transformers splits the model, without its weights: this takes seconds."
KINDS = {"tensor": "Tensor parallel", "expert": "Expert parallel"}


def sharding_table(bench: Bench, model: gr.Dropdown, gpus: gr.Number) -> None:
    """A closed section with a button for each kind. What it shows goes when the model or the number of GPUs changes."""
    with gr.Accordion("How several GPUs split it, layer by layer", open=False, elem_id="fit-sharding"):
        with gr.Row():
            buttons = {kind: gr.Button(title, size="sm", elem_id=f"fit-{kind}") for kind, title in KINDS.items()}
        message = text_line("fit-sharding-message", role="alert", classes="td-failure")
        table = gr.HTML(
            value="",
            html_template='<div class="td-fit-rows td-sharding" role="region" tabindex="0"></div>',
            js_on_load=bundle("sharding"),
            apply_default_css=False,
            elem_id="fit-sharding-table",
        )

    def show(kind: str, name: object, count: object) -> Updates:
        return {message: "", table: encode(split(bench, kind, name, count), (name, count))}

    for kind, button in buttons.items():
        button.click(
            lambda: (WORKING, ""), None, [message, table], queue=False, show_progress="hidden", api_visibility="private"
        ).then(
            shows_errors(message)(functools.partial(show, kind)),
            [model, gpus],
            [message, table],
            show_progress="hidden",
            concurrency_limit=1,
            concurrency_id="sharding",
            api_visibility="private",
        )
    gr.on(
        [model.change, gpus.change],
        unless_of,
        [model, gpus, table],
        [message, table],
        queue=False,
        show_progress="hidden",
        api_visibility="private",
    )


def split(bench: Bench, kind: str, model: object, gpus: object) -> Sharding:
    """The model of the control as so many GPUs would split it. InputError where they cannot."""
    name, count = read_text("The model", model).strip(), read_whole("GPUs", gpus)
    if count < 2:
        raise InputError("One GPU has the whole model. Set GPUs to 2 or more to see how they split it.")
    return sharding(bench.facts(f"random:{name.removeprefix('random:')}"), f"{kind}-{count}")


def encode(found: Sharding, of: tuple[object, object]) -> str:
    """The table's value. `of`: the model and the number of GPUs, as the controls had them."""
    shown = {
        "of": of,
        "heading": found.heading,
        "columns": SHARDING_COLUMNS,
        "rows": list(map(sharding_cells, found.rows)),
    }
    return msgspec.json.encode(shown).decode()


def unless_of(model: object, gpus: object, shown: Any) -> Any:
    """Message and table are emptied, unless the table is of these values of the controls: Gradio tells of one change
    several times, the last of them up to a second later."""
    try:
        same = msgspec.json.decode(shown, type=_Made).of == [model, gpus]
    except (TypeError, *UNDECODABLE):  # there is no table, or it is none of ours
        same = False
    return (gr.skip(), gr.skip()) if same else ("", "")


class _Made(msgspec.Struct):
    of: list[Any]
