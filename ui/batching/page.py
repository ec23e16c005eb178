"""The Batching page: the same requests to two arms, one live panel. Wiring only."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import gradio as gr

from tokendyno.backend import hardware
from tokendyno.backend.arms.check import Checked
from tokendyno.backend.config import Request
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.export.short import short_script
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.runs.run import Run
from tokendyno.ui.address import asks_for_model, read_address
from tokendyno.ui.batching.arm_column import BatchArm, arm_title, batch_arm, offered
from tokendyno.ui.batching.panel import batch_panel
from tokendyno.ui.batching.request import (
    ARMS,
    Fields,
    batch_axes,
    choice_values,
    read_arms,
    read_request,
    stale,
    traffic_values,
)
from tokendyno.ui.batching.traffic_row import TrafficRow, traffic_row
from tokendyno.ui.compare.code import CodePanels, checked_there, code_panels, named_code, no_code
from tokendyno.ui.compare.request import within
from tokendyno.ui.compare.verdicts import NOT_RECORDED_HERE, describe_titled
from tokendyno.ui.components.axis_values import all_known
from tokendyno.ui.components.counting import wire_counting
from tokendyno.ui.components.events import QUIET, Settled
from tokendyno.ui.components.queue_line import queue_line
from tokendyno.ui.components.stale_line import stale_line
from tokendyno.ui.components.text_line import text_line
from tokendyno.ui.errors import Updates, shows_errors
from tokendyno.ui.live.panel import RUN_ID
from tokendyno.ui.run_page import RunPage, first_facts, fixes
from tokendyno.ui.visitor import Buttons, buttons_of, visitor_of

FIRST = {"A": {"batching": "static"}, "B": {"batching": "continuous"}}
GIVEN = "The requests of this run were given as a list, which is not shown again: paste it to run it once more."


class BatchControls(NamedTuple):
    """What another page may set and start. `fields`: the traffic's controls by name; the arms' have one control for
    each of `batch_axes`."""

    fields: dict[str, Any]
    arm_a: list[gr.Dropdown]
    arm_b: list[gr.Dropdown]
    live: gr.HTML
    run: gr.Button
    stop: gr.Button

    @property
    def model(self) -> gr.Dropdown:
        """Of both arms."""
        model: gr.Dropdown = self.fields["model"]
        return model


def batching_page(bench: Bench) -> BatchControls:
    """Build the page inside the current tab."""
    row, facts, machine = traffic_row(bench.offered, bench.limits.runs), first_facts(), hardware.detect()
    with gr.Row(elem_id="batch-arms", elem_classes=["td-arms"], equal_height=False):
        arms = [batch_arm(name, FIRST[name], facts, machine) for name in ARMS]
    message = text_line("batch-message", role="alert", classes="td-failure")
    older = stale_line("batch-live", "batch-stale")
    live = batch_panel(bench.runs, queue_line(bench), bench.limits.runs)
    _Page(bench, row, arms, message, older, live, code_panels(ARMS, "batch-code", whole=False)).wire()
    return BatchControls(row.fields, arms[0].axes, arms[1].axes, live, row.run, row.stop)


class _Page(RunPage):
    """The handlers of the page."""

    def __init__(
        self,
        bench: Bench,
        row: TrafficRow,
        arms: list[BatchArm],
        message: gr.HTML,
        older: gr.HTML,
        live: gr.HTML,
        code: CodePanels,
    ) -> None:
        super().__init__(bench, message, live)
        self.row, self.arms, self.stale, self.code = row, arms, older, code
        self.inputs: list[Any] = [*row.fields.values(), *(axis for arm in arms for axis in arm.axes)]
        self.asked: list[Any] = [*self.inputs, code.gpu, code.gpus]

    def wire(self) -> None:
        """Connect every event."""
        safe = shows_errors(self.message)
        buttons = [self.row.run, self.row.stop]
        checked = [
            self.message,
            self.row.summary.line,
            self.stale,
            *self.code.texts,
            *(part for arm in self.arms for part in (arm.verdicts, *_leading(arm).values())),
        ]
        typed = self.row.fields["trace"]
        changes = [part.change for part in self.asked if part is not typed] + [typed.blur]
        model = self.row.fields["model"]
        wire_counting(model, self.message, self.bench, safe)  # before the check that it announces
        settled = Settled("batching")
        settled.after(changes)(
            safe(self.check_on_change),
            [self.live, self.message, *self.asked],
            checked,
            trigger_mode="always_last",
            **QUIET,
        )
        summary = self.row.summary
        put_back = summary.line.back(safe(summary.put_back), None, [*summary.controls.values(), self.message], **QUIET)
        put_back.then(None, None, None, js=settled.changed, **QUIET)
        for arm in self.arms:
            arm.verdicts.fix(
                safe(fixes(batch_axes(), arm.axes)),
                arm.axes,
                [*arm.axes, self.message],
                trigger_mode="multiple",
                **QUIET,
            )
        started = self.row.run.click(
            safe(self.run),
            [self.live, *self.inputs],
            [self.live, self.message, *buttons],
            trigger_mode="always_last",
            **QUIET,
        )
        started.success(safe(self.compare), [self.live, *self.inputs], [self.stale, self.message], **QUIET)
        self.row.stop.click(safe(self.stop), self.live, [self.message], **QUIET)
        self.live.finished(safe(self.finished), self.live, [*buttons, self.message], **QUIET)
        context = gr.context.Context.root_block
        assert context is not None
        opened = context.load(safe(self.attach), None, [*self.inputs, self.live, *buttons, self.message], **QUIET)
        opened.then(safe(self.check_first), [self.live, *self.asked], checked, **QUIET)

    # --- arms -------------------------------------------------------------------------------------

    def compare(self, shown: Any, *values: Any) -> Updates:
        """Whether the results on the page are of other settings than those that are shown. `shown`: id of a run."""
        return {self.stale: stale(self.known(shown), self._asked(values)[0])}

    def _request(self, values: Sequence[object]) -> Request:
        return within(read_request(values, self.bench.local_paths), self.bench.limits)

    def _asked(self, values: Sequence[object]) -> tuple[Request | None, str]:
        """The request; None and the reason where the controls cannot be read."""
        try:
            return self._request(values), ""
        except InputError as error:
            return None, str(error)

    def check(self, shown: Any, *values: Any) -> Updates:
        """The traffic in words, and the verdicts on each arm, for the present values of the controls."""
        request, unreadable = self._asked(values)
        updates: Updates = {self.message: "", self.stale: stale(self.known(shown), request)}
        recorded = self.recorded(shown, updates[self.stale])
        chosen = read_arms(values[len(Fields._fields) :]) if request is None else request.arms
        said = partial(self.row.summary.value, values=dict(zip(Fields._fields, values, strict=False)))
        updates[self.row.summary.line] = said("")
        try:
            if request is None or request.traffic is None:
                raise InputError(unreadable)
            updates[self.row.summary.line] = said(f"{request.traffic.label}. {self.what_run_does(request)}")
            facts = self.bench.facts(request.model)
            machine = hardware.detect()
            lacking = self.bench.obstacle(facts)
            updates[self.message] = lacking
            results = self.bench.check(request)
            updates |= self.scripts(request, facts, results, *values[-2:])
            for arm, asked, found in zip(self.arms, chosen, results.values(), strict=True):
                refused = found.refused(lacking)
                updates[arm.verdicts] = describe_titled(asked, arm_title(asked.choices), arm.key, refused, recorded)
                leading = offered(found.requested, facts, machine)
                updates |= {part: gr.update(visible=name in leading) for name, part in _leading(arm).items()}
        except InputError as error:
            updates |= {self.message: str(error)} | self.code.none(str(error))
            if recorded:
                updates |= {self.message: "", self.row.summary.line: said(f"{NOT_RECORDED_HERE} {error}")}
            for arm, asked in zip(self.arms, chosen, strict=True):
                updates[arm.verdicts] = describe_titled(asked, arm_title(asked.choices), arm.key, None)
        return updates

    def scripts(
        self, request: Request, facts: ModelFacts, results: Mapping[str, Checked], gpu: object, gpus: object
    ) -> Updates:
        """Each arm as a script for this machine, or for GPUs that need not be here, with what would happen there."""
        try:
            results, there = checked_there(self.bench, request, results, gpu, gpus)
        except InputError as error:
            return self.code.none(str(error))
        paths, updates = self.bench.local_paths and not there, dict[Any, Any]({self.code.there: there})
        for asked, code, found in zip(request.arms, self.code.short, results.values(), strict=True):
            updates[code] = named_code(request.model, asked, batch_code(found, facts, request, paths))
        return updates

    # --- runs -------------------------------------------------------------------------------------

    def run(self, request: gr.Request, shown: Any, *values: Any) -> Updates:
        """Run was pressed. `shown`: id of a run."""
        return self.start(request, shown, lambda: self._request(values))

    def attach(self, request: gr.Request) -> Updates:
        """The page was opened: show the run of `?run=`, else this visitor's newest if it has many requests, with its
        settings. Of a run that does not exist the Compare page says so. A model that the address names stays."""
        asked = read_address(request).model
        model: Updates = {self.row.fields["model"]: asked} if asked else {}
        run = wanted_run(self.bench, request)
        if run is None:
            return {self.live: ""} | model
        return {self.live: run.id, **self.buttons(buttons_of(run, request)), **self.settings(run)} | model

    def settings(self, run: Run) -> Updates:
        """Updates that show the settings of a run; choices that no longer exist are left alone."""
        assert run.request.traffic is not None
        updates: Updates = {self.row.fields[name]: value for name, value in traffic_values(run.request).items()}
        if run.request.traffic.shape is None:
            updates[self.message] = GIVEN
        for arm, asked in zip(self.arms, run.request.arms, strict=False):
            if all_known(batch_axes(), asked.choices):
                updates |= zip(arm.axes, choice_values(asked.choices), strict=True)
        return updates

    def buttons(self, state: Buttons) -> Updates:
        """Run and Stop."""
        run, stop = self.pressable(state)
        return {self.row.run: gr.update(interactive=run), self.row.stop: gr.update(interactive=stop)}


def wanted_run(bench: Bench, request: gr.Request) -> Run | None:
    """The run of many requests that a visitor sees first: that of `?run=`, else his newest; None if there is none."""
    if asks_for_model(request, "batching"):
        return None
    wanted = request.query_params.get("run") or ""
    found = wanted if RUN_ID.fullmatch(wanted) else "" if wanted else bench.runs.newest(visitor_of(request).owner)
    with suppress(InputError):
        run = bench.runs.get(found) if found else None
        return run if run is not None and run.request.traffic is not None else None
    return None


def _leading(arm: BatchArm) -> dict[str, gr.Dropdown]:
    """The controls of the axes about many requests, by axis."""
    return {axis.name: part for axis, part in zip(batch_axes(), arm.axes, strict=True) if axis.many_requests}


def batch_code(checked: Checked, facts: ModelFacts, request: Request, paths: bool) -> str:
    """The script of a checked arm, or why there is none. Without `paths` no folder of this machine is named."""
    try:
        checked.require_runnable()
        return short_script(checked, facts, request.workload, paths)
    except InputError as error:
        return no_code(str(error))
