"""What differs from the settings with which a page opens: a sentence, and chips whose press puts them back."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr
import msgspec

from tokendyno.backend.errors import InputError
from tokendyno.ui.components.html import component
from tokendyno.ui.errors import Updates, read_event

MOST_CHARACTERS = 24
"""Of a text in a chip."""


class SettingChip(msgspec.Struct):
    """A setting that differs, by its title: what it is, and what a press makes of it."""

    title: str
    value: str
    default: str


class ChipLine(msgspec.Struct):
    """The value of the component."""

    sentence: str
    chips: list[SettingChip]


class PutBack(msgspec.Struct):
    """What a press sends: titles."""

    titles: list[str]


class SettingChips:
    """The line of a page.

    controls  by name
    settings  by title the names of controls that are put back together
    """

    def __init__(self, elem_id: str, classes: str) -> None:
        self.controls: dict[str, Any] = {}
        self.defaults: dict[str, object] = {}
        self.settings: dict[str, list[str]] = {}
        self.line = component(
            "setting_chips",
            '<div class="td-set"><div class="td-line-text"></div>'
            '<div class="td-chips" role="group" aria-label="What is not the default" hidden></div></div>',
            elem_id,
            classes=["td-line", "td-facts", *classes.split()],
        )

    def watch(self, controls: Mapping[str, Any], **companions: Any) -> None:
        """Take the controls, which may be built after the line. The title of a setting is its label without remarks; a
        control that is labelled "to" belongs to the one before it, and the first to no setting: it is the model.
        `companions`: by title a further control that is put back with a setting."""
        self.controls = {**controls, **companions}
        self.defaults = {name: control.value for name, control in self.controls.items()}
        title = ""
        for name, control in [*controls.items()][1:]:
            title = title if control.label == "to" else re.split(r", (?=\w{3})| \(|:", control.label)[0]
            self.settings.setdefault(title, []).append(name)
        for title in companions:
            self.settings[title].append(title)

    def value(self, sentence: str, values: Mapping[str, object]) -> str:
        """The component's value. `values`: of the controls, by name; they may hold anything."""
        chips = [
            SettingChip(title, self._text(sent, values), self._text(sent, self.defaults))
            for title, names in self.settings.items()
            if (sent := [name for name in names if name in values])
            and any(values[name] != self.defaults[name] for name in sent)
        ]
        return msgspec.json.encode(ChipLine(sentence, chips)).decode()

    def put_back(self, event: gr.EventData) -> Updates:
        """Handler of the event "back": the controls of these settings as the page opens."""
        titles = read_event(event, PutBack, "What is to be put back").titles
        if not self.settings.keys() >= set(titles):
            raise InputError("What is to be put back cannot be read. Reload the page.")
        names = [name for title in titles for name in self.settings[title]]
        return {self.controls[name]: self.defaults[name] for name in names}

    def _text(self, names: Sequence[str], values: Mapping[str, object]) -> str:
        return " to ".join(_text(values[name], self.controls[name]) for name in names)


def _text(value: object, control: Any) -> str:
    match value:
        case bool():
            return "on" if value else "off"
        case int() | float() if math.isfinite(value):
            return f"{value:,.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:g}"
        case str() if value.strip():
            titles = {name: title for title, name in getattr(control, "choices", None) or ()}
            text = " ".join(titles.get(value, value).split())
            return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1].rstrip()}\u2026"
        case _:
            return "empty"
