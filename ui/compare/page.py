"""The Compare page: two arms, one prompt, one live panel. Wiring only: handlers call functions of other modules."""

from typing import Any, NamedTuple

import gradio as gr
import msgspec

from backend import hardware
from backend.ablation.courses import Courses
from backend.ablation.kinds import Ablation, Sweep
from backend.config import Request
from backend.engine.bench import Bench
from backend.errors import InputError
from backend.optimizations import prompt_axes
from backend.runs.run import Run
from ui.address import read_address
from ui.compare.arm_column import ArmControls, arm_controls
from ui.compare.code import code_panel, code_text, named_code, no_code
from ui.compare.fold import folded
from ui.compare.palette import Taken, palette_dialog
from ui.compare.palette import entries as offers
from ui.compare.quality import quality_request
from ui.compare.request import (
    ARMS,
    CUSTOM,
    choice_values,
    matching_preset,
    measured,
    preset_choices,
    read_arms,
    read_choices,
    read_request,
)
from ui.compare.stale import stale
from ui.compare.unsupported import titles
from ui.compare.verdicts import describe, unchecked
from ui.compare.work_row import WorkControls, WorkRow, work_row
from ui.components.axis_values import all_known, edited
from ui.components.queue_line import queue_line
from ui.components.stale_line import stale_line
from ui.components.summary import NOT_HERE, machine_line, model_line
from ui.components.text_line import text_line
from ui.errors import Updates, shows_errors
from ui.live.panel import RUN_ID, live_panel
from ui.run_page import RunPage, first_facts, fixing_choices
from ui.visitor import BUSY, REFUSED, Buttons, buttons_of, visitor_of
from ui.worth.panel import Asked, sweep_panel, worth_panel

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

SAME = "A and B are identical: any difference between them is noise."


class CompareControls(NamedTuple):
    """What another page may set: `arm_a` and `arm_b` hold one control for each axis."""

    work: WorkControls
    arm_a: list[gr.Dropdown]
    arm_b: list[gr.Dropdown]

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
    row = work_row()
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
    worth = worth_panel(courses), sweep_panel(courses)
    _Page(bench, row, arms, same, message, older, offered, live, code_panel(ARMS), courses, worth).wire()
    return CompareControls(row.work, arms[0].axes, arms[1].axes)


class _Page(RunPage):
    """The handlers of the page."""

    def __init__(
        self, bench: Bench, row: WorkRow, arms: list[ArmControls], same: gr.HTML, message: gr.HTML,
        older: gr.HTML, offered: gr.HTML, live: gr.HTML, codes: list[gr.Code], courses: Courses,
        worth: tuple[gr.HTML, gr.HTML],
    ) -> None:  # fmt: skip
        super().__init__(bench, message, live)
        self.arms, self.codes = arms, codes
        self.work, self.run_button, self.measure_button, self.quality_button, self.stop_button, self.facts = row
        self.same, self.stale = same, older
        self.palette = offered
        self.courses, (self.worth, self.swept) = courses, worth
        self.inputs: list[Any] = [*self.work, *(axis for arm in arms for axis in arm.axes)]
        self.asked: list[Any] = [*self.inputs, *(arm.preset for arm in arms)]

    def wire(self) -> None:
        """Connect every event."""
        safe = shows_errors(self.message)
        quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        of_arms = [part for arm in self.arms for part in (arm.preset, arm.fold, arm.verdicts)]
        checked = [self.facts, self.same, self.message, self.stale, *of_arms, *self.codes]
        buttons = [self.run_button, self.measure_button, self.quality_button, self.stop_button]
        everything = [*self.inputs, *checked, self.live, self.worth, self.swept, *buttons]

        texts = (self.work.prompt, self.work.system)
        changes = [part.change for part in self.inputs if part not in texts] + [part.blur for part in texts]
        gr.on(changes, safe(self.check), [self.live, *self.asked], checked, trigger_mode="always_last",
              concurrency_limit=None, **quiet)  # fmt: skip
        self.work.model.change(safe(self.announce), self.work.model, [self.message], queue=False, **quiet)
        dropdowns = [part for arm in self.arms for part in (arm.preset, *arm.axes)]
        self.work.model.change(safe(self.show_unsupported), self.work.model, [*dropdowns, self.palette, self.message],
                               queue=False, **quiet)  # fmt: skip
        for arm in self.arms:
            changed = [*arm.axes, self.message]
            chosen = arm.preset.select(safe(self.choose_preset(arm)), [arm.preset, self.work.model, *arm.axes], changed,
                                       queue=False, **quiet)  # fmt: skip
            chosen.then(
                safe(self.check_chosen), [arm.preset, self.live, *self.asked], checked, concurrency_limit=None, **quiet
            )
            arm.verdicts.fix(safe(self.fix(arm)), arm.axes, changed, queue=False, trigger_mode="multiple", **quiet)
        first, *others = self.arms
        for arm in others:
            arm.verdicts.copy(safe(self.copy(arm)), first.axes, [*arm.axes, self.message], queue=False, **quiet)
        axes = [axis for arm in self.arms for axis in arm.axes]
        self.palette.take(safe(self.take), axes, [*axes, self.message], queue=False, **quiet)
        gr.on([self.run_button.click, self.work.prompt.submit], safe(self.run), self.asked,
              [self.live, self.message, *buttons], concurrency_limit=None, **quiet)  # fmt: skip
        self.measure_button.click(safe(self.measure), self.asked, [self.live, self.message, *buttons],
                                  concurrency_limit=None, **quiet)  # fmt: skip
        self.quality_button.click(safe(self.read), [self.live, *self.asked], [self.live, self.message, *buttons],
                                  concurrency_limit=None, **quiet)  # fmt: skip
        self.stop_button.click(safe(self.stop), self.live, [self.message], queue=False, **quiet)
        for panel, begin in ((self.worth, self.ablate), (self.swept, self.sweep)):
            panel.begin(safe(begin), self.asked, [panel, self.message], concurrency_limit=None, **quiet)
            panel.halt(safe(self.halt), panel, [self.message], queue=False, **quiet)
            panel.again(safe(self.go_on(panel)), panel, [panel, self.message], concurrency_limit=None, **quiet)
        self.live.finished(safe(self.finished), self.live, [*buttons, self.message], queue=False, **quiet)
        context = gr.context.Context.root_block
        assert context is not None
        opened = context.load(safe(self.attach), None, everything, queue=False, **quiet)
        opened.then(safe(self.check_first), [self.live, *self.asked], checked, concurrency_limit=None, **quiet)

    # --- arms -------------------------------------------------------------------------------------

    def check(self, shown: Any, *values: Any) -> Updates:
        """Verdicts, facts, presets and scripts for the present values of the controls. `shown`: id of a run."""
        updates: Updates = {self.stale: stale(self.known(shown), values)}
        chosen = read_arms(values[len(self.work) :])
        for arm, found in zip(self.arms, chosen, strict=True):
            updates[arm.preset] = found.preset or matching_preset(found.choices)
        updates[self.same] = SAME if chosen[0].choices == chosen[1].choices else ""
        try:
            request = read_request(values, need_prompt=False)
            facts = self.bench.facts(request.model)
            lacking = self.bench.obstacle(facts)
            updates[self.facts] = model_line(facts, lacking)
            machine = hardware.detect()
            room_bytes = machine.free_device_bytes
            for arm, found in zip(self.arms, chosen, strict=True):
                updates[arm.preset] = matching_preset(found.choices, found.preset, facts, machine)
            results = self.bench.check(request)
            if _complete(values):  # else what Run said of the missing prompt stays
                updates[self.message] = ""
            for arm, asked, code, result in zip(self.arms, chosen, self.codes, results.values(), strict=True):
                updates[arm.fold] = folded(arm.name.lower(), result.requested, facts)
                shown_result = result.refused(NOT_HERE if lacking else "")
                updates[arm.verdicts] = describe(asked, updates[arm.preset], shown_result, room_bytes)
                text = code_text(result, facts, lambda: read_request(values), self.bench.local_paths)
                updates[code] = named_code(request.model, asked, text)
        except InputError as error:
            updates |= {self.message: str(error), self.facts: ""}
            updates |= {arm.verdicts: unchecked(asked) for arm, asked in zip(self.arms, chosen, strict=True)}
            updates |= {code: no_code(str(error)) for code in self.codes}
        return updates

    def check_chosen(self, preset: object, shown: Any, *values: Any) -> Updates:
        """The same when a preset was chosen: it may come to what was set before, and only its notes are new."""
        return {} if preset == CUSTOM else self.check(shown, *values)

    def show_unsupported(self, model: object) -> Updates:
        """Another model was chosen: mark what it cannot use here. Of an unknown name `check` says so."""
        try:
            facts = self.bench.facts(str(model))
        except InputError:
            return {}
        entries = titles(facts, hardware.detect())
        updates: Updates = {self.palette: offers(facts)}
        for arm in self.arms:
            updates[arm.preset] = gr.update(choices=[*entries.presets, (CUSTOM, CUSTOM)])
            updates |= {axis: gr.update(choices=pairs) for axis, pairs in zip(arm.axes, entries.choices, strict=True)}
        return updates

    def choose_preset(self, arm: ArmControls) -> Any:
        """Handler: an arm's preset was chosen. It leaves alone what need not change, since the user may have changed
        that by the time this is answered."""

        def choose(name: str, model: object, *values: object) -> Updates:
            if name == CUSTOM:
                return {}
            try:
                choices = preset_choices(name, self.bench.facts(str(model)), hardware.detect())
            except InputError:  # `check` says so
                choices = preset_choices(name)
            wanted = zip(arm.axes, choice_values(choices), values, strict=True)
            return {axis: value for axis, value, held in wanted if value != held}

        return choose

    def fix(self, arm: ArmControls) -> Any:
        """Handler: a verdict's fix was pressed."""

        def apply(event: gr.EventData, *values: Any) -> Updates:
            return edited(prompt_axes(), arm.axes, values, fixing_choices(event))

        return apply

    def copy(self, arm: ArmControls) -> Any:
        """Handler: "A and one more" was pressed. The palette opens in the browser."""
        return lambda *values: dict(zip(arm.axes, choice_values(read_choices(values)), strict=True))

    def take(self, event: gr.EventData, *values: Any) -> Updates:
        """An entry of the palette was taken."""
        try:
            taken = msgspec.convert(event._data, Taken)
            at = ARMS.index(taken.arm)
        except (msgspec.ValidationError, ValueError) as error:
            raise InputError("This entry cannot be read. Reload the page.") from error
        width = len(self.arms[at].axes)
        axes, before = prompt_axes(), values[at * width : (at + 1) * width]
        asked = {axis.name: axis.default for axis in axes} | taken.choices if taken.whole else taken.choices
        return edited(axes, self.arms[at].axes, before, asked)

    # --- runs -------------------------------------------------------------------------------------

    def run(self, request: gr.Request, *values: Any) -> Updates:
        """Run was pressed."""
        return self.start(read_request(values), request)

    def measure(self, request: gr.Request, *values: Any) -> Updates:
        """Measure was pressed: the arms repeated often enough for an interval, or as Repeats says."""
        return self.start(measured(read_request(values)), request)

    def read(self, request: gr.Request, shown: Any, *values: Any) -> Updates:
        """Quality was pressed: both arms read the same texts. `shown`: id of a run."""
        return self.start(quality_request(read_request(values, need_prompt=False), self.known(shown)), request)

    def ablate(self, request: gr.Request, *values: Any) -> Updates:
        """What the arms differ in is to be measured choice by choice."""
        course = self.courses.begin(read_request(values), visitor_of(request))
        return {self.worth: course.id, self.message: ""}

    def sweep(self, event: gr.EventData, request: gr.Request, *values: Any) -> Updates:
        """One arm is to be measured over sizes and choices."""
        try:
            wanted = msgspec.convert(event._data, Asked)
            at = ARMS.index(wanted.arm)
        except (msgspec.ValidationError, ValueError) as error:
            raise InputError("What is to be swept cannot be read. Reload the page.") from error
        asked = read_request(values)
        asked = msgspec.structs.replace(asked, arms=[asked.arms[at]])
        course = self.courses.begin_sweep(asked, wanted.values(), wanted.quality, visitor_of(request))
        return {self.swept: course.id, self.message: ""}

    def halt(self, request: gr.Request, course_id: Any) -> Updates:
        """Stop of an ablation or a sweep was pressed."""
        stopped = isinstance(course_id, str) and self.courses.stop(course_id, visitor_of(request))
        return {self.message: "" if stopped else REFUSED}

    def go_on(self, panel: gr.HTML) -> Any:
        """Handler: what was stopped goes on, in that panel."""

        def again(request: gr.Request, course_id: Any) -> Updates:
            course = self.courses.again(course_id if isinstance(course_id, str) else "", visitor_of(request))
            return {panel: course.id, self.message: ""}

        return again

    def start(self, asked: Request, request: gr.Request) -> Updates:
        """Queue a run and show it."""
        run_id = self.bench.submit(asked, visitor_of(request))
        return {self.live: run_id, self.message: "", **self.buttons(BUSY)}

    def attach(self, request: gr.Request) -> Updates:
        """The page was opened: show the run of `?run=`, the ablation of `?worth=` or the sweep of `?sweep=`, else this
        visitor's newest, with its settings. A model that the address names stays."""
        asked = read_address(request).model
        course_id = request.query_params.get("worth") or request.query_params.get("sweep") or ""
        owner = visitor_of(request).owner
        newest = {self.worth: self.courses.newest(owner, Ablation), self.swept: self.courses.newest(owner, Sweep)}
        found = newest | (self.opened_course(course_id) if course_id else self.opened_run(request))
        return found | ({self.work.model: asked} if asked else {})

    def opened_course(self, course_id: str) -> Updates:
        """An ablation with the arms between which it goes, or a sweep with its arm in both."""
        course = self.courses.get(course_id)
        if course is None:
            return {self.live: "", self.message: f"There is no ablation or sweep {course_id[:64]!r} here."}
        heading, sweeps = course.heading, isinstance(course, Sweep)
        updates = self.work.values(heading.model, heading.workload)
        whole = heading.base if sweeps else {**heading.base, **dict(heading.changes)}
        for arm, choices in zip(self.arms, (heading.base, whole), strict=True):
            if all_known(prompt_axes(), choices):
                updates |= zip(arm.axes, choice_values(choices), strict=True)
                updates[arm.preset] = CUSTOM
        return updates | {self.live: "", self.swept if sweeps else self.worth: course.id}

    def opened_run(self, request: gr.Request) -> Updates:
        """The run that is shown at first, with its settings."""
        wanted = request.query_params.get("run") or ""
        if wanted:
            run = self.bench.runs.get(wanted) if RUN_ID.fullmatch(wanted) else None
            if run is None:
                return {self.live: "", self.message: f"There is no run {wanted[:64]!r} here. Press Run to start one."}
            if run.request.traffic is not None:  # the Batching page shows it
                return {self.live: ""}
        else:
            newest = self.bench.runs.newest(visitor_of(request).owner)
            run = self.bench.runs.get(newest) if newest else None
            if run is None or run.request.traffic is not None:
                return {self.live: ""}
            if run.request.trial and self.courses.get(run.request.trial) is not None:
                return self.opened_course(run.request.trial)
        return {self.live: run.id, **self.buttons(buttons_of(run, request)), **self.settings(run)}

    def settings(self, run: Run) -> Updates:
        """Updates that show the settings of a run; choices that no longer exist are left alone."""
        reads = run.request.quality is not None
        updates = self.work.values(run.request.model, run.request.workload) if not reads else {}
        updates[self.work.model] = run.request.model
        for arm, asked in zip(self.arms, run.request.arms, strict=False):
            if all_known(prompt_axes(), asked.choices):
                updates |= zip(arm.axes, choice_values(asked.choices), strict=True)
                updates[arm.preset] = asked.preset or CUSTOM
        return updates

    def buttons(self, state: Buttons) -> Updates:
        """Run, Measure, Quality and Stop."""
        return {
            self.run_button: gr.update(interactive=state[0]),
            self.measure_button: gr.update(interactive=state[0]),
            self.quality_button: gr.update(interactive=state[0]),
            self.stop_button: gr.update(interactive=state[1]),
        }


def _complete(values: tuple[Any, ...]) -> bool:
    """Whether these values could be run."""
    try:
        read_request(values)
    except InputError:
        return False
    return True


def device_line() -> str:
    """The machine, for the top of the page."""
    return machine_line(hardware.detect())
