"""Handlers of the Compare page. They read and update its controls, and are wired to events in `ui/compare/page.py`."""

from collections.abc import Mapping
from typing import Any

import gradio as gr
import msgspec

from tokendyno.backend import hardware
from tokendyno.backend.ablation.courses import Courses
from tokendyno.backend.ablation.kinds import Sweep
from tokendyno.backend.arms.check import Checked
from tokendyno.backend.config import Request
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.models import ModelFacts, download_bytes
from tokendyno.backend.optimizations import prompt_axes
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.fairness import Changes, fairness
from tokendyno.ui.address import asks_for_model, read_address
from tokendyno.ui.compare.arm_column import ArmControls, folded, titles
from tokendyno.ui.compare.code import CodePanels, checked_there, code_texts, named_code
from tokendyno.ui.compare.palette import Taken
from tokendyno.ui.compare.palette import entries as offers
from tokendyno.ui.compare.request import (
    ARMS,
    CUSTOM,
    Fields,
    choice_values,
    matching_preset,
    preset_choices,
    read_arms,
    read_choices,
    read_draft,
    read_request,
    stale,
    within,
)
from tokendyno.ui.compare.verdicts import NOT_RECORDED_HERE, Same, describe, fair_value, unchecked
from tokendyno.ui.compare.work_row import WorkRow
from tokendyno.ui.components.axis_values import all_known, edited
from tokendyno.ui.components.summary import NOT_HERE, model_line
from tokendyno.ui.errors import Updates
from tokendyno.ui.live.panel import RUN_ID
from tokendyno.ui.run_page import RunPage
from tokendyno.ui.visitor import Buttons, buttons_of, visitor_of


class Handlers(RunPage):
    """What is done when something on the page is changed or pressed. `shown`: id of a run."""

    def __init__(
        self,
        bench: Bench,
        row: WorkRow,
        arms: list[ArmControls],
        same: gr.HTML,
        message: gr.HTML,
        older: gr.HTML,
        offered: gr.HTML,
        live: gr.HTML,
        code: CodePanels,
        courses: Courses,
    ) -> None:
        super().__init__(bench, message, live)
        self.arms, self.code = arms, code
        self.work, self.facts, self.will, self.filled = row.work, row.facts, row.will, row.filled
        self.run_button, self.stop_button = row.run, row.stop
        self.same, self.stale = same, older
        self.palette = offered
        self.courses = courses
        self.inputs: list[Any] = [*self.work, *(axis for arm in arms for axis in arm.axes)]
        self.asked: list[Any] = [*self.inputs, *(arm.preset for arm in arms), code.gpu, code.gpus]
        self.buttons_shown: list[Any] = [self.run_button, self.stop_button]
        checked_of_arms = [part for arm in arms for part in (arm.preset, arm.fold, arm.verdicts)]
        self.checked: list[Any] = [self.facts, self.will.line, same, message, older, *checked_of_arms, *code.texts]

    def buttons(self, state: Buttons) -> Updates:
        """Run and Stop."""
        shown = zip(self.buttons_shown, self.pressable(state), strict=True)
        return {button: gr.update(interactive=on) for button, on in shown}

    # --- arms -------------------------------------------------------------------------------------

    def check(self, shown: Any, *values: Any) -> Updates:
        """Verdicts, facts, presets and scripts for the present values of the controls."""
        try:
            request, lacks = read_draft(values)
            request = within(request, self.bench.limits)
        except InputError as error:
            request, lacks = None, str(error)
        chosen = read_arms(values[len(self.work) :]) if request is None else request.arms
        updates: Updates = {self.stale: stale(self.known(shown), request)}
        recorded = self.recorded(shown, updates[self.stale])
        for arm, found in zip(self.arms, chosen, strict=True):
            updates[arm.preset] = found.preset or matching_preset(found.choices)
        updates[self.same] = ""
        settings = dict(zip(Fields._fields, values, strict=False))
        updates[self.will.line] = self.will.value("" if request is None else self.what_run_does(request), settings)
        try:
            if request is None:
                raise InputError(lacks)
            facts, machine = self.bench.facts(request.model), hardware.detect()
            lacking = self.bench.obstacle(facts)
            updates[self.facts] = model_line(facts, lacking, 0 if lacking else download_bytes(facts.source))
            for arm, found in zip(self.arms, chosen, strict=True):
                updates[arm.preset] = matching_preset(found.choices, found.preset, facts, machine)
            results = self.bench.check(request)
            updates[self.same] = self.fair(request, results, facts)
            if not lacks:  # else what Run said of the missing prompt stays
                updates[self.message] = ""
            for arm, asked, result in zip(self.arms, chosen, results.values(), strict=True):
                updates[arm.fold] = folded(arm.name.lower(), result.requested, facts)
                shown_result = result.refused(NOT_HERE if lacking else "")
                updates[arm.verdicts] = describe(asked, updates[arm.preset], shown_result, recorded)
            updates |= self.scripts(request, facts, results, lacks, *values[-2:])
        except InputError as error:
            why = f"{NOT_RECORDED_HERE} {error}" if recorded else ""
            updates |= {self.message: "" if recorded else str(error), self.facts: why}
            updates |= {arm.verdicts: unchecked(asked) for arm, asked in zip(self.arms, chosen, strict=True)}
            updates |= self.code.none(str(error))
        return updates

    def scripts(
        self, request: Request, facts: ModelFacts, results: Mapping[str, Checked], lacks: str, gpu: object, gpus: object
    ) -> Updates:
        """Each arm as a script for this machine, where `results` are what was checked, or for GPUs that need not be
        here, with what would happen there. `lacks`: what the request still lacks, such as a prompt."""
        try:
            results, there = checked_there(self.bench, request, results, gpu, gpus)
        except InputError as error:
            return self.code.none(str(error))
        updates: Updates = {self.code.there: there}
        every = zip(request.arms, self.code.short, self.code.whole, results.values(), strict=True)
        for asked, code, whole, result in every:
            paths = self.bench.local_paths and not there
            short, all_of_it = code_texts(result, facts, request.workload, paths, lacks)
            updates[code] = named_code(request.model, asked, short)
            updates[whole] = named_code(request.model, asked, all_of_it, "standalone-")
        return updates

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
        """Handler: an arm's preset was chosen; what need not change is left alone."""

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

    def fair(self, request: Request, results: Mapping[str, Checked], facts: ModelFacts) -> str:
        """In what the arms differ, and what would make them the same in what nobody chose."""

        def changed(changes: Changes) -> Mapping[str, Checked]:
            arms = [
                msgspec.structs.replace(arm, choices=arm.choices | changes.get(arm.name, {})) for arm in request.arms
            ]
            return self.bench.check(msgspec.structs.replace(request, arms=arms))

        return fair_value(fairness(results, facts, changed, self.bench.kept(results)))

    def compare_workers(self, *values: Any) -> Updates:
        """A run has ended: the same line, since its workers may be kept."""
        try:
            request = within(read_draft(values)[0], self.bench.limits)
            return {self.same: self.fair(request, self.bench.check(request), self.bench.facts(request.model))}
        except InputError:  # `check` says so
            return {}

    def make_same(self, event: gr.EventData, *values: Any) -> Updates:
        """ "Use the same" was pressed."""
        try:
            fix = msgspec.convert(event._data, Same).fix
        except msgspec.ValidationError as error:
            raise InputError("What is to be set cannot be read. Reload the page.") from error
        updates: Updates = {}
        for at, (name, arm) in enumerate(zip(ARMS, self.arms, strict=True)):
            before = values[at * len(arm.axes) : (at + 1) * len(arm.axes)]
            updates |= edited(prompt_axes(), arm.axes, before, fix.get(name, {}))
        return updates

    # --- runs -------------------------------------------------------------------------------------

    def run(self, request: gr.Request, shown: Any, *values: Any) -> Updates:
        """Run was pressed."""
        return self.start(request, shown, lambda: within(read_request(values), self.bench.limits))

    # --- the page that comes back, with its settings ------------------------------------------------

    def attach(self, request: gr.Request) -> Updates:
        """The page was opened: show the run of `?run=` or the arms of the course of `?worth=` or `?sweep=`, else this
        visitor's newest run, with its settings. A model that the address names stays, and an address of this page that
        names a model and no run asks for that model alone."""
        asked = read_address(request).model
        course_id = request.query_params.get("worth") or request.query_params.get("sweep") or ""
        found = self.opened_course(course_id) if course_id else self.opened_run(request)
        return found | ({self.work.model: asked} if asked else {})

    def opened_course(self, course_id: str) -> Updates:
        """An ablation with the arms between which it goes, or a sweep with its arm in both."""
        course = self.courses.get(course_id)
        if course is None:
            return {self.live: "", self.message: f"There is no ablation or sweep {course_id[:64]!r} here."}
        heading, sweeps = course.heading, isinstance(course, Sweep)
        updates = self.work.values(Request(heading.model, [], heading.workload))
        whole = heading.base if sweeps else {**heading.base, **dict(heading.changes)}
        for arm, choices in zip(self.arms, (heading.base, whole), strict=True):
            if all_known(prompt_axes(), choices):
                updates |= zip(arm.axes, choice_values(choices), strict=True)
                updates[arm.preset] = CUSTOM
        return updates | {self.live: ""}

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
            named = asks_for_model(request, "compare")
            newest = None if named else self.bench.runs.newest(visitor_of(request).owner)
            run = self.bench.runs.get(newest) if newest else None
            if run is None or run.request.traffic is not None:
                return {self.live: ""}
            if run.request.trial and self.courses.get(run.request.trial) is not None:
                return self.opened_course(run.request.trial)
        return {self.live: run.id, **self.buttons(buttons_of(run, request)), **self.settings(run)}

    def settings(self, run: Run) -> Updates:
        """Updates that show the settings of a run; choices that no longer exist are left alone."""
        reads = run.request.quality is not None
        updates = self.work.values(run.request) if not reads else {}
        updates[self.work.model] = run.request.model
        for arm, asked in zip(self.arms, run.request.arms, strict=False):
            if all_known(prompt_axes(), asked.choices):
                updates |= zip(arm.axes, choice_values(asked.choices), strict=True)
                updates[arm.preset] = asked.preset or CUSTOM
        return updates
