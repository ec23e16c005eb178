"""The controls: one dropdown an axis, as the registry has them; no axis is named here."""

from typing import Any, NamedTuple

import gradio as gr

from backend.config import EFFORTS, Workload
from backend.models import DEFAULT_MODEL, ModelFacts, catalogue
from backend.optimizations import axes
from backend.presets import prompts
from ui.fold import fold_button
from ui.form import CUSTOM, choice_values, preset_choices
from ui.marks import Titles
from ui.verdicts import verdict_box


class ArmControls(NamedTuple):
    """One arm: its preset, a dropdown for each axis in the registry's order, what folds those that do not matter
    now, and what the rules say."""

    name: str
    preset: gr.Dropdown
    axes: list[gr.Dropdown]
    fold: gr.HTML
    verdicts: gr.HTML


class WorkControls(NamedTuple):
    """Model and work, in the order of `form.Fields`."""

    model: gr.Dropdown
    prompt: gr.Textbox
    max_new_tokens: gr.Number
    batch_size: gr.Number
    temperature: gr.Number
    seed: gr.Number
    repeats: gr.Number
    prompt_tokens: gr.Number
    ignore_eos: gr.Checkbox
    top_k: gr.Number
    top_p: gr.Number
    chat: gr.Checkbox
    reasoning_effort: gr.Dropdown

    def values(self, model: str, work: Workload) -> dict[Any, Any]:
        """Updates that show a request's model and work."""
        return {self.model: model} | {
            component: getattr(work, field) for field, component in zip(self._fields[1:], self[1:], strict=True)
        }


def model_control(elem_id: str = "model") -> gr.Dropdown:
    """The catalogue, and anything that may be typed."""
    return gr.Dropdown(
        [(f"{entry.name}: {entry.title}", entry.name) for entry in catalogue()],
        value=DEFAULT_MODEL,
        label="Model",
        allow_custom_value=True,
        min_width=200,
        scale=3,
        elem_id=elem_id,
    )


def prompt_preset_control() -> gr.Dropdown:
    """Prompts worth running."""
    return gr.Dropdown(
        [(prompt.title, prompt.name) for prompt in prompts()],
        value=prompts()[0].name,
        label="Prompt preset",
        min_width=140,
        scale=2,
        elem_id="prompt-preset",
    )


def prompt_control() -> gr.Textbox:
    """The text that both arms continue."""
    return gr.Textbox(
        prompts()[0].text,
        label="Prompt",
        placeholder="Text to continue",
        lines=1,
        max_lines=4,
        min_width=240,
        scale=5,
        elem_id="prompt",
    )


def number_control(label: str, value: float, elem_id: str) -> gr.Number:
    """A number that is checked on the server, in words; the browser's own limits would change it silently."""
    return gr.Number(value, label=label, min_width=90, scale=1, elem_id=elem_id)


def effort_control() -> gr.Dropdown:
    """How long a model shall think, where its chat template has a word for it."""
    return gr.Dropdown(
        [("as the template has it", ""), *((effort, effort) for effort in EFFORTS)],
        value="",
        label="Reasoning effort",
        min_width=120,
        scale=1,
        elem_id="reasoning-effort",
    )


def arm_controls(name: str, preset: str, facts: ModelFacts | None, titles: Titles) -> ArmControls:
    """A column for one arm, set to a preset. `facts`: the model that stands in the controls at first."""
    low, choices = name.lower(), preset_choices(preset)
    values = choice_values(choices)
    with gr.Column(elem_id=f"arm-{low}", elem_classes=["td-card", f"arm-{low}"], min_width=300):
        with gr.Row(elem_id=f"axes-{low}", elem_classes=["td-axes"]):
            presets = gr.Dropdown(
                [*titles.presets, ("custom", CUSTOM)],
                value=preset,
                label=f"Arm {name}",
                min_width=96,
                elem_id=f"preset-{low}",
                elem_classes=["td-preset"],
            )
            dropdowns = [
                gr.Dropdown(
                    named,
                    value=value,
                    label=axis.title,
                    min_width=96,
                    elem_id=f"axis-{low}-{axis.name}",
                )
                for axis, named, value in zip(axes(), titles.choices, values, strict=True)
            ]
        fold = fold_button(low, choices, facts)
        verdicts = verdict_box(f"verdicts-{low}")
    return ArmControls(name, presets, dropdowns, fold, verdicts)
