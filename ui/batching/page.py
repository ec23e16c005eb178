"""The Batching page: the same requests to two arms, one live panel."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import gradio as gr

from tokendyno.backend import hardware
from tokendyno.backend.arms.check import Checked
from tokendyno.backend.config import ArmRequest, Request
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.export.short import short_script
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations import all_axes, subject_of
from tokendyno.backend.optimizations.base import Optimization
from tokendyno.backend.runs.run import Run
from tokendyno.ui.address import asks_for_settings, read_address
from tokendyno.ui.batching.panel import batch_panel
from tokendyno.ui.batching.request import (
    ARMS,
    Fields,
    batch_axes,
    changed,
    choice_values,
    list_is_hidden,
    read_arms,
    read_request,
    traffic_values,
)
from tokendyno.ui.batching.traffic_row import TrafficRow, traffic_row
from tokendyno.ui.compare.code import code_panels, named_code, no_code
from tokendyno.ui.compare.request import within
from tokendyno.ui.compare.verdicts import NOT_RECORDED_HERE, describe_titled, verdict_box
from tokendyno.ui.components.html import text_line
from tokendyno.ui.components.stale_line import stale_line
from tokendyno.ui.errors import Updates
from tokendyno.ui.live.panel import RUN_ID
from tokendyno.ui.run_page import Parts, RunPage, axis_dropdown, first_facts, no_run
from tokendyno.ui.visitor import buttons_of, visitor_of

FIRST = {"A": {"batching": "static"}, "B": {"batching": "continuous"}}
GIVEN = (
    "The requests of this run were given as a list, which is not shown again: paste it to run it once more. Set now: "
)


def batching_page(bench: Bench) -> "BatchingPage":
    """Build the page inside the current tab."""
    row, facts, machine = traffic_row(bench.offered, bench.limits.runs), first_facts(), hardware.detect()
    with gr.Row(elem_id="batch-arms", elem_classes=["td-arms"], equal_height=False):
        arms = [batch_arm(name, FIRST[name], facts, machine) for name in ARMS]
    message = text_line("batch-message", role="alert", classes="td-failure")
    older, live = stale_line("batch-live", "batch-stale"), batch_panel(bench)
    code = code_panels(ARMS, "batch-code", whole=False)
    fields = list(row.fields.values())
    parts = Parts("batching", fields, row.run, row.stop, row.summary, message, older, live, code)
    return BatchingPage(bench, parts, row, arms)


class BatchingPage(RunPage):
    """The handlers of the page. `row`: the controls of the traffic."""

    arms: "list[BatchArm]"

    def __init__(self, bench: Bench, parts: Parts, row: TrafficRow, arms: "list[BatchArm]") -> None:
        super().__init__(bench, parts, arms, batch_axes())
        self.row = row
        checked = [part for arm in arms for part in (arm.verdicts, *_leading(arm).values())]
        checked += [parts.message, row.summary.line, parts.stale, *parts.code.texts]
        self.wire(checked, [row.fields["trace"]], [row.run.click], [])

    def read(self, values: Sequence[object]) -> Request:
        return within(read_request(values, self.bench.local_paths), self.bench.limits)

    def changed(self, ran: Request, request: Request) -> list[str]:
        return changed(ran, request)

    def check(self, run_id: Any, *values: Any) -> Updates:
        """The traffic in words, and the verdicts on each arm, for the present values of the controls."""
        try:
            request, unreadable = self.read(values), ""
        except InputError as error:
            request, unreadable = None, str(error)
        stale = self.stale(run_id, request)
        updates: Updates = {self.message: "", self.parts.stale: stale}
        recorded = self.is_recorded(run_id, stale)
        arms = read_arms(values[len(Fields._fields) :]) if request is None else request.arms
        line = partial(self.row.summary.value, values=dict(zip(Fields._fields, values, strict=False)))
        updates[self.row.summary.line] = line("")
        try:
            if request is None or request.traffic is None:
                raise InputError(unreadable)
            run = self.find_run(run_id)
            given = GIVEN if run is not None and list_is_hidden(run.request, request) else ""
            updates[self.row.summary.line] = line(f"{given}{request.traffic.label}. {self.what_run_does(request)}")
            facts, machine = self.bench.facts(request.model), hardware.detect()
            obstacle = self.bench.obstacle(facts)
            updates[self.message] = obstacle
            results = self.bench.check(request)
            updates |= self.scripts(request, facts, results, partial(self.codes, request, facts), *values[-2:])
            for column, arm, checked in zip(self.arms, arms, results.values(), strict=True):
                title, checked_here = arm_title(arm.choices), checked.refused(obstacle)
                updates[column.verdicts] = describe_titled(arm, title, column.key, checked_here, recorded)
                leading = offered(checked.requested, facts, machine)
                updates |= {part: gr.update(visible=name in leading) for name, part in _leading(column).items()}
        except InputError as error:
            updates |= {self.message: str(error)} | self.code.none(str(error))
            if recorded:
                updates |= {self.message: "", self.row.summary.line: line(f"{NOT_RECORDED_HERE} {error}")}
            for column, arm in zip(self.arms, arms, strict=True):
                updates[column.verdicts] = describe_titled(arm, arm_title(arm.choices), column.key, None)
        return updates

    def codes(self, request: Request, facts: ModelFacts, at: int, checked: Checked, paths: bool) -> Updates:
        """The script of a checked arm, or why there is none."""
        assert request.traffic is not None
        try:
            checked.require_runnable()
            text = short_script(checked, facts, request.workload, paths)
        except InputError as error:
            text = no_code(str(error))
        return {self.code.short[at]: named_code(request.model, request.arms[at], text)}

    def attach(self, request: gr.Request) -> Updates:
        """The page was opened: show the run of `?run=`, else this visitor's newest if it has many requests, with its
        settings. A model that the address names stays."""
        address, run_id = read_address(request), request.query_params.get("run") or ""
        model: Updates = {self.model: address.model} if address.model else {}
        run = wanted_run(self.bench, request)
        if run is None:
            missing = run_id and address.page == "batching" and self.find_run(run_id) is None
            return {self.live: ""} | model | ({self.message: no_run(run_id)} if missing else {})
        updates: Updates = {self.row.fields[name]: value for name, value in traffic_values(run.request).items()}
        return {
            self.live: run.id,
            **self.buttons(buttons_of(run, request)),
            **updates,
            **self.arms_of(run.request),
        } | model


def wanted_run(bench: Bench, request: gr.Request) -> Run | None:
    """The run of many requests that a visitor sees first: that of `?run=`, else their newest; None if there is none."""
    if asks_for_settings(request, "batching"):
        return None
    named = request.query_params.get("run") or ""
    run_id = named if RUN_ID.fullmatch(named) else "" if named else bench.runs.newest(visitor_of(request).owner)
    with suppress(InputError):
        run = bench.runs.get(run_id) if run_id else None
        return run if run is not None and run.request.traffic is not None else None
    return None


def _leading(arm: "BatchArm") -> dict[str, gr.Dropdown]:
    """The controls of the axes about many requests, by axis."""
    return {axis.name: part for axis, part in zip(batch_axes(), arm.axes, strict=True) if axis.many_requests}


# --- an arm's column: what it is in short, the axes about many requests, behind "All axes" the others ---


class BatchArm(NamedTuple):
    """The dropdowns of an arm in the order of `batch_axes`, and what it is in short."""

    name: str
    axes: list[gr.Dropdown]
    verdicts: gr.HTML

    @property
    def key(self) -> str:
        """How ids of this page call the arm."""
        return f"batch-{self.name.lower()}"


def batch_arm(name: str, choices: Mapping[str, str], facts: ModelFacts | None, machine: Machine) -> BatchArm:
    """A column for one arm. `facts`: of the model that is selected when the page opens."""
    key, visible_axes = f"batch-{name.lower()}", offered(choices, facts, machine)
    values = dict(zip(batch_axes(), choice_values(choices), strict=True))

    def dropdown(axis: Optimization) -> gr.Dropdown:
        titles = [(choice.title, choice.name) for choice in axis.choices]
        visible = not axis.many_requests or axis.name in visible_axes
        return axis_dropdown(axis, titles, values[axis], key, visible=visible)

    with gr.Column(elem_id=f"arm-{key}", elem_classes=["td-card", f"arm-{name.lower()}"], min_width=300):
        arm_request = ArmRequest(name, dict(choices))
        verdicts = verdict_box(f"verdicts-{key}", describe_titled(arm_request, arm_title(choices), key, None))
        with gr.Row(elem_classes=["td-lead"]):
            dropdowns = {axis: dropdown(axis) for axis in batch_axes() if axis.many_requests}
        with gr.Row(elem_id=f"axes-{key}", elem_classes=["td-axes"]):
            dropdowns |= {axis: dropdown(axis) for axis in batch_axes() if not axis.many_requests}
    return BatchArm(name, [dropdowns[axis] for axis in batch_axes()], verdicts)


def offered(choices: Mapping[str, str], facts: ModelFacts | None, machine: Machine) -> set[str]:
    """The axes about many requests that have something to choose for this arm, or were set."""
    subject = None if facts is None else subject_of(facts, machine, choices)
    names = set()
    for axis in batch_axes():
        usable = any(
            choice.name != axis.default
            and not (subject and any(verdict.level == "blocked" for verdict in axis.verdicts(choice.name, subject)))
            for choice in axis.choices
        )
        if axis.many_requests and (usable or choices.get(axis.name, axis.default) != axis.default):
            names.add(axis.name)
    return names


def arm_title(choices: Mapping[str, str]) -> str:
    """How an arm batches, in words."""
    axis = next(axis for axis in all_axes() if axis.name == "batching")
    title = axis.choice(choices.get(axis.name, axis.default)).title
    return "One after the other" if title == axis.off else f"{title.capitalize()} batching"
