"""The Compare page: two arms, one prompt, one live panel. Wiring only: handlers call functions of other modules."""

from collections.abc import Callable
from typing import Any, NamedTuple

import gradio as gr

from backend import hardware
from backend.ablation.courses import Courses
from backend.engine.bench import Bench
from ui.compare.arm_column import arm_controls
from ui.compare.arm_handlers import ArmHandlers
from ui.compare.code import code_panel
from ui.compare.opening import Opening
from ui.compare.palette import palette_dialog
from ui.compare.parts import CoursePart
from ui.compare.request import ARMS
from ui.compare.run_handlers import RunHandlers
from ui.compare.unsupported import titles
from ui.compare.work_row import WorkControls, work_row
from ui.components.counting import wire_counting
from ui.components.queue_line import queue_line
from ui.components.stale_line import stale_line
from ui.components.summary import machine_line
from ui.components.text_line import text_line
from ui.errors import Updates, shows_errors
from ui.live.panel import live_panel
from ui.run_page import first_facts
from ui.worth.panel import sweep_panel, worth_panel

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


QUIET: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
"""Of every event of the page. None goes through Gradio's queue: its client does not open a stream of answers while it
believes the last one open, so that a press whose answer was late by milliseconds was never answered."""


class CompareControls(NamedTuple):
    """What another page may set and start: `arm_a` and `arm_b` hold one control for each axis; `buttons` are Run,
    Measure, Quality and Stop."""

    work: WorkControls
    arm_a: list[gr.Dropdown]
    arm_b: list[gr.Dropdown]
    live: gr.HTML
    buttons: list[gr.Button]

    @property
    def model(self) -> gr.Dropdown:
        """Of both arms."""
        return self.work.model

    @property
    def batch_size(self) -> gr.Number:
        """Of both arms."""
        return self.work.batch_size


def compare_page(bench: Bench) -> CompareControls:
    """Build the page inside the current Blocks."""
    row = work_row(bench.offered)
    with gr.Row(elem_id="arms", equal_height=False):
        first, machine = first_facts(), hardware.detect()
        presets, why = FIRST["cuda" if machine.device == "cuda" else "cpu"]
        entries = titles(first, machine)
        arms = [arm_controls(name, preset, first, entries) for name, preset in zip(ARMS, presets, strict=True)]
    same = text_line("same", role="status", classes="td-same")
    message = text_line("message", role="alert", classes="td-failure")
    older = stale_line("live", "stale")
    offered = palette_dialog(first)
    live = live_panel(bench.runs, why, queue_line(bench))
    courses = Courses(bench)
    worth = [_course_part("worth", worth_panel, courses), _course_part("sweep", sweep_panel, courses)]
    _Page(bench, row, arms, same, message, older, offered, live, code_panel(ARMS), courses, worth).wire()
    buttons = [row.run, row.measure, row.quality, row.stop]
    return CompareControls(row.work, arms[0].axes, arms[1].axes, live, buttons)


def _course_part(name: str, panel: Callable[[Courses], gr.HTML], courses: Courses) -> CoursePart:
    message = text_line(f"{name}-message", role="alert", classes="td-failure")
    return CoursePart(panel(courses), message)


class _Page(ArmHandlers, RunHandlers, Opening):
    """The page, with its events."""

    def wire(self) -> None:
        """Connect every event."""
        self.wire_choices()
        self.wire_arms()
        self.wire_runs()
        self.wire_courses()
        self.wire_opening()

    @property
    def buttons_shown(self) -> list[Any]:
        """Run, Measure, Quality and Stop."""
        return [self.run_button, self.measure_button, self.quality_button, self.stop_button]

    @property
    def checked(self) -> list[Any]:
        """What `check` updates."""
        of_arms = [part for arm in self.arms for part in (arm.preset, arm.fold, arm.verdicts)]
        return [self.facts, self.will, self.same, self.message, self.stale, *of_arms, *self.codes]

    def wire_choices(self) -> None:
        """What is typed or chosen is checked. Gradio answers the events of one change one after the other, so that what
        announces a check comes before it."""
        safe = shows_errors(self.message)
        wire_counting(self.work.model, self.message, self.bench, safe, QUIET)
        texts = (self.work.prompt, self.work.system)
        changes = [part.change for part in self.inputs if part not in texts] + [part.blur for part in texts]
        gr.on(changes, safe(self.check_on_change), [self.live, self.message, *self.asked], self.checked,
              trigger_mode="always_last", **QUIET)  # fmt: skip
        dropdowns = [part for arm in self.arms for part in (arm.preset, *arm.axes)]
        self.work.model.change(safe(self.show_unsupported), self.work.model, [*dropdowns, self.palette, self.message],
                               **QUIET)  # fmt: skip

    def wire_arms(self) -> None:
        """Presets, fixes, "A and one more" and the palette."""
        safe = shows_errors(self.message)
        for arm in self.arms:
            changed = [*arm.axes, self.message]
            chosen = arm.preset.select(safe(self.choose_preset(arm)), [arm.preset, self.work.model, *arm.axes], changed,
                                       **QUIET)  # fmt: skip
            chosen.then(safe(self.check_chosen), [arm.preset, self.live, self.message, *self.asked], self.checked,
                        **QUIET)  # fmt: skip
            arm.verdicts.fix(safe(self.fix(arm)), arm.axes, changed, trigger_mode="multiple", **QUIET)
        first, *others = self.arms
        for arm in others:
            arm.verdicts.copy(safe(self.copy(arm)), first.axes, [*arm.axes, self.message], **QUIET)
        axes = [axis for arm in self.arms for axis in arm.axes]
        self.palette.take(safe(self.take), axes, [*axes, self.message], **QUIET)

    def wire_runs(self) -> None:
        """Run, Measure, Quality and Stop, and the end of a run. A press while the one before is being answered waits
        for that: what was pressed with bad input, mended and pressed again shall run."""
        safe, begun = shows_errors(self.message), [self.live, self.message, *self.buttons_shown]
        asked = [self.live, *self.asked]
        for events, handler in (
            ([self.run_button.click, self.work.prompt.submit], self.run),
            ([self.measure_button.click], self.measure),
            ([self.quality_button.click], self.read),
        ):
            gr.on(events, safe(handler), asked, begun, trigger_mode="always_last", **QUIET)
        self.stop_button.click(safe(self.stop), self.live, [self.message], **QUIET)
        self.live.finished(safe(self.finished), self.live, [*self.buttons_shown, self.message], **QUIET)

    def wire_courses(self) -> None:
        """Ablations and sweeps. What is wrong with one is said above its button, until something is changed."""
        messages = [part.message for part in self.courses_shown]
        begins: tuple[Callable[..., Updates], ...] = (self.ablate, self.sweep)
        for part, begin in zip(self.courses_shown, begins, strict=True):
            safe, panel = shows_errors(part.message), part.panel
            panel.begin(safe(begin), self.asked, [*part], **QUIET)
            panel.halt(safe(self.halt(part)), panel, [part.message], **QUIET)
            panel.again(safe(self.go_on(part)), panel, [*part], **QUIET)
        changes = [part.change for part in self.inputs]
        gr.on(changes, None, None, messages, js="() => ['', '']", trigger_mode="always_last", **QUIET)

    def wire_opening(self) -> None:
        """The page was opened."""
        safe, context = shows_errors(self.message), gr.context.Context.root_block
        assert context is not None
        everything = [*self.inputs, *self.checked, self.live, self.worth, self.swept, *self.buttons_shown]
        opened = context.load(safe(self.attach), None, everything, **QUIET)
        opened.then(safe(self.check_first), [self.live, *self.asked], self.checked, **QUIET)


def device_line() -> str:
    """The machine, for the top of the page."""
    return machine_line(hardware.detect())
