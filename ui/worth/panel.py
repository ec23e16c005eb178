"""What is each choice worth: an HTML component whose value is an ablation's id, and the function that its JavaScript
calls. As in `ui.live.panel`, the browser pulls, and the server keeps no state for a viewer.
"""

from pathlib import Path
from typing import Annotated

import gradio as gr
import msgspec

from backend.ablation.courses import Courses
from backend.ablation.view import worth_view
from backend.errors import InputError
from ui.components.pulls import refusal
from ui.components.scripts import with_helper

SCRIPT = Path(__file__).resolve().parent / "js" / "worth.js"

TEMPLATE = """
<section class="td-worth" aria-labelledby="td-worth-title">
  <header><h2 id="td-worth-title">What is each worth?</h2>
  <button type="button" class="td-worth-begin">Measure each choice</button>
  <button type="button" class="td-worth-stop" hidden>Stop</button>
  <button type="button" class="td-worth-again" hidden>Go on</button>
  <span class="td-worth-link" hidden><a class="td-worth-address"></a></span></header>
  <p class="td-worth-sentence" role="status"></p>
  <progress class="td-worth-progress" max="1" value="0" aria-label="Runs of this ablation" hidden></progress>
  <p class="td-worth-doing"></p>
  <p class="td-worth-failure td-failure" role="alert"></p>
  <div class="td-worth-groups"></div>
</section>
"""


class Query(msgspec.Struct, forbid_unknown_fields=True):
    """A pull: the ablation's id."""

    id: Annotated[str, msgspec.Meta(max_length=64)]


def answer(courses: Courses, question: object) -> str:
    """The JSON text for one pull. Nothing of `question` is trusted."""
    try:
        query = msgspec.convert(question, Query, strict=True)
        course = courses.get(query.id)
    except msgspec.ValidationError as error:
        return refusal(f"This pull cannot be read: {error}.")
    except InputError as error:
        return refusal(str(error))
    if course is None:
        return refusal("There is no such ablation here.")
    return msgspec.json.encode(worth_view(course)).decode()


def worth_panel(courses: Courses) -> gr.HTML:
    """The component. It fires the events "begin", "halt" and "again"."""

    def pull(question: object) -> str:
        return answer(courses, question)

    return gr.HTML(
        value="",
        html_template=TEMPLATE,
        js_on_load=with_helper([SCRIPT]),
        server_functions=[pull],
        apply_default_css=False,
        elem_id="worth",
    )
