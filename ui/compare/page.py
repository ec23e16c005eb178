"""The Compare page: two arms, one prompt, one live panel. Wiring only: handlers call functions of other modules."""

from typing import Any, NamedTuple

import gradio as gr

from tokendyno.backend import hardware
from tokendyno.backend.ablation.courses import Courses
from tokendyno.backend.engine.bench import Bench
from tokendyno.ui.compare.arm_column import arm_controls, titles
from tokendyno.ui.compare.code import code_panels
from tokendyno.ui.compare.handlers import Handlers
from tokendyno.ui.compare.palette import palette_dialog
from tokendyno.ui.compare.request import ARMS
from tokendyno.ui.compare.verdicts import fair_line
from tokendyno.ui.compare.work_row import WorkControls, WorkRow, work_row
from tokendyno.ui.components.events import QUIET
from tokendyno.ui.components.html import text_line
from tokendyno.ui.components.stale_line import stale_line
from tokendyno.ui.errors import shows_errors
from tokendyno.ui.live.panel import live_panel
from tokendyno.ui.run_page import Parts, first_facts

FIRST = {
    "cpu": (
        ("bfloat16", "float32"),
        "The first two arms are bfloat16, as the checkpoint has it, and float32: on a CPU, bfloat16 kernels are built "
        "for each length of the cache, which costs time and memory.",
    ),
    "cuda": (
        ("baseline", "lowest-latency"),
        "The first two arms are the defaults, which launch the kernels of a token one by one from Python, and a "
        "captured CUDA graph, which replays them all at once.",
    ),
}
"""By device: presets of the arms that a newcomer finds, which differ clearly there, and why they do."""


class CompareControls(NamedTuple):
    """What another page may set and start: `arm_a` and `arm_b` hold one control for each axis; `buttons` are Run and
    Stop; `inputs` is all that is typed or chosen, `asked` also the presets; `opened`: the event that fills them when
    the page is opened; `better` leads to Advise."""

    work: WorkControls
    arm_a: list[gr.Dropdown]
    arm_b: list[gr.Dropdown]
    live: gr.HTML
    buttons: list[gr.Button]
    inputs: list[Any]
    asked: list[Any]
    opened: Any
    better: gr.Button

    @property
    def model(self) -> gr.Dropdown:
        """Of both arms."""
        model: gr.Dropdown = self.work.model
        return model

    @property
    def batch_size(self) -> gr.Number:
        """Of both arms."""
        batch_size: gr.Number = self.work.batch_size
        return batch_size


def compare_page(bench: Bench, courses: Courses) -> CompareControls:
    """Build the page inside the current Blocks."""
    row = work_row(bench.offered, bench.limits.runs)
    with gr.Row(elem_id="arms", equal_height=False):
        first, machine = first_facts(), hardware.detect()
        presets, why = FIRST["cuda" if machine.device == "cuda" else "cpu"]
        entries = titles(first, machine)
        arms = [arm_controls(name, preset, first, entries) for name, preset in zip(ARMS, presets, strict=True)]
    same = fair_line()
    message = text_line("message", role="alert", classes="td-failure")
    older, offered = stale_line("live", "stale"), palette_dialog(bench, first)
    live, code = live_panel(bench, why), code_panels(ARMS)
    parts = Parts("compare", list(row.work), row.run, row.stop, row.will, message, older, live, code)
    page = Handlers(bench, parts, row, arms, same, offered, courses)
    better = gr.Button("Is there a better arm for this prompt? Advise", size="sm", elem_id="to-advise")
    _wire(page, row)
    buttons = [row.run, row.stop]
    return CompareControls(
        row.work, arms[0].axes, arms[1].axes, live, buttons, page.inputs, page.asked, page.opened, better
    )


def _wire(page: Handlers, row: WorkRow) -> None:
    """The page's own events: presets, "A and one more", the palette, and "use the same"."""
    work, safe = page.work, shows_errors(page.message)
    settled = page.wire(page.checked, [work.prompt, work.system], [row.run.click, work.prompt.submit], page.checked)
    row.filled.then(None, None, None, js=settled.changed, **QUIET)  # texts may be all that it has changed
    dropdowns = [part for arm in page.arms for part in (arm.preset, *arm.axes)]
    work.model.change(safe(page.show_unsupported), work.model, [*dropdowns, page.palette, page.message], **QUIET)
    for arm in page.arms:
        asked = [arm.preset, work.model, *arm.axes]
        chosen = arm.preset.select(safe(page.choose_preset(arm)), asked, [*arm.axes, page.message], **QUIET)
        chosen.then(None, None, None, js=settled.changed, **QUIET)  # only its notes may be new
    first, *others = page.arms
    for arm in others:
        arm.verdicts.copy(safe(page.copy(arm)), first.axes, [*arm.axes, page.message], **QUIET)
    axes = [axis for arm in page.arms for axis in arm.axes]
    page.palette.take(safe(page.take), axes, [*axes, page.message], **QUIET)
    page.same.fix(safe(page.make_same), axes, [*axes, page.message], trigger_mode="multiple", **QUIET)
    page.finish.then(safe(page.compare_workers), page.asked, [page.same, page.message], **QUIET)
