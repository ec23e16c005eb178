"""The list of stories and the text of the one that is shown. The value is JSON; choosing another fires "choose", "Run
it here" fires "take", each with the story's name."""

from collections.abc import Sequence
from pathlib import Path

import gradio as gr
import msgspec

from ui.components.scripts import with_helper

SCRIPT = Path(__file__).resolve().parent / "js" / "story.js"

_TEMPLATE = """
<div class="td-story">
  <nav class="td-story-list" aria-label="Stories"></nav>
  <article class="td-story-text" aria-live="polite"></article>
</div>
"""


class ShownStory(msgspec.Struct, frozen=True):
    """One story as it is shown. `recorded`: of which model, where and when; `batching`: another page plays it."""

    name: str
    title: str
    text: list[str]
    claim: str
    source: str
    verdict: str
    found: str
    recorded: str
    recording: str
    batching: bool
    here: str


class Shown(msgspec.Struct, frozen=True):
    """The component's value."""

    at: str
    stories: Sequence[ShownStory]


def encode(stories: Sequence[ShownStory], at: str) -> str:
    """The component's value: all stories, and the name of the one that is shown ("" for the first)."""
    return msgspec.json.encode(Shown(at, stories)).decode()


def story_view(value: str) -> gr.HTML:
    """The component."""
    return gr.HTML(
        value=value,
        html_template=_TEMPLATE,
        js_on_load=with_helper([SCRIPT]),
        apply_default_css=False,
        elem_id="story",
    )
