"""The workload of both arms: model, prompt and sampling, with the buttons that start and stop a run."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import gradio as gr

from tokendyno.backend.arms.presets import prompts
from tokendyno.backend.config import EFFORTS, THINKING, Request
from tokendyno.backend.models.catalogue import CatalogueEntry
from tokendyno.ui.components.events import fills, unfolds
from tokendyno.ui.components.inputs import model_input, number_input, pairs_inputs
from tokendyno.ui.components.setting_chips import SettingChips
from tokendyno.ui.components.text_line import text_line
from tokendyno.ui.errors import Updates

SETTINGS = {
    "Prompt": ["prompt", "preset"],
    "Prompt tokens": ["prompt_tokens"],
    "New tokens": ["max_new_tokens"],
    "Batch size": ["batch_size"],
    "Temperature": ["temperature"],
    "Top k": ["top_k"],
    "Top p": ["top_p"],
    "Seed": ["seed"],
    "Ignore EOS": ["ignore_eos"],
    "Chat template": ["chat"],
    "System message": ["system"],
    "Reasoning effort": ["reasoning_effort"],
    "Quality on your text": ["text"],
    "Seconds of pairs": ["seconds"],
    "Price an hour": ["price"],
}
"""By title the controls of a workload: each that is not the default is a chip."""


class WorkControls(NamedTuple):
    """Model and workload, in the order of `request.Fields`."""

    model: gr.Dropdown
    prompt: gr.Textbox
    max_new_tokens: gr.Number
    batch_size: gr.Number
    temperature: gr.Number
    seed: gr.Number
    seconds: gr.Number
    price: gr.Number
    prompt_tokens: gr.Number
    ignore_eos: gr.Checkbox
    top_k: gr.Number
    top_p: gr.Number
    chat: gr.Checkbox
    system: gr.Textbox
    reasoning_effort: gr.Dropdown
    text: gr.Textbox

    def values(self, asked: Request) -> Updates:
        """Updates that show a request's model, workload and price, but neither its seconds nor a pasted text."""
        shown = [name for name in self._fields if hasattr(asked.workload, name)]
        price = {self.price: asked.price_per_hour} if asked.price_per_hour else {}
        found = {getattr(self, name): getattr(asked.workload, name) for name in shown}
        return {self.model: asked.model} | price | found


class WorkRow(NamedTuple):
    """The workload's controls, the buttons, and below them the model's facts and what Run will do. `filled`: the event
    after which a prompt preset has filled them."""

    work: WorkControls
    run: gr.Button
    stop: gr.Button
    facts: gr.HTML
    will: SettingChips
    filled: Any


def work_row(offered: Sequence[CatalogueEntry], runs: bool) -> WorkRow:
    """Build the first rows of the Compare page. `offered`: models to choose from; `runs`: whether anything is run."""
    first = prompts()[0]
    with gr.Row(elem_id="work", elem_classes=["td-work"], equal_height=True):
        model = model_input(offered)
        preset = _prompt_preset()
        prompt = _prompt(first.text)
        tokens = number_input("New tokens", first.max_new_tokens, "max-new-tokens")
        run = gr.Button("Run", variant="primary", interactive=runs, elem_id="run", min_width=84, scale=1)
        stop = gr.Button("Stop", interactive=False, elem_id="stop", min_width=84, scale=1)
        more = gr.Button("More", elem_id="more-button", min_width=64, scale=1)
    with gr.Row(elem_id="below-work"):
        facts = text_line("facts", classes="td-facts")
        will = SettingChips("will", "td-will", SETTINGS)
    with gr.Column(elem_id="more"):
        with gr.Row(elem_classes=["td-work"]):
            batch = number_input("Batch size", 1, "batch-size")
            temperature = number_input("Temperature (0: greedy)", 0, "temperature")
            seed = number_input("Seed", 0, "seed")
            seconds, price = pairs_inputs("")
            prompt_tokens = number_input("Prompt tokens (0: as written)", 0, "prompt-tokens")
            ignore_eos = gr.Checkbox(first.ignore_eos, label="Ignore EOS", elem_id="ignore-eos", min_width=140)
        with gr.Row(elem_classes=["td-work"]):
            top_k = number_input("Top k (0: all)", 0, "top-k")
            top_p = number_input("Top p (1: all)", 1, "top-p")
            chat = gr.Checkbox(False, label="Chat template", elem_id="chat", min_width=140)
            system = _system_message()
            effort = _reasoning_effort()
        text = _own_text()
    work = WorkControls(
        model,
        prompt,
        tokens,
        batch,
        temperature,
        seed,
        seconds,
        price,
        prompt_tokens,
        ignore_eos,
        top_k,
        top_p,
        chat,
        system,
        effort,
        text,
    )
    will.watch({**work._asdict(), "preset": preset})
    known = {one.name: [one.text, one.max_new_tokens, one.prompt_tokens, one.ignore_eos] for one in prompts()}
    filled = fills(preset, [prompt, tokens, prompt_tokens, ignore_eos], known)
    unfolds(more, "more")
    return WorkRow(work, run, stop, facts, will, filled)


def _prompt_preset() -> gr.Dropdown:
    return gr.Dropdown(
        [(prompt.title, prompt.name) for prompt in prompts()],
        value=prompts()[0].name,
        label="Prompt preset",
        min_width=140,
        scale=2,
        elem_id="prompt-preset",
    )


def _prompt(text: str) -> gr.Textbox:
    return gr.Textbox(
        text,
        label="Prompt",
        placeholder="Text to continue",
        lines=1,
        max_lines=4,
        min_width=200,
        scale=5,
        elem_id="prompt",
    )


def _system_message() -> gr.Textbox:
    return gr.Textbox(
        "",
        label="System message (of a chat)",
        placeholder="Be concise.",
        lines=1,
        max_lines=3,
        min_width=200,
        scale=4,
        elem_id="system",
    )


def _own_text() -> gr.Textbox:
    """On which quality is compared, in place of the texts that come with tokendyno."""
    return gr.Textbox(
        "",
        label="Your own text, on which quality is compared",
        placeholder="Paste a page of what your users write; empty: the texts of tokendyno",
        lines=1,
        max_lines=4,
        elem_id="own-text",
    )


def _reasoning_effort() -> gr.Dropdown:
    """How long a model may reason, where its chat template has a variable for it."""
    return gr.Dropdown(
        [
            ("template default", ""),
            *((effort, effort) for effort in EFFORTS),
            *((f"thinking {state}", state) for state in THINKING),
        ],
        value="",
        label="Reasoning effort",
        min_width=120,
        scale=1,
        elem_id="reasoning-effort",
    )
