"""What the panels of ablations, sweeps and advice have in common: an HTML component whose value is an id, which its
JavaScript pulls as in `tokendyno.ui.live.panel`, and its events "begin", "halt" and "again"."""

import functools
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import gradio as gr
import msgspec

from tokendyno.backend.ablation.courses import Courses
from tokendyno.backend.errors import InputError
from tokendyno.ui.components.events import QUIET
from tokendyno.ui.components.html import component
from tokendyno.ui.errors import Updates, refusal, shows_errors
from tokendyno.ui.visitor import REFUSED, visitor_of

View = Callable[[str], msgspec.Struct | None]
"""What a panel shows of an id; None where it is of no course of its kind."""


class Query(msgspec.Struct, forbid_unknown_fields=True):
    """A pull: the id of a course."""

    id: Annotated[str, msgspec.Meta(max_length=64)]


def course_panel(name: str, key: str, template: str, view: View, missing: str, **settings: Any) -> gr.HTML:
    """The component. `name`: of its script and its element; `key`: of the id in the address; `missing`: what is said of
    an unknown id."""

    def pull(question: object) -> str:
        return answer(question, view, missing)

    return component(name, template, name, functions=[pull], plots=True, key_of_address=key, **settings)


def answer(question: object, view: View, missing: str) -> str:
    """The JSON text for one pull. Nothing of `question` is trusted."""
    try:
        shown = view(msgspec.convert(question, Query, strict=True).id)
    except msgspec.ValidationError as error:
        return refusal(f"This pull cannot be read: {error}.")
    except InputError as error:
        return refusal(str(error))
    return refusal(missing) if shown is None else msgspec.json.encode(shown).decode()


def wire_course(
    panel: gr.HTML,
    message: gr.HTML,
    courses: Courses,
    begin: Callable[..., Updates],
    inputs: Sequence[Any],
    others: Sequence[gr.HTML] = (),
) -> None:
    """Connect the events. `begin`: handler of the first, with the values of `inputs`; what was stopped goes on in its
    panel. `message`: where what is refused is said; `others`: of other panels of the page, which are over then too."""
    outputs = [panel, message, *others]
    said = dict.fromkeys([message, *others], "")

    def safe(handler: Callable[..., Updates]) -> Callable[..., Updates]:
        shown = shows_errors(message)(handler)

        @functools.wraps(handler)  # Gradio reads which arguments it takes
        def cleared(*values: Any) -> Updates:
            return said | shown(*values)

        return cleared

    def stop(request: gr.Request, course_id: Any) -> Updates:
        stopped = isinstance(course_id, str) and courses.stop(course_id, visitor_of(request))
        return {message: "" if stopped else REFUSED}

    def go_on(request: gr.Request, course_id: Any) -> Updates:
        course = courses.again(course_id if isinstance(course_id, str) else "", visitor_of(request))
        return {panel: course.id}

    panel.begin(safe(begin), inputs, outputs, **QUIET)
    panel.halt(safe(stop), panel, outputs, **QUIET)
    panel.again(safe(go_on), panel, outputs, **QUIET)
