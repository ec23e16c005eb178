"""Each arm as a script, in a part of the page that is closed at first and follows the controls."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import gradio as gr

from tokendyno.backend.arms.check import Checked
from tokendyno.backend.config import ArmRequest, Request, Workload
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.export.script import script
from tokendyno.backend.export.short import short_script
from tokendyno.backend.fit.device import THIS, elsewhere
from tokendyno.backend.hardware.gpu_specs import gpus
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.script.source import comment
from tokendyno.backend.views.check_document import check_document
from tokendyno.ui.components.html import text_line
from tokendyno.ui.components.inputs import number_input, read_text, read_whole

MAX_PROMPT_CHARACTERS = 20_000
"""A longer prompt is not sent back to the browser with every change of a control."""

MAX_NAME = 100
"""Characters of a file's name."""

TOO_LONG = "The prompt has {:,} characters, too many to show here. Use tokendyno export to write the script."


ALL = "All of it: with warm-up and times, without tokendyno"


class CodePanels(NamedTuple):
    """Scripts of each arm; the GPUs that they are for, which need not be here, and a line that says what would happen
    on them. whole: the standalone scripts, closed at first; none where the first ones are."""

    gpu: gr.Dropdown
    gpus: gr.Number
    there: gr.HTML
    short: list[gr.Code]
    whole: list[gr.Code]

    @property
    def texts(self) -> list[Any]:
        """What events update."""
        return [self.there, *self.short, *self.whole]

    def none(self, reason: str) -> dict[Any, str]:
        """Updates where no script can be written."""
        return {self.there: ""} | dict.fromkeys([*self.short, *self.whole], no_code(reason))


def code_panels(arms: tuple[str, ...], elem_id: str = "code", whole: bool = True) -> CodePanels:
    """A read-only text per arm, highlighted by the browser; its content reaches the page as text only."""
    with gr.Accordion("Code: each arm as a Python script", open=False, elem_id=elem_id):
        with gr.Row(elem_classes=["td-code-for"]):
            names = [(THIS.capitalize(), THIS), *((spec.name, spec.name) for spec in gpus())]
            gpu = gr.Dropdown(names, value=THIS, label="For", elem_id=f"{elem_id}-gpu", min_width=160, scale=0)
            count = number_input("GPUs", 1, f"{elem_id}-gpus")
        there = text_line(f"{elem_id}-there", role="status", classes="td-code-there")
        short = _texts(arms, elem_id)
        if not whole:
            return CodePanels(gpu, count, there, short, [])
        with gr.Accordion(ALL, open=False, elem_id=f"{elem_id}-all"):
            return CodePanels(gpu, count, there, short, _texts(arms, f"{elem_id}-all"))


def checked_there(
    bench: Bench, request: Request, facts: ModelFacts, results: Mapping[str, Checked], gpu: object, gpus: object
) -> tuple[Mapping[str, Checked], str]:
    """Each arm as it would be on GPUs that need not be here, and what would happen, a line an arm; for this machine
    `results` and "". InputError where no such GPUs can be meant."""
    name = read_text("The GPU", gpu)
    machine = elsewhere(bench.machine(), name, 1 if name == THIS else read_whole("GPUs", gpus))
    if machine is None:
        return results, ""
    there = bench.check(request, machine)
    lines = [f"{arm}: {check_document(request, facts, checked, machine).summary}" for arm, checked in there.items()]
    return there, "\n".join([*lines, machine.assumed])


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
    """The short and the standalone script of a checked arm, or why there is none, such as what the workload `lacks`."""
    try:
        checked.require_runnable()
        if lacks:
            raise InputError(lacks)
        if len(workload.prompt) > MAX_PROMPT_CHARACTERS:
            raise InputError(TOO_LONG.format(len(workload.prompt)))
        return short_script(checked, facts, workload, paths), script(checked, facts, workload, paths)
    except InputError as error:
        return no_code(str(error)), no_code(str(error))


def named_code(model: str, arm: ArmRequest, text: str, prefix: str = "") -> Any:
    """The update of a pane: its text, and in its label the name under which it is saved (`ui/js/page.js`)."""
    return gr.update(value=text, label=f"Arm {arm.name}: {prefix}{script_name(model, arm)}")


def script_name(model: str, arm: ArmRequest) -> str:
    """A file's name that tells scripts apart: the model without owner or folder, the arm, its choices."""
    parts = [PurePosixPath(model).name, arm.name, *(f"{axis}-{choice}" for axis, choice in arm.choices.items())]
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', '-'.join(parts))[:MAX_NAME]}.py"


def no_code(reason: str) -> str:
    """A comment in place of a script that cannot be written."""
    return "\n".join(comment(reason))
