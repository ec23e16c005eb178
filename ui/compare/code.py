"""Each arm as a script, in a part of the page that is closed at first and follows the controls."""

import re
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import gradio as gr

from tokendyno.backend.arms.check import Checked
from tokendyno.backend.config import ArmRequest, Workload
from tokendyno.backend.errors import InputError
from tokendyno.backend.export.script import script
from tokendyno.backend.export.short import short_script
from tokendyno.backend.fit.device import THIS
from tokendyno.backend.hardware.gpu_specs import gpus
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.script.source import comment
from tokendyno.ui.components.inputs import number_input
from tokendyno.ui.components.text_line import text_line

MAX_PROMPT_CHARACTERS = 20_000
"""A longer prompt is not sent back to the browser with every change of a control."""

MAX_NAME = 100
"""Characters of a file's name."""

TOO_LONG = "The prompt has {:,} characters, too many to show here. Use tokendyno export to write the script."


ALL = "All of it: with warm-up and times, without tokendyno"


def code_panel(arms: tuple[str, ...], elem_id: str = "code") -> list[gr.Code]:
    """One read-only text per arm, highlighted by the browser; its content reaches the page as text only."""
    with gr.Accordion("Code: each arm as a Python script", open=False, elem_id=elem_id):
        return _texts(arms, elem_id)


class CodePanels(NamedTuple):
    """Scripts of each arm, the standalone ones closed at first; the GPUs that they are for, which need not be here, and
    a line that says what would happen on them."""

    gpu: gr.Dropdown
    gpus: gr.Number
    there: gr.HTML
    short: list[gr.Code]
    whole: list[gr.Code]

    def none(self, reason: str) -> dict[Any, str]:
        """Updates where no script can be written."""
        return {self.there: ""} | dict.fromkeys([*self.short, *self.whole], no_code(reason))


def code_panels(arms: tuple[str, ...]) -> CodePanels:
    """The same for short and for standalone scripts."""
    with gr.Accordion("Code: each arm as a Python script", open=False, elem_id="code"):
        with gr.Row(elem_classes=["td-code-for"]):
            names = [(THIS.capitalize(), THIS), *((spec.name, spec.name) for spec in gpus())]
            gpu = gr.Dropdown(names, value=THIS, label="For", elem_id="code-gpu", min_width=160, scale=0)
            count = number_input("GPUs", 1, "code-gpus")
        there = text_line("code-there", role="status")
        short = _texts(arms, "code")
        with gr.Accordion(ALL, open=False, elem_id="code-all"):
            return CodePanels(gpu, count, there, short, _texts(arms, "code-all"))


def _texts(arms: tuple[str, ...], elem_id: str) -> list[gr.Code]:
    with gr.Row(elem_classes=["td-codes"]):
        return [
            gr.Code(
                "",
                language="python",
                label=f"Arm {name}",
                interactive=False,
                lines=12,
                max_lines=36,
                show_line_numbers=False,
                buttons=["copy", "download"],
                min_width=300,
                elem_id=f"{elem_id}-{name.lower()}",
                elem_classes=["td-code", f"arm-{name.lower()}"],
            )
            for name in arms
        ]


def code_texts(
    checked: Checked, facts: ModelFacts, workload: Workload, paths: bool, lacks: str = ""
) -> tuple[str, str]:
    """The short and the standalone script of a checked arm, or why there is none. `lacks`: what the workload still
    lacks, such as a prompt."""
    try:
        checked.require_runnable()
        if lacks:
            raise InputError(lacks)
        if len(workload.prompt) > MAX_PROMPT_CHARACTERS:
            raise InputError(TOO_LONG.format(len(workload.prompt)))
        return short_script(checked, facts, workload, paths), script(checked, facts, workload, paths)
    except InputError as error:
        return no_code(str(error)), no_code(str(error))


def named_code(model: str, arm: ArmRequest, text: str, more: str = "") -> Any:
    """The update of a pane: its text, and in its label the name under which it is saved (`ui/js/script_name.js`)."""
    return gr.update(value=text, label=f"Arm {arm.name}: {more}{script_name(model, arm)}")


def script_name(model: str, arm: ArmRequest) -> str:
    """A file's name that tells scripts apart: the model without owner or folder, the arm, its choices."""
    parts = [PurePosixPath(model).name, arm.name, *(f"{axis}-{choice}" for axis, choice in arm.choices.items())]
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', '-'.join(parts))[:MAX_NAME]}.py"


def no_code(reason: str) -> str:
    """A comment in place of a script that cannot be written."""
    return "\n".join(comment(reason))
