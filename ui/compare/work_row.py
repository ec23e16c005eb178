"""The workload of both arms: model, prompt and sampling, with the buttons that start and stop a run."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import gradio as gr

from tokendyno.backend.arms.presets import prompts
from tokendyno.backend.config import EFFORTS, THINKING, Request
from tokendyno.backend.models.catalogue import CatalogueEntry
from tokendyno.ui.compare.request import Fields
from tokendyno.ui.components.events import fills, unfolds
from tokendyno.ui.components.html import text_line
from tokendyno.ui.components.inputs import model_input, number_input, pairs_inputs
from tokendyno.ui.components.setting_chips import SettingChips
from tokendyno.ui.errors import Updates


class WorkControls(Fields):
    """Controls of model and workload."""

    def values(self, request: Request) -> Updates:
        """Updates that show a request's model, workload and price, but neither its seconds nor a pasted text."""
        names = [name for name in self._fields if hasattr(request.workload, name)]
        price = {self.price: request.price_per_hour} if request.price_per_hour else {}
        values = {getattr(self, name): getattr(request.workload, name) for name in names}
        return {self.model: request.model} | price | values


class WorkRow(NamedTuple):
    """The workload's controls, the buttons, and below them the model's facts and what Run will do. `filled`: the event
    after which a prompt preset has filled them."""

    work: WorkControls
    preset: gr.Dropdown
    run: gr.Button
    stop: gr.Button
    facts: gr.HTML
    will: SettingChips
    filled: Any


def work_row(offered: Sequence[CatalogueEntry], runs: bool) -> WorkRow:
    """Build the first rows of the Compare page. `offered`: models to choose from; `runs`: whether anything is run."""
    first = prompts()[0]
    fields: dict[str, Any] = {}

    def number(field: str, label: str, value: float) -> None:
        fields[field] = number_input(label, value, field.replace("_", "-"))

    with gr.Row(elem_id="work", elem_classes=["td-work"], equal_height=True):
        fields["model"] = model_input(offered)
        titles = [(prompt.title, prompt.name) for prompt in prompts()]
        preset = gr.Dropdown(
            titles, value=first.name, label="Prompt preset", min_width=140, scale=2, elem_id="prompt-preset"
        )
        fields["prompt"] = _textbox("prompt", first.text, "Prompt", "Text to continue", most_lines=4, scale=5)
        number("max_new_tokens", "New tokens", first.max_new_tokens)
        run = gr.Button("Run", variant="primary", interactive=runs, elem_id="run", min_width=84, scale=1)
        stop = gr.Button("Stop", interactive=False, elem_id="stop", min_width=84, scale=1)
        more = gr.Button("More", elem_id="more-button", min_width=64, scale=1)
    with gr.Row(elem_id="below-work"):
        facts = text_line("facts", classes="td-facts")
        will = SettingChips("will", "td-will")
    with gr.Column(elem_id="more"):
        with gr.Row(elem_classes=["td-work"]):
            number("batch_size", "Batch size", 1)
            number("temperature", "Temperature (0: greedy)", 0)
            number("seed", "Seed", 0)
            fields["seconds"], fields["price"] = pairs_inputs("")
            number("prompt_tokens", "Prompt tokens (0: as written)", 0)
            fields["ignore_eos"] = gr.Checkbox(
                first.ignore_eos, label="Ignore EOS", elem_id="ignore-eos", min_width=140
            )
        with gr.Row(elem_classes=["td-work"]):
            number("top_k", "Top k (0: all)", 0)
            number("top_p", "Top p (1: all)", 1)
            fields |= _chat_fields()
        fields["text"] = _textbox(
            "own-text",
            "",
            "Quality on your own text",
            "Paste a page of what your users write; empty: the texts of tokendyno",
            most_lines=4,
            scale=1,
        )
    work = WorkControls(**fields)
    will.watch(fields, Prompt=preset)
    by_name = {p.name: [p.text, p.max_new_tokens, p.prompt_tokens, p.ignore_eos] for p in prompts()}
    filled = fills(preset, [work.prompt, work.max_new_tokens, work.prompt_tokens, work.ignore_eos], by_name)
    unfolds(more, "more")
    return WorkRow(work, preset, run, stop, facts, will, filled)


def _chat_fields() -> dict[str, Any]:
    """Of a chat: whether it is one, its system message, how long the model reasons."""
    fields: dict[str, Any] = {}
    fields["chat"] = gr.Checkbox(False, label="Chat template", elem_id="chat", min_width=140)
    fields["system"] = _textbox("system", "", "System message (of a chat)", "Be concise.", most_lines=3, scale=4)
    efforts = [(effort, effort) for effort in EFFORTS] + [(f"thinking {state}", state) for state in THINKING]
    fields["reasoning_effort"] = gr.Dropdown(
        [("template default", ""), *efforts],
        value="",
        label="Reasoning effort",
        min_width=120,
        scale=1,
        elem_id="reasoning-effort",
    )
    return fields


def _textbox(elem_id: str, text: str, label: str, placeholder: str, most_lines: int, scale: int) -> gr.Textbox:
    return gr.Textbox(
        text,
        label=label,
        placeholder=placeholder,
        lines=1,
        max_lines=most_lines,
        min_width=200,
        scale=scale,
        elem_id=elem_id,
    )
