"""Each arm as a script, in a part of the page that is closed at first and follows the controls."""

import re
from pathlib import PurePosixPath
from typing import Any

import gradio as gr

from tokendyno.backend.arms.check import Checked
from tokendyno.backend.config import ArmRequest, Workload
from tokendyno.backend.errors import InputError
from tokendyno.backend.export.script import script
from tokendyno.backend.export.short import short_script
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.script.source import comment

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


def code_panels(arms: tuple[str, ...]) -> tuple[list[gr.Code], list[gr.Code]]:
    """The same for short scripts, and below them, closed at first, for the standalone ones."""
    with gr.Accordion("Code: each arm as a Python script", open=False, elem_id="code"):
        short = _texts(arms, "code")
        with gr.Accordion(ALL, open=False, elem_id="code-all"):
            return short, _texts(arms, "code-all")


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
