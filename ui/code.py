"""Each arm as a standalone script: a folded part of the page, filled with what stands in the controls."""

from collections.abc import Callable

import gradio as gr

from backend.errors import InputError
from backend.export import script
from backend.models import ModelFacts
from backend.records import Request
from backend.rules import Checked
from backend.source import comment

MOST_PROMPT_CHARACTERS = 20_000
"""A longer prompt is not sent back to the browser with every change of a control."""

TOO_LONG = "The prompt has {:,} characters: too long to be shown here. Write the script with tokendyno export."


def code_panel(arms: tuple[str, ...]) -> list[gr.Code]:
    """One read-only text an arm, coloured by the browser; what it shows reaches the page as text alone."""
    with (
        gr.Accordion("Code: each arm as a Python script", open=False, elem_id="code"),
        gr.Row(elem_classes=["td-codes"]),
    ):
        return [
            gr.Code(
                "", language="python", label=f"Arm {name}", interactive=False, lines=12, max_lines=36,
                show_line_numbers=False, buttons=["copy", "download"], min_width=300, elem_id=f"code-{name.lower()}",
                elem_classes=["td-code", f"arm-{name.lower()}"],
            )
            for name in arms
        ]  # fmt: skip


def code_text(checked: Checked, facts: ModelFacts, asked: Callable[[], Request], paths: bool) -> str:
    """The script of a judged arm, or why there is none. `asked` refuses what cannot be run, such as no prompt."""
    try:
        checked.require_runnable()
        workload = asked().workload
        if len(workload.prompt) > MOST_PROMPT_CHARACTERS:
            raise InputError(TOO_LONG.format(len(workload.prompt)))
        return script(checked, facts, workload, paths)
    except InputError as error:
        return no_code(str(error))


def no_code(reason: str) -> str:
    """What stands in place of a script that cannot be written."""
    return "\n".join(comment(reason))
