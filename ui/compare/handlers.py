"""Handlers of the Compare page. They read and update its controls, and are wired to events in `ui/compare/page.py`."""

from collections.abc import Mapping, Sequence
from functools import partial
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
from tokendyno.ui.compare.arm_column import ArmControls, titles
from tokendyno.ui.compare.code import code_texts, named_code
from tokendyno.ui.compare.palette import Taken
from tokendyno.ui.compare.palette import entries as offers
from tokendyno.ui.compare.request import (
    ARMS,
    CUSTOM,
    Fields,
    changed,
    choice_values,
    matching_preset,
    preset_choices,
    read_arms,
    read_choices,
    read_draft,
    read_request,
    within,
)
from tokendyno.ui.compare.verdicts import NOT_RECORDED_HERE, Same, describe, fair_value
from tokendyno.ui.compare.work_row import WorkRow
from tokendyno.ui.components.axis_values import all_known, edited
from tokendyno.ui.components.summary import NOT_HERE, model_line
from tokendyno.ui.errors import Updates
from tokendyno.ui.live.panel import RUN_ID
from tokendyno.ui.run_page import Parts, RunPage
from tokendyno.ui.visitor import buttons_of, visitor_of


class Handlers(RunPage):
    """What is done when something on the page is changed or pressed.

    facts    the line about the model
    same     the line that says in what the arms differ
    palette  the list of what can be added to an arm
    checked  what `check` updates
    """

    def __init__(
        self,
        bench: Bench,
        parts: Parts,
        row: WorkRow,
        arms: list[ArmControls],
        same: gr.HTML,
        palette: gr.HTML,
        courses: Courses,
    ) -> None:
        super().__init__(bench, parts, arms, prompt_axes())
        self.asked[len(self.inputs) : len(self.inputs)] = [arm.preset for arm in arms]
        self.arms, self.work, self.facts = arms, row.work, row.facts
        self.same, self.palette, self.courses = same, palette, courses
        checked = [part for arm in arms for part in (arm.preset, arm.verdicts)]
        checked += [row.facts, parts.chips.line, same, parts.message, parts.stale, *parts.code.texts]
        self.checked: list[Any] = checked

    def read(self, values: Sequence[object]) -> Request:
        return within(read_request(values), self.bench.limits)

    def changed(self, ran: Request, wanted: Request) -> list[str]:
        return changed(ran, wanted)

    # --- arms -------------------------------------------------------------------------------------

    def check(self, shown: Any, *values: Any) -> Updates:
        """Verdicts, facts, presets and scripts for the present values of the controls."""
        try:
            request, lacks = read_draft(values)
            request = within(request, self.bench.limits)
        except InputError as error:
            request, lacks = None, str(error)
        chosen = read_arms(values[len(self.work) :]) if request is None else request.arms
        updates: Updates = {self.parts.stale: self.stale(shown, request), self.same: ""}
        recorded = self.recorded(shown, updates[self.parts.stale])
        for arm, found in zip(self.arms, chosen, strict=True):
            updates[arm.preset] = found.preset or matching_preset(found.choices)
        settings = dict(zip(Fields._fields, values, strict=False))
        chips = self.parts.chips
        updates[chips.line] = chips.value("" if request is None else self.what_run_does(request), settings)
        try:
            if request is None:
                raise InputError(lacks)
            facts, machine = self.bench.facts(request.model), hardware.detect()
            lacking = self.bench.obstacle(facts)
            updates[self.facts] = model_line(facts, lacking, 0 if lacking else download_bytes(facts.source))
            results = self.bench.check(request)
            updates[self.same] = self.fair(request, results, facts)
            if not lacks:  # else what Run said of the missing prompt stays
                updates[self.message] = ""
            for arm, asked, result in zip(self.arms, chosen, results.values(), strict=True):
                updates[arm.preset] = matching_preset(asked.choices, asked.preset, facts, machine)
                shown_result = result.refused(NOT_HERE if lacking else "")
                updates[arm.verdicts] = describe(asked, updates[arm.preset], shown_result, recorded)
            updates |= self.scripts(request, facts, results, partial(self.codes, request, facts, lacks), *values[-2:])
        except InputError as error:
            why = f"{NOT_RECORDED_HERE} {error}" if recorded else ""
            updates |= {self.message: "" if recorded else str(error), self.facts: why}
            for arm, asked in zip(self.arms, chosen, strict=True):
                updates[arm.verdicts] = describe(asked, updates[arm.preset], None)
            updates |= self.code.none(str(error))
        return updates

    def codes(self, request: Request, facts: ModelFacts, lacks: str, at: int, checked: Checked, paths: bool) -> Updates:
        """The scripts of a checked arm. `lacks`: what the request still lacks, such as a prompt."""
        asked, (short, whole) = request.arms[at], code_texts(checked, facts, request.workload, paths, lacks)
        return {
            self.code.short[at]: named_code(request.model, asked, short),
            self.code.whole[at]: named_code(request.model, asked, whole, "standalone-"),
        }

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
            return {axis: value for axis, value, before in wanted if value != before}

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

        def checked(changes: Changes) -> Mapping[str, Checked]:
            arms = [
                msgspec.structs.replace(arm, choices=arm.choices | changes.get(arm.name, {})) for arm in request.arms
            ]
            return self.bench.check(msgspec.structs.replace(request, arms=arms))

        return fair_value(fairness(results, facts, checked, self.bench.kept(results)))

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
        updates |= {self.work.model: run.request.model} | self.arms_of(run)
        for arm, asked in zip(self.arms, run.request.arms, strict=False):
            if all_known(prompt_axes(), asked.choices):
                updates[arm.preset] = asked.preset or CUSTOM
        return updates
