"""The searchable list of what can be added to an arm: one dialog for both arms.

It opens on the window event "tokendyno-palette", which names the arm. What is taken fires the event "take" with the
arm, the choices, and whether they replace the whole arm.
"""

from typing import Annotated, Literal

import gradio as gr
import msgspec

from tokendyno.backend import hardware
from tokendyno.backend.arms.palette import Entry, palette
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.views.phases import start_cost_text
from tokendyno.ui.components.html import component

_TEMPLATE = """
<dialog class="td-palette" aria-label="What can be added to an arm">
  <header><h2></h2><button type="button" class="td-close" aria-label="Close">\u2715</button></header>
  <input type="search" placeholder="Search: fast, int8, cache, graph ..." aria-label="Search optimizations and presets">
  <nav class="td-jumps" aria-label="Groups"></nav>
  <div class="td-entries"></div>
</dialog>
"""


class Taken(msgspec.Struct):
    """What the browser sends when an entry was taken."""

    arm: Literal["A", "B"]
    choices: dict[str, str]
    whole: bool


class Offers(msgspec.Struct):
    """The value of the component: what can be added to an arm of a model."""

    model: str
    entries: list[Entry]


class StartsOf(msgspec.Struct, forbid_unknown_fields=True):
    """What the browser asks when the palette opens: what choices cost at the start with this model."""

    model: Annotated[str, msgspec.Meta(max_length=512)]


def palette_dialog(bench: Bench, facts: ModelFacts | None) -> gr.HTML:
    """The component; its value is what `palette_value` returns."""

    def ask(question: object) -> str:
        try:
            costs = bench.start_costs(msgspec.convert(question, StartsOf).model)
        except (msgspec.ValidationError, InputError):  # the palette works without this hint
            costs = {}
        return msgspec.json.encode({key: start_cost_text(seconds) for key, seconds in costs.items()}).decode()

    return component("palette", _TEMPLATE, "palette", palette_value(facts), functions=[ask])


def palette_value(facts: ModelFacts | None) -> str:
    """The component's value: all entries for this model here; none for a model that is not known."""
    offers = Offers("", []) if facts is None else Offers(facts.model, palette(facts, hardware.detect()))
    return msgspec.json.encode(offers).decode()
