"""What pages that start runs have in common: controls of arms, and handlers that check, start, stop and show."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import gradio as gr
import msgspec

from tokendyno.backend.arms.check import Checked
from tokendyno.backend.config import Request
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.limits import NO_RUNS
from tokendyno.backend.models import DEFAULT_MODEL, ModelFacts, resolve
from tokendyno.backend.optimizations.base import Optimization
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.sentences import origin_sentence
from tokendyno.ui.address import bring_back, keep
from tokendyno.ui.compare.code import CodePanels, checked_there
from tokendyno.ui.components.axis_values import all_known, edited, values_of
from tokendyno.ui.components.counting import wire_counting
from tokendyno.ui.components.events import QUIET, Settled
from tokendyno.ui.components.setting_chips import SettingChips
from tokendyno.ui.components.stale_line import stale_value, unchanged
from tokendyno.ui.errors import Updates, read_event, shows_errors
from tokendyno.ui.live.panel import RUN_ID
from tokendyno.ui.visitor import BUSY, REFUSED, Buttons, buttons_of, visitor_of


class Arm(Protocol):
    """The column of an arm."""

    @property
    def axes(self) -> list[gr.Dropdown]:
        """One control for each axis of the page."""

    @property
    def verdicts(self) -> gr.HTML:
        """What the arm is in short; a press of a fix fires "fix"."""


UNTOUCHED = """(run, message, ...values) =>
  [run, window.tokendynoAddress.touched ? message : '', ...values]"""
"""Before anything is pressed, what has changed was filled by what the page opened with, whose message stays."""


class Fix(msgspec.Struct):
    """What the browser sends: choices to be set, by axis."""

    choices: dict[str, str]


class Parts(NamedTuple):
    """The controls of such a page.

    name     of the page, as in its address
    fields   all that is typed or chosen except the arms, the model first
    chips    the line that says what Run does, with what is not the default
    message  the sentence about what was typed or pressed last
    stale    whether the results are of other settings
    """

    name: str
    fields: Sequence[Any]
    run: gr.Button
    stop: gr.Button
    chips: SettingChips
    message: gr.HTML
    stale: gr.HTML
    live: gr.HTML
    code: CodePanels


class RunPage(ABC):
    """The controls of one page, which others may set, and its handlers. These hold no state: all of it is in the
    controls and in the run log.

    arms          their columns
    axes          of each arm
    inputs        all that is typed or chosen
    check_inputs  the same with the GPUs that the scripts are for, in the order in which events pass it
    opened        the event that fills the inputs when the page is opened
    finish        the panel has shown the end of its run
    """

    arms: Sequence[Arm]

    def __init__(self, bench: Bench, parts: Parts, arms: Sequence[Arm], axes: Sequence[Optimization]) -> None:
        self.bench, self.parts, self.arms, self.axes = bench, parts, arms, axes
        self.model: gr.Dropdown = parts.fields[0]
        self.message, self.live, self.code = parts.message, parts.live, parts.code
        self.inputs: list[Any] = [*parts.fields, *(axis for arm in arms for axis in arm.axes)]
        self.check_inputs: list[Any] = [*self.inputs, parts.code.gpu, parts.code.gpus]
        self.run_and_stop: list[Any] = [parts.run, parts.stop]

    @abstractmethod
    def read(self, values: Sequence[object]) -> Request:
        """The request for these values. InputError where they are none."""

    @abstractmethod
    def changed(self, ran: Request, request: Request) -> list[str]:
        """What was edited since a run."""

    @abstractmethod
    def check(self, run_id: Any, *values: Any) -> Updates:
        """What the page says of the present values of its controls."""

    @abstractmethod
    def attach(self, request: gr.Request) -> Updates:
        """The page was opened: show a run, with its settings."""

    # --- events -----------------------------------------------------------------------------------

    def wire(
        self, checked: Sequence[Any], typed: Sequence[Any], presses: Sequence[Any], attached: Sequence[Any]
    ) -> Settled:
        """Connect the events that all such pages have. `checked`: what `check` updates; `typed`: texts, which are
        looked at once they are left; `presses`: events that start a run; `attached`: what `attach` sets besides."""
        safe, chips = shows_errors(self.message), self.parts.chips
        wire_counting(self.model, self.message, self.bench, safe)  # before the check that it announces
        settled = Settled(self.parts.name)
        controls = [*self.inputs, self.code.gpu, self.code.gpus]
        changes = [part.blur if any(part is one for one in typed) else part.change for part in controls]
        sent = [self.live, self.message, *self.check_inputs]
        settled.after(changes)(
            safe(self.check_on_change), sent, checked, js=UNTOUCHED, trigger_mode="always_last", **QUIET
        )
        put_back = chips.line.back(safe(chips.put_back), None, [*chips.controls.values(), self.message], **QUIET)
        put_back.then(None, None, None, js=settled.changed, **QUIET)  # texts may be all that it has changed
        for arm in self.arms:
            outputs = [*arm.axes, self.message]
            arm.verdicts.fix(safe(self.fix(arm)), arm.axes, outputs, trigger_mode="multiple", **QUIET)
        begun = [self.live, self.message, *self.run_and_stop]
        # a press while another is being answered waits for that
        gr.on(presses, safe(self.run), [self.live, *self.check_inputs], begun, trigger_mode="always_last", **QUIET)
        self.parts.stop.click(safe(self.stop), self.live, [self.message], **QUIET)
        self.finish = self.live.finished(safe(self.finished), self.live, [*self.run_and_stop, self.message], **QUIET)
        filled = gr.on(None, safe(self.attach), None, [*self.inputs, *begun, *attached], **QUIET)
        # what was typed comes back with a reload; the model stands in the address
        drafted = [self.live, *self.inputs[1:]]
        ids = [part.elem_id for part in drafted]
        edits = [part.change for part in drafted[1:]]
        gr.on(edits, None, drafted, None, js=keep(self.parts.name, ids), trigger_mode="multiple", **QUIET)
        self.opened = filled.then(None, drafted, drafted, js=bring_back(self.parts.name, ids), **QUIET)
        self.opened.then(safe(self.first), [self.live, *self.check_inputs], [*checked, *self.run_and_stop], **QUIET)
        return settled

    # --- arms -------------------------------------------------------------------------------------

    def check_on_change(self, run_id: Any, message: object, *values: Any) -> Updates:
        """`check` when a control was changed. It clears the message only if there was one when the values were sent
        (`message`): the answer to a press that came meanwhile stays."""
        updates = self.check(run_id, *values)
        stays = not message and not updates.get(self.message)
        return {part: update for part, update in updates.items() if not (stays and part is self.message)}

    def first(self, request: gr.Request, run_id: Any, *values: Any) -> Updates:
        """`check` when the page was opened: the message of whatever was opened stays, as that of a press does."""
        return self.check_on_change(run_id, "", *values) | self.finished(request, run_id)

    def fix(self, arm: Arm) -> Callable[..., Updates]:
        """Handler: a verdict's fix was pressed, or a chip taken off."""

        def apply(event: gr.EventData, *values: Any) -> Updates:
            choices = read_event(event, Fix, "This fix").choices
            return edited(self.axes, arm.axes, values, choices)

        return apply

    def what_run_does(self, request: Request) -> str:
        """What a press of Run does, or why there is none."""
        most = f"at most {request.workload.repeats} or {request.until_s:g} s"
        return f"Run: pairs of runs until they decide, {most}." if self.bench.limits.runs else NO_RUNS

    def scripts(
        self,
        request: Request,
        facts: ModelFacts,
        results: Mapping[str, Checked],
        codes: Callable[[int, Checked, bool], Updates],
        gpu: object,
        gpus: object,
    ) -> Updates:
        """Each arm as a script for this machine, where `results` are what was checked, or for GPUs that need not be
        here, with what would happen there. `codes`: the updates of an arm by its index; without True no folder of this
        machine is named."""
        try:
            results, there = checked_there(self.bench, request, facts, results, gpu, gpus)
        except InputError as error:
            return self.code.none(str(error))
        updates: Updates = {self.code.there: there}
        for at, checked in enumerate(results.values()):
            updates |= codes(at, checked, self.bench.local_paths and not there)
        return updates

    # --- runs -------------------------------------------------------------------------------------

    def buttons(self, state: Buttons) -> Updates:
        """Which of Run and Stop can be pressed: never Run, where nothing is run."""
        run, stop = state[0] and self.bench.limits.runs, state[1]
        return {self.parts.run: gr.update(interactive=run), self.parts.stop: gr.update(interactive=stop)}

    def run(self, request: gr.Request, shown_id: Any, *values: Any) -> Updates:
        """Run was pressed: queue a run and show it."""
        if buttons_of(self.find_run(shown_id), request) == BUSY:  # before the buttons were greyed
            return {}
        run_id = self.bench.submit(self.read(values), visitor_of(request))
        return {self.live: run_id, self.message: "", **self.buttons(BUSY)}

    def stop(self, request: gr.Request, run_id: Any) -> Updates:
        """Stop was pressed."""
        stopped = isinstance(run_id, str) and self.bench.cancel(run_id, visitor_of(request))
        return {self.message: "" if stopped else REFUSED}

    def finished(self, request: gr.Request, run_id: Any) -> Updates:
        """The panel has shown the end of its run."""
        return self.buttons(buttons_of(self.find_run(run_id), request))

    def stale(self, run_id: Any, request: Request | None) -> str:
        """The value of the stale line for what the controls ask for; None: they cannot be read."""
        run = self.find_run(run_id)
        return stale_value(run, None if run is None or request is None else self.changed(run.request, request))

    def is_recorded(self, run_id: Any, stale: str) -> bool:
        """Whether a run is shown, with its settings, that was made elsewhere. `stale`: the value of the stale line."""
        run = self.find_run(run_id)
        return run is not None and bool(origin_sentence(run.created)) and unchanged(stale)

    def find_run(self, run_id: Any) -> Run | None:
        """The run of that id, which may be anything."""
        return self.bench.runs.get(run_id) if isinstance(run_id, str) and RUN_ID.fullmatch(run_id) else None

    def arms_of(self, request: Request) -> Updates:
        """Updates that show the arms of a request; choices that no longer exist are left alone."""
        updates: Updates = {}
        for arm, requested in zip(self.arms, request.arms, strict=False):
            if all_known(self.axes, requested.choices):
                updates |= zip(arm.axes, values_of(self.axes, requested.choices), strict=True)
        return updates


def axis_dropdown(
    axis: Optimization, titles: Sequence[tuple[str, str]], value: str, arm: str, **options: Any
) -> gr.Dropdown:
    """The control of an axis. `arm`: as in the ids of its column."""
    has_values = any(choice.values for choice in axis.choices)
    elem_id = f"axis-{arm}-{axis.name}"
    return gr.Dropdown(
        titles, value=value, label=axis.title, min_width=96, allow_custom_value=has_values, elem_id=elem_id, **options
    )


def no_run(run_id: str) -> str:
    """What is said of a link to a run that is not kept here."""
    return f"There is no run {run_id[:64]!r} here. Press Run to start one."


def first_facts() -> ModelFacts | None:
    """Facts of the default model, which decide what is offered at first; None if it cannot be read."""
    try:
        return resolve(DEFAULT_MODEL)
    except InputError:
        return None
