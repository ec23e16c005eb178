"""The Advise page: a wish, limits and a budget; the answer, with everything that was measured. Wiring only:
`tokendyno.backend.ablation.advise` finds it."""

import secrets
from contextlib import suppress
from typing import Any, NamedTuple

import gradio as gr

from tokendyno.backend.ablation.advise.course import question_of
from tokendyno.backend.ablation.advise.result import AdviceDocument, predicted_document
from tokendyno.backend.ablation.advise.space import Builder
from tokendyno.backend.ablation.advise.view import AdviceView, advice_view, predicted_view
from tokendyno.backend.ablation.advise.wishes import TITLES, WISHES, Limits, Question, read_budget, seconds_typed
from tokendyno.backend.ablation.courses import Courses, is_advice
from tokendyno.backend.ablation.kinds import AdviceCourse
from tokendyno.backend.config import Workload
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.fit.device import THIS, elsewhere
from tokendyno.backend.hardware.gpu_specs import gpus
from tokendyno.backend.quality.texts import LEAST_WORDS, YOURS, passages
from tokendyno.ui.address import bring_back, keep
from tokendyno.ui.components.events import QUIET
from tokendyno.ui.components.html import text_line
from tokendyno.ui.components.inputs import model_input, number_input, read_own_text, read_text, read_work
from tokendyno.ui.errors import Updates, shows_errors
from tokendyno.ui.visitor import visitor_of
from tokendyno.ui.worth.course import course_panel, wire_course
from tokendyno.ui.worth.sources import advise_template

BUDGETS = ("2m", "5m", "10m", "20m", "1h")
PROMPT_TOKENS, NEW_TOKENS = 128, 64

TO_WORTH = "() => { document.querySelector('#pages [data-tab-id=worth]').click(); return []; }"
"""Opens the page of ablations and sweeps, whose tab is not shown."""


class Fields(NamedTuple):
    """The controls of a question, or their values, in the order in which events pass them."""

    model: Any
    gpu: Any
    wish: Any
    memory: Any
    latency: Any
    ttft: Any
    quality: Any
    budget: Any
    prompt: Any
    prompt_tokens: Any
    new_tokens: Any
    batch: Any


class AdviseControls(NamedTuple):
    """What another page may set."""

    fields: Fields
    message: gr.HTML


def advise_page(bench: Bench, courses: Courses) -> AdviseControls:
    """Build the page inside the current tab."""
    fields = _question_rows(bench)
    message = text_line("advise-message", role="alert", classes="td-failure")
    predictions = _Predictions()
    panel = _panel(courses, predictions)
    gr.Button("What is each choice worth? Ablations and sweeps", size="sm", elem_id="to-worth").click(
        None, None, None, js=TO_WORTH, **QUIET
    )
    page = _Handlers(bench, courses, predictions, fields, panel, message)
    wire_course(panel, message, courses, page.begin, [*fields])
    filled = gr.on(None, shows_errors(message)(page.opened), None, [panel, message, *fields], **QUIET)  # when it opens
    # what was typed comes back with a reload; the model stands in the address
    drafted = [panel, *fields[1:]]
    ids = [part.elem_id for part in drafted]
    edits = [part.change for part in drafted[1:]]
    gr.on(edits, None, drafted, None, js=keep("advise", ids), trigger_mode="multiple", **QUIET)
    filled.then(None, drafted, drafted, js=bring_back("advise", ids), **QUIET)
    return AdviseControls(fields, message)


def _question_rows(bench: Bench) -> Fields:
    """Two rows of controls: what is wanted of which model, and for which work."""
    with gr.Row(elem_id="advise-ask", elem_classes=["td-work"]):
        model = model_input(bench.offered, "advise-model")
        cards = [THIS, *(gpu.name for gpu in gpus())]
        gpu = gr.Dropdown(cards, value=THIS, label="On", min_width=130, elem_id="advise-gpu")
        wishes = [(TITLES[name], name) for name in WISHES]
        wish = gr.Dropdown(wishes, value=WISHES[0], label="I want", min_width=190, elem_id="advise-wish")
        memory = _limit("Memory, at most", "24GiB", "advise-memory")
        latency = _limit("A token, at most", "15ms", "advise-latency")
        ttft = _limit("First token, at most", "1s", "advise-ttft")
        quality = gr.Dropdown(
            [("as good", "same"), ("KL at most 0.05", "0.05"), ("any", "any")],
            value="same",
            label="Quality",
            allow_custom_value=True,
            min_width=110,
            elem_id="advise-quality",
        )
        budget = gr.Dropdown(
            [*BUDGETS], value="5m", label="Budget", allow_custom_value=True, min_width=80, elem_id="advise-budget"
        )
    with gr.Row(elem_id="advise-work", elem_classes=["td-work"]):
        prompt = gr.Textbox(
            "",
            label="Your own text: the prompt, and what quality is read on",
            placeholder=f"Quality is read on it from {LEAST_WORDS} words on; empty: synthetic tokens",
            lines=1,
            max_lines=4,
            min_width=320,
            scale=6,
            elem_id="advise-prompt",
        )
        prompt_tokens = number_input("Or prompt tokens", PROMPT_TOKENS, "advise-prompt-tokens")
        new_tokens = number_input("New tokens", NEW_TOKENS, "advise-new-tokens")
        batch = number_input("Batch size", 1, "advise-batch")
    return Fields(model, gpu, wish, memory, latency, ttft, quality, budget, prompt, prompt_tokens, new_tokens, batch)


def _limit(label: str, such_as: str, elem_id: str) -> gr.Textbox:
    return gr.Textbox("", label=label, placeholder=f"such as {such_as}", min_width=120, elem_id=elem_id)


class _Handlers(NamedTuple):
    """What is done when something is pressed."""

    bench: Bench
    courses: Courses
    predictions: "_Predictions"
    fields: Fields
    panel: gr.HTML
    message: gr.HTML

    def begin(self, request: gr.Request, *values: object) -> Updates:
        """Find it was pressed."""
        fields = Fields(*values)
        limits = Limits.read(
            *(read_text("A limit", limit) for limit in (fields.memory, fields.latency, fields.ttft, fields.quality))
        )
        if fields.wish not in WISHES:
            raise InputError("Choose what you want.")
        text = read_own_text(fields.prompt)
        work = Workload(
            text,
            prompt_tokens=0 if text.strip() else read_work("Prompt tokens", fields.prompt_tokens, "prompt_tokens"),
            max_new_tokens=read_work("New tokens", fields.new_tokens, "max_new_tokens"),
            batch_size=read_work("Batch size", fields.batch, "batch_size"),
        )
        question = Question(read_text("The model", fields.model).strip(), work, fields.wish, limits)
        budget_s = read_budget(read_text("The budget", fields.budget))
        if (machine := elsewhere(self.bench.machine(), read_text("The GPU", fields.gpu))) is not None:
            builder = Builder(self.bench, question, machine)
            document = predicted_document(builder, question, machine.name, self.bench.runs)
            return {self.panel: self.predictions.add(document, fields)}
        reading = passages(YOURS, text) if len(text.split()) >= LEAST_WORDS else []
        course = self.courses.begin_advice(question, budget_s, visitor_of(request), reading)
        return {self.panel: course.id}

    def opened(self, request: gr.Request) -> Updates:
        """The advice of `?advice=`, else this visitor's newest, beside what was asked for it."""
        trial = request.query_params.get("worth") or ""
        course_id = request.query_params.get("advice") or (trial if is_advice(self.bench, trial) else "")
        if course_id.startswith(_THERE) and course_id not in self.predictions:
            course_id = ""
        course_id = course_id or self.courses.newest(visitor_of(request).owner, AdviceCourse)
        predicted = self.predictions.get(course_id)
        asked = predicted[1] if predicted is not None else self._asked(course_id)
        updates: Updates = dict(zip(self.fields, asked, strict=True)) if asked else {}
        if request.query_params.get("model"):  # which the address sets on all pages
            updates.pop(self.fields.model, None)
        return {self.panel: course_id, **updates}

    def _asked(self, course_id: str) -> Fields | None:
        """What the controls said when a course was begun; None where it cannot be read, as its panel says."""
        with suppress(InputError):
            course = self.courses.get(course_id)
            if isinstance(course, AdviceCourse):
                question, budget_s = question_of(course.heading), course.heading.budget_s
                work = question.work
                text = ("", work.prompt_tokens) if work.prompt_tokens else (work.prompt, PROMPT_TOKENS)
                budget = seconds_typed(budget_s) if budget_s else gr.skip()
                wishes = question.wish, *question.limits.typed(), budget
                return Fields(question.model, THIS, *wishes, *text, work.max_new_tokens, work.batch_size)
        return None


# --- panel ----------------------------------------------------------------------------------------


MOST_PREDICTIONS = 64
_THERE = "there-"  # ids of predictions begin so


class _Predictions(dict[str, tuple[AdviceDocument, Fields]]):
    """Answers for GPUs that are not here, with what the controls said, by an id: the newest ones, in memory."""

    def add(self, document: AdviceDocument, asked: Fields) -> str:
        """Keep it; returns its id."""
        view_id = f"{_THERE}{secrets.token_hex(8)}"
        self[view_id] = document, asked
        for old in [*self][:-MOST_PREDICTIONS]:
            self.pop(old, None)
        return view_id


def _panel(courses: Courses, predictions: _Predictions) -> gr.HTML:
    def view(course_id: str) -> AdviceView | None:
        if (predicted := predictions.get(course_id)) is not None:
            return predicted_view(course_id, predicted[0])
        course = courses.get(course_id)
        return advice_view(course) if isinstance(course, AdviceCourse) else None

    return course_panel("advise", "advice", advise_template(), view, "There is no such advice here.")
