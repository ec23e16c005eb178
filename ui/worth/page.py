"""What each choice is worth, and sweeps, of the arms of Compare: a page with an address (`?view=worth`) and no tab, to
which Compare leads. Wiring only: `tokendyno.backend.ablation` measures."""

from contextlib import suppress
from typing import Annotated, Any, Literal, NamedTuple

import gradio as gr
import msgspec

from tokendyno.backend.ablation.courses import Courses
from tokendyno.backend.ablation.kinds import Ablation, Sweep
from tokendyno.backend.ablation.sweep import SIZE_TITLES, SIZES
from tokendyno.backend.ablation.sweep_view import SweepView, sweep_view
from tokendyno.backend.ablation.view import WorthView, worth_view
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.optimizations import all_axes, titles_text
from tokendyno.backend.redact import redact
from tokendyno.ui.compare.page import ComparePage
from tokendyno.ui.compare.request import ARMS, read_arms, read_request
from tokendyno.ui.components.events import QUIET
from tokendyno.ui.components.html import text_line
from tokendyno.ui.errors import Updates, read_event, shows_errors
from tokendyno.ui.visitor import visitor_of
from tokendyno.ui.worth.course import course_panel, wire_course
from tokendyno.ui.worth.sources import sweep_template, worth_template

MISSING = "No ablation or sweep is kept under this address. Search History for its id to find its runs."

TO_COMPARE = "() => { document.querySelector('#pages [data-tab-id=compare]').click(); return []; }"


class Part(NamedTuple):
    """The panel of ablations, or that of sweeps, and the sentence in it about what was pressed there."""

    message: gr.HTML
    panel: gr.HTML


def worth_page(bench: Bench, courses: Courses, compare: ComparePage, opened: gr.Tab) -> None:
    """Build the page inside the current tab."""
    with gr.Row():
        arms = text_line("worth-arms", classes="td-facts")
        change = gr.Button("Change the arms on Compare", size="sm", scale=0, min_width=220, elem_id="to-compare")
    ablations = Part(_message("worth"), worth_panel(courses))
    sweeps = Part(_message("sweep"), sweep_panel(courses))
    page = _Handlers(bench, courses, ablations, sweeps, len(compare.work))
    change.click(None, None, None, js=TO_COMPARE, **QUIET)
    wire_course(ablations.panel, ablations.message, courses, page.ablate, compare.check_inputs, [sweeps.message])
    wire_course(sweeps.panel, sweeps.message, courses, page.sweep, compare.check_inputs, [ablations.message])
    messages, changes = [ablations.message, sweeps.message], [control.change for control in compare.inputs]
    gr.on(changes, None, None, messages, js="() => ['', '']", trigger_mode="always_last", **QUIET)
    opened.select(page.named, compare.check_inputs, arms, **QUIET)
    compare.opened.then(page.named, compare.check_inputs, arms, **QUIET)
    outputs = [ablations.panel, sweeps.panel, *messages]
    gr.on(None, shows_errors(ablations.message)(page.opened), None, outputs, **QUIET)  # the page was opened


def _message(name: str) -> gr.HTML:
    return text_line(f"{name}-message", into=f"#{name} .td-worth-refused")


class _Handlers:
    """What is done when something is pressed. The controls of Compare hold the arms; `work`: how many of them come
    before those of the arms."""

    def __init__(self, bench: Bench, courses: Courses, ablations: Part, sweeps: Part, work: int) -> None:
        self.bench, self.courses, self.ablations, self.sweeps, self.work = bench, courses, ablations, sweeps, work

    def named(self, *values: Any) -> str:
        """The model and the arms of Compare, or what cannot be read of them."""
        try:
            arms = [f"{arm.name}: {titles_text(arm.choices)}" for arm in read_arms(values[self.work :])]
        except InputError as error:
            return redact(str(error))
        return f"{values[0]}. {'. '.join(arms)}."

    def ablate(self, request: gr.Request, *values: Any) -> Updates:
        """What the arms differ in is to be measured choice by choice."""
        course = self.courses.begin(read_request(values), visitor_of(request))
        return {self.ablations.panel: course.id}

    def sweep(self, event: gr.EventData, request: gr.Request, *values: Any) -> Updates:
        """One arm is to be measured over sizes and choices."""
        form = read_event(event, SweepForm, "What is to be swept")
        run_request = read_request(values)
        run_request = msgspec.structs.replace(run_request, arms=[run_request.arms[ARMS.index(form.arm)]])
        course = self.courses.begin_sweep(run_request, form.values(), form.quality, visitor_of(request))
        return {self.sweeps.panel: course.id}

    def opened(self, request: gr.Request) -> Updates:
        """The ablation of `?worth=` and the sweep of `?sweep=`, else this visitor's newest of each; that of his newest
        run, where that is a trial."""
        owner, query = visitor_of(request).owner, request.query_params
        asked = {key: query[key] for key in ("worth", "sweep") if query.get(key)}
        if not asked:
            newest = self.bench.runs.newest(owner)
            run = self.bench.runs.get(newest) if newest else None
            if run is not None and run.request.trial:
                with suppress(InputError):  # nobody asked for it
                    self.courses.get(run.request.trial)  # known from now on
        found = {key: self.courses.get(course_id) for key, course_id in asked.items()}
        ids = {type(course): course.id for course in found.values() if course is not None}  # `worth` may be any of them
        return {
            self.ablations.panel: ids.get(Ablation) or self.courses.newest(owner, Ablation),
            self.sweeps.panel: ids.get(Sweep) or self.courses.newest(owner, Sweep),
            self.ablations.message: MISSING if found.get("worth", ...) is None else "",
            self.sweeps.message: MISSING if found.get("sweep", ...) is None else "",
        }


# --- panels --------------------------------------------------------------------------------------

FIRST_SIZES = {
    "batch_size": "1, 4, 16",
    "prompt_tokens": "64, 256, 1024",
    "max_new_tokens": "16, 64",
    "requests": "4, 12, 24",
    "concurrent": "1, 4, 8",
}
"""Values that a size has when it is chosen."""

FORM = """
  <span class="td-sweep-form" role="group" aria-label="What is swept">
    <label>Arm <select class="td-sweep-arm"><option>A</option><option>B</option></select></label>
    <label>over <select class="td-sweep-name" aria-label="What varies"></select></label>
    <input class="td-sweep-values" aria-label="Its values, with commas between" autocomplete="off">
    <label>and <select class="td-sweep-name" aria-label="What varies besides"></select></label>
    <input class="td-sweep-values" aria-label="Values of that, with commas between" autocomplete="off" hidden>
    <label class="td-sweep-quality"><input type="checkbox"> quality</label>
  </span>"""


class SweepForm(msgspec.Struct, forbid_unknown_fields=True):
    """What the browser sends when a sweep is begun: names with their values, as they were typed."""

    arm: Literal["A", "B"]
    over: Annotated[list[tuple[str, str]], msgspec.Meta(min_length=1, max_length=2)]
    quality: bool

    def values(self) -> dict[str, list[str]]:
        """The values of each name. InputError where a name is given twice."""
        values = {name: [value.strip() for value in text.split(",") if value.strip()] for name, text in self.over}
        if len(values) < len(self.over):
            raise InputError("The same thing varies twice. Choose another one, or leave the second out.")
        return values


def worth_panel(courses: Courses) -> gr.HTML:
    """What each choice is worth."""

    def view(course_id: str) -> WorthView | None:
        course = courses.get(course_id)
        return worth_view(course) if isinstance(course, Ablation) else None

    return course_panel("worth", "worth", worth_template(), view, "There is no such ablation here.")


def sweep_panel(courses: Courses) -> gr.HTML:
    """Sweeps. "begin" carries what `SweepForm` says."""
    sizes = [{"name": name, "title": SIZE_TITLES[name], "values": FIRST_SIZES[name]} for name in SIZES]
    axes = [
        {"name": axis.name, "title": axis.title, "values": ", ".join(choice.name for choice in axis.choices)}
        for axis in all_axes()
        if axis.name not in SIZES
    ]

    def view(course_id: str) -> SweepView | None:
        course = courses.get(course_id)
        return sweep_view(course) if isinstance(course, Sweep) else None

    varied, missing = [*sizes, *axes], "There is no such sweep here."
    return course_panel("sweep", "sweep", sweep_template(FORM), view, missing, varied=varied)
