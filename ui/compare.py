"""The Compare page: two arms, one prompt, one live panel. Wiring only: every handler calls what is tested apart."""

from typing import Any

import gradio as gr

from backend import hardware
from backend.engine import Bench
from backend.errors import InputError
from backend.models import DEFAULT_MODEL, ModelFacts, resolve
from backend.optimizations import axis_names
from backend.records import Request
from backend.runs import Run
from ui import controls, form
from ui.calm import Updates, calmly
from ui.code import code_panel, code_text, no_code
from ui.controls import ArmControls, WorkControls
from ui.facts import machine_line, model_line
from ui.fold import folded
from ui.live import RUN_ID, live_panel
from ui.marks import titles
from ui.verdicts import describe
from ui.words import words
from ui.work import work_row

PRESETS = ("baseline", "unwindowed")
SAME = "A and B are identical: what will differ between them is noise."
IDLE, BUSY = (True, False), (False, True)


def compare_page(bench: Bench) -> None:
    """Build the page inside the current Blocks."""
    work, run_button, measure_button, stop_button, facts = work_row()
    with gr.Row(elem_id="arms", equal_height=False):
        first = _first_facts()
        named = titles(first, hardware.machine())
        arms = [controls.arm_controls(n, preset, first, named) for n, preset in zip(form.ARMS, PRESETS, strict=True)]
    same = words("same", role="status", classes="td-same")
    message = words("message", role="alert", classes="td-failure")
    live = live_panel(bench.runs)
    codes = code_panel(form.ARMS)
    page = _Page(bench, work, arms, run_button, measure_button, stop_button, facts, same, message, live, codes)
    page.wire()


class _Page:
    """The handlers of one page. They hold no state: what a viewer sees is in the controls and in the run log."""

    def __init__(
        self, bench: Bench, work: WorkControls, arms: list[ArmControls], run_button: gr.Button,
        measure_button: gr.Button, stop_button: gr.Button, facts: gr.HTML, same: gr.HTML, message: gr.HTML,
        live: gr.HTML, codes: list[gr.Code],
    ) -> None:  # fmt: skip
        self.bench, self.work, self.arms = bench, work, arms
        self.run_button, self.stop_button, self.live = run_button, stop_button, live
        self.measure_button = measure_button
        self.facts, self.same, self.message, self.codes = facts, same, message, codes
        self.inputs: list[Any] = [*work, *(axis for arm in arms for axis in arm.axes)]

    def wire(self) -> None:
        """Connect every event."""
        calm = calmly(self.message)
        quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        of_arms = [part for arm in self.arms for part in (arm.preset, arm.fold, arm.verdicts)]
        judged = [self.facts, self.same, self.message, *of_arms, *self.codes]
        buttons = [self.run_button, self.measure_button, self.stop_button]
        everything = [*self.inputs, *judged, self.live, *buttons]

        changes = [part.change for part in self.inputs if part is not self.work.prompt] + [self.work.prompt.blur]
        gr.on(changes, calm(self.judge), self.inputs, judged, trigger_mode="always_last",
              concurrency_limit=None, **quiet)  # fmt: skip
        marked = [part for arm in self.arms for part in (arm.preset, *arm.axes)]
        self.work.model.change(calm(self.mark), self.work.model, marked, queue=False, **quiet)
        for arm in self.arms:
            changed = [*arm.axes, self.message]
            arm.preset.select(calm(self.choose_preset(arm)), arm.preset, changed, queue=False, **quiet)
            arm.verdicts.fix(calm(self.fix(arm)), arm.axes, changed, queue=False, **quiet)
        gr.on([self.run_button.click, self.work.prompt.submit], calm(self.run), self.inputs,
              [self.live, self.message, *buttons], concurrency_limit=None, **quiet)  # fmt: skip
        self.measure_button.click(calm(self.measure), self.inputs, [self.live, self.message, *buttons],
                                  concurrency_limit=None, **quiet)  # fmt: skip
        self.stop_button.click(calm(self.stop), self.live, [self.message], queue=False, **quiet)
        self.live.finished(calm(self.finished), self.live, buttons, queue=False, **quiet)
        context = gr.context.Context.root_block
        assert context is not None
        opened = context.load(calm(self.attach), None, everything, queue=False, **quiet)
        opened.then(calm(self.judge_first), self.inputs, judged, concurrency_limit=None, **quiet)

    # --- arms -------------------------------------------------------------------------------------

    def judge(self, *values: Any) -> Updates:
        """Verdicts, facts and presets for what stands in the controls now."""
        updates: Updates = {self.message: ""}
        width = len(axis_names())
        chosen = [form.read_choices(values[-2 * width :][i * width : (i + 1) * width]) for i in range(len(self.arms))]
        for arm, choices in zip(self.arms, chosen, strict=True):
            updates[arm.preset] = form.matching_preset(choices)
        updates[self.same] = SAME if chosen[0] == chosen[1] else ""
        try:
            request = form.read_request(values, need_prompt=False)
            facts = resolve(request.model, self.bench.models_dir, local_paths=self.bench.local_paths)
            updates[self.facts] = model_line(facts)
            room_bytes = hardware.machine().room_bytes
            judged = self.bench.check(request)
            for arm, code, checked in zip(self.arms, self.codes, judged.values(), strict=True):
                updates[arm.fold] = folded(arm.name.lower(), checked.requested, facts)
                updates[arm.verdicts] = describe(checked, room_bytes)
                updates[code] = code_text(checked, facts, lambda: form.read_request(values), self.bench.local_paths)
        except InputError as error:
            updates |= {self.message: str(error), self.facts: ""} | {arm.verdicts: "" for arm in self.arms}
            updates |= {code: no_code(str(error)) for code in self.codes}
        return updates

    def judge_first(self, *values: Any) -> Updates:
        """The same when the page was opened: what `attach` had to say stays."""
        updates = self.judge(*values)
        return updates if updates[self.message] else {k: v for k, v in updates.items() if k is not self.message}

    def mark(self, model: object) -> Updates:
        """Another model was chosen: mark what it cannot use here. A name that is none is `judge`'s to say."""
        try:
            facts = resolve(str(model), self.bench.models_dir, local_paths=self.bench.local_paths)
        except InputError:
            return {}
        named = titles(facts, hardware.machine())
        updates: Updates = {}
        for arm in self.arms:
            updates[arm.preset] = gr.update(choices=[*named.presets, (form.CUSTOM, form.CUSTOM)])
            updates |= {axis: gr.update(choices=names) for axis, names in zip(arm.axes, named.choices, strict=True)}
        return updates

    def choose_preset(self, arm: ArmControls) -> Any:
        """Handler: an arm's preset was chosen."""

        def choose(name: str) -> Updates:
            if name == form.CUSTOM:
                return {}
            return dict(zip(arm.axes, form.choice_values(form.preset_choices(name)), strict=True))

        return choose

    def fix(self, arm: ArmControls) -> Any:
        """Handler: a verdict's fix was pressed."""

        def apply(event: gr.EventData, *values: Any) -> Updates:
            asked = event.choices if isinstance(event._data, dict) and "choices" in event._data else None
            if not isinstance(asked, dict) or not all(isinstance(v, str) for v in asked.values()):
                raise InputError("This fix cannot be read. Reload the page.")
            current = dict(zip(axis_names(), values, strict=True))
            choices = form.read_choices([{**current, **asked}[axis] for axis in axis_names()])
            return dict(zip(arm.axes, form.choice_values(choices), strict=True))

        return apply

    # --- runs -------------------------------------------------------------------------------------

    def run(self, request: gr.Request, *values: Any) -> Updates:
        """Run was pressed."""
        return self.begin(form.read_request(values), request)

    def measure(self, request: gr.Request, *values: Any) -> Updates:
        """Measure was pressed: the arms in turn, as often as an interval needs, or more often if Repeats says so."""
        return self.begin(form.repeated(form.read_request(values)), request)

    def begin(self, asked: Request, request: gr.Request) -> Updates:
        """Queue a run and show it."""
        run_id = self.bench.submit(asked, _owner(request))
        return {self.live: run_id, self.message: "", **self.buttons(BUSY)}

    def stop(self, request: gr.Request, run_id: Any) -> Updates:
        """Stop was pressed, by any viewer of the run."""
        if isinstance(run_id, str) and self.bench.cancel(run_id, _owner(request)):
            return {self.message: ""}
        return {self.message: "This run has ended already, or somebody else started it: it was not stopped."}

    def finished(self, run_id: Any) -> Updates:
        """The panel saw the end of its run."""
        run = self.bench.runs.get(run_id) if isinstance(run_id, str) and RUN_ID.fullmatch(run_id) else None
        return self.buttons(IDLE if run is None or run.ended else BUSY)

    def attach(self, request: gr.Request) -> Updates:
        """The page was opened: show the run of `?run=`, else this owner's newest, with its own settings."""
        wanted = request.query_params.get("run") or ""
        if wanted:
            run = self.bench.runs.get(wanted) if RUN_ID.fullmatch(wanted) else None
            if run is None:
                return {self.live: "", self.message: f"There is no run {wanted[:64]!r} here. Press Run to make one."}
        else:
            newest = self.bench.runs.newest()
            run = self.bench.runs.get(newest) if newest else None
            if run is None or run.created.owner != _owner(request):
                return {self.live: ""}
        return {self.live: run.id, **self.buttons(IDLE if run.ended else BUSY), **self.settings(run)}

    def settings(self, run: Run) -> Updates:
        """Updates that show what a run was asked to do; choices that are unknown by now are left alone."""
        updates = self.work.values(run.request.model, run.request.workload)
        for arm, asked in zip(self.arms, run.request.arms, strict=False):
            if asked.choices.keys() <= set(axis_names()):
                updates |= zip(arm.axes, form.choice_values(asked.choices), strict=True)
        return updates

    def buttons(self, state: tuple[bool, bool]) -> Updates:
        """Run, Measure and Stop."""
        return {
            self.run_button: gr.update(interactive=state[0]),
            self.measure_button: gr.update(interactive=state[0]),
            self.stop_button: gr.update(interactive=state[1]),
        }


def _first_facts() -> ModelFacts | None:
    """The default model's, which decide what is folded at first; None if it cannot be read."""
    try:
        return resolve(DEFAULT_MODEL)
    except InputError:
        return None


def device_line() -> str:
    """The machine, for the page's head."""
    return machine_line(hardware.machine())


def _owner(request: gr.Request) -> str:
    return getattr(request, "username", None) or ""
