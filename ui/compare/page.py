"""The Compare page: two arms, one prompt, one live panel. Wiring only: handlers call functions of other modules."""

from typing import Any, NamedTuple

import gradio as gr

from tokendyno.backend import hardware
from tokendyno.backend.ablation.courses import Courses
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.optimizations import prompt_axes
from tokendyno.ui.compare.arm_column import arm_controls, titles
from tokendyno.ui.compare.code import code_panels
from tokendyno.ui.compare.handlers import Handlers
from tokendyno.ui.compare.palette import palette_dialog
from tokendyno.ui.compare.request import ARMS
from tokendyno.ui.compare.verdicts import fair_line
from tokendyno.ui.compare.work_row import WorkControls, work_row
from tokendyno.ui.components.counting import wire_counting
from tokendyno.ui.components.events import QUIET, Settled
from tokendyno.ui.components.queue_line import queue_line
from tokendyno.ui.components.stale_line import stale_line
from tokendyno.ui.components.summary import machine_line
from tokendyno.ui.components.text_line import text_line
from tokendyno.ui.errors import shows_errors
from tokendyno.ui.live.panel import live_panel
from tokendyno.ui.run_page import first_facts, fixes

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
        return self.work.model

    @property
    def batch_size(self) -> gr.Number:
        """Of both arms."""
        return self.work.batch_size


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
    older = stale_line("live", "stale")
    offered = palette_dialog(bench, first)
    live = live_panel(bench.runs, why, queue_line(bench), acts=bench.limits.runs)
    page = Handlers(bench, row, arms, same, message, older, offered, live, code_panels(ARMS), courses)
    better = gr.Button("Is there a better arm for this prompt? Advise", size="sm", elem_id="to-advise")
    settled = Settled("compare")
    _wire_choices(page, settled)
    _wire_arms(page, settled)
    _wire_runs(page)
    opened = _wire_opening(page)
    buttons = [row.run, row.stop]
    return CompareControls(row.work, arms[0].axes, arms[1].axes, live, buttons, page.inputs, page.asked, opened, better)


def _wire_choices(page: Handlers, settled: Settled) -> None:
    """What is typed or chosen is checked, a moment after the last change: what announces a check comes before it."""
    safe = shows_errors(page.message)
    wire_counting(page.work.model, page.message, page.bench, safe)
    texts = (page.work.prompt, page.work.system)
    changes = [part.change for part in page.inputs if part not in texts] + [part.blur for part in texts]
    changes += [page.code.gpu.change, page.code.gpus.change]
    settled.after(changes)(
        safe(page.check_on_change),
        [page.live, page.message, *page.asked],
        page.checked,
        trigger_mode="always_last",
        **QUIET,
    )
    put_back = page.will.line.back(
        safe(page.will.put_back), None, [*page.will.controls.values(), page.message], **QUIET
    )
    for filled in (page.filled, put_back):  # texts may be all that it has changed
        filled.then(None, None, None, js=settled.changed, **QUIET)
    dropdowns = [part for arm in page.arms for part in (arm.preset, *arm.axes)]
    page.work.model.change(
        safe(page.show_unsupported), page.work.model, [*dropdowns, page.palette, page.message], **QUIET
    )


def _wire_arms(page: Handlers, settled: Settled) -> None:
    """Presets, fixes, "A and one more", the palette, and "use the same"."""
    safe = shows_errors(page.message)
    for arm in page.arms:
        changed = [*arm.axes, page.message]
        chosen = arm.preset.select(
            safe(page.choose_preset(arm)), [arm.preset, page.work.model, *arm.axes], changed, **QUIET
        )
        chosen.then(None, None, None, js=settled.changed, **QUIET)  # only its notes may be new
        arm.verdicts.fix(safe(fixes(prompt_axes(), arm.axes)), arm.axes, changed, trigger_mode="multiple", **QUIET)
    first, *others = page.arms
    for arm in others:
        arm.verdicts.copy(safe(page.copy(arm)), first.axes, [*arm.axes, page.message], **QUIET)
    axes = [axis for arm in page.arms for axis in arm.axes]
    page.palette.take(safe(page.take), axes, [*axes, page.message], **QUIET)
    page.same.fix(safe(page.make_same), axes, [*axes, page.message], trigger_mode="multiple", **QUIET)


def _wire_runs(page: Handlers) -> None:
    """Run, Stop, and the end of a run. A press while another is being answered waits for that."""
    safe, begun = shows_errors(page.message), [page.live, page.message, *page.buttons_shown]
    asked = [page.live, *page.asked]
    presses = [page.run_button.click, page.work.prompt.submit]
    gr.on(presses, safe(page.run), asked, begun, trigger_mode="always_last", **QUIET)
    page.stop_button.click(safe(page.stop), page.live, [page.message], **QUIET)
    over = page.live.finished(safe(page.finished), page.live, [*page.buttons_shown, page.message], **QUIET)
    over.then(safe(page.compare_workers), page.asked, [page.same, page.message], **QUIET)


def _wire_opening(page: Handlers) -> Any:
    """The page was opened. Returns the event after which the controls hold what is shown."""
    safe, context = shows_errors(page.message), gr.context.Context.root_block
    assert context is not None
    everything = [*page.inputs, *page.checked, page.live, *page.buttons_shown]
    opened = context.load(safe(page.attach), None, everything, **QUIET)
    opened.then(safe(page.check_first), [page.live, *page.asked], page.checked, **QUIET)
    return opened


def device_line() -> str:
    """The machine, for the top of the page."""
    return machine_line(hardware.detect())
