"""What is each choice worth, and sweeps: HTML components whose value is the id of an ablation or a sweep, and the
function that their JavaScript calls. As in `tokendyno.ui.live.panel`, the browser pulls, and the server keeps no state
for a viewer.
"""

from typing import Annotated, Any, NamedTuple

import gradio as gr
import msgspec

from tokendyno.backend.ablation.courses import Courses
from tokendyno.backend.ablation.kinds import Ablation, Sweep
from tokendyno.backend.ablation.sweep import SIZE_TITLES, SIZES
from tokendyno.backend.ablation.sweep_view import sweep_view
from tokendyno.backend.ablation.view import worth_view
from tokendyno.backend.errors import InputError
from tokendyno.backend.optimizations import prompt_axes
from tokendyno.ui.components.pulls import refusal
from tokendyno.ui.components.scripts import bundle
from tokendyno.ui.live.plotly import plotly_address
from tokendyno.ui.worth.sources import sweep_template, worth_template

FIRST_SIZES = {"batch_size": "1, 4, 16", "prompt_tokens": "64, 256, 1024", "max_new_tokens": "16, 64"}
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


class Kind(NamedTuple):
    """One of the two components. `key`: of the address; `missing`: what is said of an unknown id."""

    key: str
    course: type[Ablation | Sweep]
    missing: str


WORTH = Kind("worth", Ablation, "There is no such ablation here.")
SWEEP = Kind("sweep", Sweep, "There is no such sweep here.")


class Query(msgspec.Struct, forbid_unknown_fields=True):
    """A pull: the id of an ablation or a sweep."""

    id: Annotated[str, msgspec.Meta(max_length=64)]


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    """What the browser sends when a sweep is begun: names with their values, as they were typed."""

    arm: str
    over: Annotated[list[tuple[str, str]], msgspec.Meta(min_length=1, max_length=2)]
    quality: bool

    def values(self) -> dict[str, list[str]]:
        """The values of each name. InputError where a name is given twice."""
        found = {name: [one.strip() for one in text.split(",") if one.strip()] for name, text in self.over}
        if len(found) < len(self.over):
            raise InputError("The same thing varies twice. Choose another one, or leave the second out.")
        return found


def answer(courses: Courses, kind: Kind, question: object) -> str:
    """The JSON text for one pull. Nothing of `question` is trusted."""
    try:
        query = msgspec.convert(question, Query, strict=True)
        course = courses.get(query.id)
    except msgspec.ValidationError as error:
        return refusal(f"This pull cannot be read: {error}.")
    except InputError as error:
        return refusal(str(error))
    match course:
        case Ablation() if kind is WORTH:
            return msgspec.json.encode(worth_view(course)).decode()
        case Sweep() if kind is SWEEP:
            return msgspec.json.encode(sweep_view(course)).decode()
        case _:
            return refusal(kind.missing)


def worth_panel(courses: Courses) -> gr.HTML:
    """What each choice is worth. It fires the events "begin", "halt" and "again"."""
    return _panel(courses, WORTH, worth_template())


def sweep_panel(courses: Courses) -> gr.HTML:
    """Sweeps. It fires the same events; "begin" carries what `Asked` says."""
    sizes = [{"name": name, "title": SIZE_TITLES[name], "values": FIRST_SIZES[name]} for name in SIZES]
    axes = [
        {"name": axis.name, "title": axis.title, "values": ", ".join(choice.name for choice in axis.choices)}
        for axis in prompt_axes()
    ]
    return _panel(courses, SWEEP, sweep_template(FORM), varied=[*sizes, *axes])


def _panel(courses: Courses, kind: Kind, template: str, **settings: Any) -> gr.HTML:
    def pull(question: object) -> str:
        return answer(courses, kind, question)

    return gr.HTML(
        value="",
        html_template=template,
        js_on_load=bundle(kind.key, key_of_address=kind.key, plotly=plotly_address(), **settings),
        server_functions=[pull],
        apply_default_css=False,
        elem_id=kind.key,
    )
