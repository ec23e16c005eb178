"""The Compare page: two arms, one prompt, one live panel; the columns of the arms; what is done when something is
changed or pressed."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import gradio as gr
import msgspec

from tokendyno.backend import hardware
from tokendyno.backend.ablation.courses import Courses
from tokendyno.backend.ablation.kinds import AdviceCourse, Sweep
from tokendyno.backend.arms.bundles import bundle, gave_way, grant, written_arm
from tokendyno.backend.arms.check import Checked, check
from tokendyno.backend.arms.parse import for_one_prompt, make_config
from tokendyno.backend.arms.presets import ArmPreset, arm_presets, prompts
from tokendyno.backend.arms.usable import usable_choices
from tokendyno.backend.config import ArmRequest, Request, Workload
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import ModelFacts, download_bytes
from tokendyno.backend.optimizations import prompt_axes
from tokendyno.backend.redact import redact
from tokendyno.backend.views.fairness import Changes, fairness
from tokendyno.ui.address import Address, asks_for_settings, read_address, tell
from tokendyno.ui.compare.code import code_panels, code_texts, named_code
from tokendyno.ui.compare.palette import Taken, palette_dialog, palette_value
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
    written,
)
from tokendyno.ui.compare.verdicts import NOT_RECORDED_HERE, Link, Same, describe, fair_line, fair_value, verdict_box
from tokendyno.ui.compare.work_row import WorkRow, work_row
from tokendyno.ui.components.axis_values import all_known, edited
from tokendyno.ui.components.events import QUIET
from tokendyno.ui.components.html import text_line
from tokendyno.ui.components.stale_line import changed_arms, stale_line, unchanged
from tokendyno.ui.components.summary import NOT_HERE, model_line
from tokendyno.ui.errors import Updates, read_event, shows_errors
from tokendyno.ui.live.panel import live_panel
from tokendyno.ui.run_page import Parts, RunPage, axis_dropdown, first_facts, no_run
from tokendyno.ui.visitor import buttons_of, visitor_of

FIRST = {"cpu": ("bfloat16", "float32"), "cuda": ("baseline", "lowest-latency")}
"""By device: presets of the arms that a newcomer finds, which differ clearly there."""


def first_arms(machine: Machine) -> tuple[str, str]:
    """Of `FIRST`, for this machine."""
    return FIRST["cuda" if machine.device == "cuda" else "cpu"]


def invitation(facts: ModelFacts | None, machine: Machine, presets: Sequence[str]) -> str:
    """What is said before a run: what it shows, and why the first arms differ. `presets`: of the arms."""
    decodes = facts is None or facts.kind == "decoder"
    does, shows = "write your prompt", "Texts, speed, memory and KV cache appear here as they are written"
    if not decodes:
        does, shows = "run forward passes over your prompt", "Speed and memory appear here as they are measured"
    said = (
        f"Press Run: both arms {does} in turn, until it is decided which is faster. {shows}, with proof that each "
        "choice took effect."
    )
    if tuple(presets) != first_arms(machine):
        return said
    if machine.device == "cuda":
        return said + decodes * (
            " The first two arms are the defaults, which launch the kernels of a token one by one from Python, and a "
            "captured CUDA graph, which replays them all at once."
        )
    a, b = (f"{one}, as the checkpoint has it" if facts and facts.dtype == one else one for one in presets)
    between = "," if a != presets[0] else ""
    why = "bfloat16 takes half the memory for weights, and less time only where the CPU computes in it"
    if decodes:
        why = "on a CPU, bfloat16 kernels are built for each length of the cache, which costs time and memory"
    return f"{said} The first two arms are {a}{between} and {b}: {why}."


def compare_page(bench: Bench, courses: Courses) -> "ComparePage":
    """Build the page inside the current Blocks."""
    row = work_row(bench.offered, bench.limits.runs)
    with gr.Row(elem_id="arms", equal_height=False):
        facts, machine = first_facts(), hardware.detect()
        presets = first_arms(machine)
        entries = titles(facts, machine)
        arms = [arm_controls(name, preset, facts, entries) for name, preset in zip(ARMS, presets, strict=True)]
    same = fair_line()
    message = text_line("message", role="alert", classes="td-failure")
    older, offered = stale_line("live", "stale"), palette_dialog(bench, facts)
    live, code = live_panel(bench), code_panels(ARMS)
    runs = bench.limits.runs  # else the panel says what there is to see
    said = text_line("invitation", invitation(facts, machine, presets) * runs, into="#live .td-empty-run" * runs)
    parts = Parts("compare", list(row.work), row.run, row.stop, row.will, message, older, live, code)
    to_advise = gr.Button("Is there a better arm for this prompt? Advise", size="sm", elem_id="to-advise")
    page = ComparePage(bench, parts, row, arms, same, offered, to_advise, courses, said)
    _wire(page, row)
    return page


def _wire(page: "ComparePage", row: WorkRow) -> None:
    """The page's own events: presets, "A and one more", the palette, and "use the same"."""
    work, safe = page.work, shows_errors(page.message)
    settled = page.wire(page.checked, [work.prompt, work.system], [row.run.click, work.prompt.submit], page.checked)
    row.filled.then(None, None, None, js=settled.changed, **QUIET)  # texts may be all that it has changed
    dropdowns = [part for arm in page.arms for part in (arm.preset, *arm.axes)]
    work.model.change(safe(page.show_unsupported), work.model, [*dropdowns, page.palette, page.message], **QUIET)
    for arm in page.arms:
        inputs = [arm.preset, work.model, *arm.axes]
        event = arm.preset.select(safe(page.choose_preset(arm)), inputs, [*arm.axes, page.message], **QUIET)
        event.then(None, None, None, js=settled.changed, **QUIET)  # only its notes may be new
    amounts = {"tokens": work.max_new_tokens, "batch_size": work.batch_size, "prompt_tokens": work.prompt_tokens}
    for key, amount in amounts.items():
        amount.change(None, amount, None, js=tell("compare", key), **QUIET)
    first, *other_arms = page.arms
    for arm in other_arms:
        arm.verdicts.copy(safe(page.copy(arm)), first.axes, [*arm.axes, page.message], **QUIET)
    axes = [axis for arm in page.arms for axis in arm.axes]
    page.palette.take(safe(page.take), axes, [*axes, page.message], **QUIET)
    page.same.fix(safe(page.make_same), axes, [*axes, page.message], trigger_mode="multiple", **QUIET)
    page.finish.then(safe(page.compare_workers), page.check_inputs, [page.same, page.message], **QUIET)


# --- an arm's column: its chips, and behind "All axes" a preset and a dropdown per axis -------------------------------


class ArmControls(NamedTuple):
    """One arm: its preset, a dropdown for each axis in the registry's order, and the verdicts of the rules."""

    name: str
    preset: gr.Dropdown
    axes: list[gr.Dropdown]
    verdicts: gr.HTML


def arm_controls(name: str, preset: str, facts: ModelFacts | None, titles: "Titles") -> ArmControls:
    """A column for one arm, set to a preset. `facts`: of the model that is selected when the page opens."""
    arm, arm_choices = name.lower(), preset_choices(preset, facts, hardware.detect())
    values = choice_values(arm_choices)
    with gr.Column(elem_id=f"arm-{arm}", elem_classes=["td-card", f"arm-{arm}"], min_width=300):
        verdicts = verdict_box(f"verdicts-{arm}", describe(ArmRequest(name, arm_choices), preset, None))
        with gr.Row(elem_id=f"axes-{arm}", elem_classes=["td-axes"]):
            presets = gr.Dropdown(
                [*titles.presets, (CUSTOM, CUSTOM)],
                value=preset,
                label=f"Arm {name}",
                min_width=96,
                elem_id=f"preset-{arm}",
                elem_classes=["td-preset"],
            )
            entries = zip(prompt_axes(), titles.choices, values, strict=True)
            dropdowns = [axis_dropdown(axis, choices, value, arm) for axis, choices, value in entries]
    return ArmControls(name, presets, dropdowns, verdicts)


# --- titles: what cannot run here has a sign -------------------------------------------------------

UNSUPPORTED = " \u2715"
"""The sign of a blocked verdict, behind a title."""


class Titles(NamedTuple):
    """(title, name) of every preset, and of every choice, axis by axis."""

    presets: list[tuple[str, str]]
    choices: list[list[tuple[str, str]]]


def titles(facts: ModelFacts | None, machine: Machine) -> Titles:
    """The entries of the dropdowns; without a sign where the model is not known."""
    rows = [] if facts is None else usable_choices(facts, machine)
    blocked = {(row.axis, row.choice) for row in rows if row.blocked}
    return Titles(
        [(preset.title + UNSUPPORTED * _blocked(facts, machine, preset), preset.name) for preset in arm_presets()],
        [
            [
                (choice.title + UNSUPPORTED * ((axis.name, choice.name) in blocked), choice.name)
                for choice in axis.choices
            ]
            for axis in prompt_axes()
        ],
    )


def _blocked(facts: ModelFacts | None, machine: Machine, preset: ArmPreset) -> bool:
    if facts is None:
        return False
    work = Workload(prompt="?")
    choices = grant(preset, facts, machine, work).choices
    return bool(check(make_config(facts.model, choices), facts, machine, work, remedy=False).blocked)


# --- handlers ---------------------------------------------------------------------------------------------------------


class ComparePage(RunPage):
    """What is done when something on the page is changed or pressed.

    work       controls of model and workload
    facts      the line about the model
    same       the line that says in what the arms differ
    palette    the list of what can be added to an arm
    to_advise  leads to Advise
    said       what is said before a run
    checked    what `check` updates
    """

    arms: list[ArmControls]

    def __init__(
        self,
        bench: Bench,
        parts: Parts,
        row: WorkRow,
        arms: list[ArmControls],
        same: gr.HTML,
        palette: gr.HTML,
        to_advise: gr.Button,
        courses: Courses,
        said: gr.HTML,
    ) -> None:
        super().__init__(bench, parts, arms, prompt_axes())
        self.check_inputs[len(self.inputs) : len(self.inputs)] = [arm.preset for arm in arms]
        self.work, self.facts, self.to_advise = row.work, row.facts, to_advise
        self.prompt_preset = row.preset
        self.same, self.palette, self.courses, self.said = same, palette, courses, said
        checked = [part for arm in arms for part in (arm.preset, arm.verdicts)]
        checked += [row.preset, row.facts, parts.chips.line, same, said, parts.message, parts.stale, *parts.code.texts]
        self.checked: list[Any] = checked

    def read(self, values: Sequence[object]) -> Request:
        return within(read_request(values), self.bench.limits)

    def changed(self, ran: Request, request: Request) -> list[str]:
        return changed(ran, request)

    # --- arms -------------------------------------------------------------------------------------

    def check(self, run_id: Any, *values: Any) -> Updates:
        """Verdicts, facts, presets and scripts for the present values of the controls."""
        try:
            request, lacks = read_draft(values)
            request = within(request, self.bench.limits)
        except InputError as error:
            request, lacks = None, str(error)
        arms = read_arms(values[len(self.work) :]) if request is None else request.arms
        updates: Updates = {self.parts.stale: self.stale(run_id, request), self.same: ""}
        recorded = self.is_recorded(run_id, updates[self.parts.stale])
        checks: list[Checked | None]
        for column, arm in zip(self.arms, arms, strict=True):
            updates[column.preset] = arm.preset if bundle(arm.preset) else matching_preset(arm.choices)
        settings = dict(zip(Fields._fields, values, strict=False))
        given = settings["prompt"], settings["prompt_tokens"]
        chosen = (prompt.name for prompt in prompts() if (prompt.text, prompt.prompt_tokens) == given)
        updates[self.prompt_preset] = next(chosen, None)
        chips = self.parts.chips
        updates[chips.line] = chips.value("" if request is None else self.what_run_does(request), settings)
        try:
            if request is None:
                raise InputError(lacks)
            facts, machine = self.bench.facts(request.model), hardware.detect()
            obstacle = self.bench.obstacle(facts)
            updates[self.facts] = model_line(facts, obstacle, 0 if obstacle else download_bytes(facts.source))
            results = self.bench.check(request)
            updates[self.same] = self.fair(request, results, facts)
            if not lacks:  # else what Run said of the missing prompt stays
                updates[self.message] = ""
            for column, arm in zip(self.arms, arms, strict=True):
                updates[column.preset] = matching_preset(arm.choices, arm.preset, facts, machine)
            presets = [updates[column.preset] for column in self.arms]
            updates[self.said] = invitation(facts, machine, presets) * self.bench.limits.runs
            checks = [checked.refused(NOT_HERE if obstacle else "") for checked in results.values()]
            updates |= self.scripts(request, facts, results, partial(self.codes, request, facts, lacks), *values[-2:])
        except InputError as error:
            why = f"{NOT_RECORDED_HERE} {error}" if recorded else ""
            updates |= {self.message: "" if recorded else str(error), self.facts: why}
            updates |= self.code.none(str(error))
            checks = [None] * len(arms)
        cannot_run = any(one is None or one.blocked for one in checks)
        if cannot_run and not recorded and not unchanged(updates[self.parts.stale]):
            updates[self.parts.stale] = self.stale(run_id, None)
        presets, run = [updates[column.preset] for column in self.arms], self.find_run(run_id)
        shown, own = (run.id, not changed_arms(run.request.arms, arms)) if run else ("", False)
        texts = written(arms, presets, first_arms(hardware.detect()))
        for column, arm, preset, checked, text in zip(self.arms, arms, presets, checks, texts, strict=True):
            updates[column.verdicts] = describe(arm, preset, checked, recorded, Link(text, shown, own))
        return updates

    def codes(self, request: Request, facts: ModelFacts, lacks: str, at: int, checked: Checked, paths: bool) -> Updates:
        """The scripts of a checked arm. `lacks`: what the request still lacks, such as a prompt."""
        arm, (short, whole) = request.arms[at], code_texts(checked, facts, request.workload, paths, lacks)
        return {
            self.code.short[at]: named_code(request.model, arm, short),
            self.code.whole[at]: named_code(request.model, arm, whole, "standalone-"),
        }

    def show_unsupported(self, model: object) -> Updates:
        """Another model was chosen: mark what it cannot use here, and of an unknown one nothing."""
        try:
            facts = self.bench.facts(str(model))
        except InputError:
            facts = None
        entries = titles(facts, hardware.detect())
        updates: Updates = {self.palette: palette_value(facts)}
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
            after = zip(arm.axes, choice_values(choices), values, strict=True)
            return {axis: value for axis, value, before in after if value != before}

        return choose

    def copy(self, arm: ArmControls) -> Any:
        """Handler: "A and one more" was pressed. The palette opens in the browser."""
        return lambda *values: dict(zip(arm.axes, choice_values(read_choices(values)), strict=True))

    def take(self, event: gr.EventData, *values: Any) -> Updates:
        """An entry of the palette was taken."""
        taken = read_event(event, Taken, "This entry")
        at = ARMS.index(taken.arm)
        width = len(self.arms[at].axes)
        axes, before = prompt_axes(), values[at * width : (at + 1) * width]
        choices = {axis.name: axis.default for axis in axes} | taken.choices if taken.whole else taken.choices
        return edited(axes, self.arms[at].axes, before, choices)

    def fair(self, request: Request, results: Mapping[str, Checked], facts: ModelFacts) -> str:
        """In what the arms differ, and what would make them the same in what nobody chose."""

        def checked(changes: Changes) -> Mapping[str, Checked]:
            arms = [
                msgspec.structs.replace(arm, choices=arm.choices | changes.get(arm.name, {})) for arm in request.arms
            ]
            return self.bench.check(msgspec.structs.replace(request, arms=arms))

        return fair_value(fairness(results, facts, checked, self.bench.loaded_arms(results)))

    def compare_workers(self, *values: Any) -> Updates:
        """A run has ended: the same line, since its workers may be kept."""
        try:
            request = within(read_draft(values)[0], self.bench.limits)
            return {self.same: self.fair(request, self.bench.check(request), self.bench.facts(request.model))}
        except InputError:  # `check` says so
            return {}

    def make_same(self, event: gr.EventData, *values: Any) -> Updates:
        """ "Use the same" was pressed."""
        fix = read_event(event, Same, "What is to be set").fix
        updates: Updates = {}
        for at, (name, arm) in enumerate(zip(ARMS, self.arms, strict=True)):
            before = values[at * len(arm.axes) : (at + 1) * len(arm.axes)]
            updates |= edited(prompt_axes(), arm.axes, before, fix.get(name, {}))
        return updates

    # --- the page that comes back, with its settings ------------------------------------------------

    def attach(self, request: gr.Request) -> Updates:
        """The page was opened: show the run of `?run=` or the arms of the course of `?worth=` or `?sweep=`, else this
        visitor's newest run, with its settings. A model that the address names stays, and an address of this page that
        names a model or arms and no run asks for those alone."""
        address = read_address(request)
        course_id = request.query_params.get("worth") or request.query_params.get("sweep") or ""
        updates = self.opened_course(course_id) if course_id else self.opened_run(request)
        if not course_id and asks_for_settings(request, "compare"):
            updates |= self.opened_arms(address)
            amounts = {
                self.work.max_new_tokens: address.tokens,
                self.work.batch_size: address.batch_size,
                self.work.prompt_tokens: address.prompt_tokens,
            }
            updates |= {field: amount for field, amount in amounts.items() if amount}
        return updates | ({self.work.model: address.model} if address.model else {})

    def opened_arms(self, address: Address) -> Updates:
        """The arms of an address that names one: the other has no choice, as on the command line. What cannot be read
        is said, and leaves its arm as it is."""
        if not (address.a or address.b):
            return {}
        model, work = address.model or self.model.value, Workload(prompt="?")
        updates: Updates = {}
        said: dict[str, None] = {}
        for arm, text in zip(self.arms, (address.a, address.b), strict=True):
            try:
                asked = written_arm(arm.name, text, model, work, lambda: self.bench.facts(model))
                for_one_prompt(asked)
                updates |= zip(arm.axes, choice_values(asked.choices), strict=True)
                updates[arm.preset] = asked.preset if bundle(asked.preset) else CUSTOM
                if "," in asked.preset:  # an arm with choices of its own shows no preset, nor what of it gave way
                    notes = gave_way(asked, self.bench.facts(model), hardware.detect(), work)
                    said |= dict.fromkeys(f"Arm {arm.name}: {note.reason}" for note in notes)
            except InputError as error:
                said[redact(str(error))] = None
        return updates | ({self.message: " ".join(said)} if said else {})

    def opened_course(self, course_id: str) -> Updates:
        """An ablation with the arms between which it goes, or a sweep with its arm; of advice, which has a page of its
        own and is about no two arms, the model."""
        course = self.courses.get(course_id)
        if course is None:
            return {self.live: "", self.message: f"There is no ablation or sweep {course_id[:64]!r} here."}
        heading = course.heading
        if isinstance(course, AdviceCourse):
            return {self.live: "", self.work.model: heading.model}
        arms = [heading.base] if isinstance(course, Sweep) else [heading.base, heading.base | dict(heading.changes)]
        named = [ArmRequest(name, choices) for name, choices in zip(ARMS, arms, strict=False)]
        return self.settings(Request(heading.model, named, heading.workload)) | {self.live: ""}

    def opened_run(self, request: gr.Request) -> Updates:
        """The run that is shown at first, with its settings."""
        run_id = request.query_params.get("run") or ""
        if run_id:
            run = self.find_run(run_id)
            if run is None:
                return {self.live: "", self.message: no_run(run_id)}
            if run.request.traffic is not None:  # the Batching page shows it
                return {self.live: ""}
        else:
            asks = asks_for_settings(request, "compare")
            newest = None if asks else self.bench.runs.newest(visitor_of(request).owner)
            run = self.find_run(newest)
            if run is None or run.request.traffic is not None:
                return {self.live: ""}
            if trial := run.request.trial:
                return self.opened_course(trial) if self.courses.get(trial) is not None else {self.live: ""}
        return {self.live: run.id, **self.buttons(buttons_of(run, request)), **self.settings(run.request)}

    def settings(self, asked: Request) -> Updates:
        """Updates that show the settings of a run; choices that no longer exist are left alone."""
        request = self.paired(asked)
        updates = self.work.values(request) if request.quality is None else {}
        updates |= {self.work.model: request.model} | self.arms_of(request)
        for arm, requested in zip(self.arms, request.arms, strict=False):
            if all_known(prompt_axes(), requested.choices):
                updates[arm.preset] = requested.preset if bundle(requested.preset) else CUSTOM
        return updates

    def paired(self, request: Request) -> Request:
        """The request; of one arm alone with a second beside it: of the first two arms one that comes to another plan,
        since Run would tell nothing of two that come to the same."""
        if len(request.arms) > 1:
            return request
        machine, alone = hardware.detect(), request.arms[0]
        try:
            facts = self.bench.facts(request.model)
            for name in first_arms(machine):
                other = ArmRequest(ARMS[1], preset_choices(name, facts, machine), name)
                plans = [
                    check(make_config(request.model, arm.choices), facts, machine, request.workload, remedy=False).plan
                    for arm in (alone, other)
                ]
                if plans[0] != plans[1]:
                    return msgspec.structs.replace(request, arms=[alone, other])
        except InputError:  # `check` says so
            pass
        return request
