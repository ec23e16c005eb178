"""The list of stories and the text of the one that is shown. The value is JSON; choosing another fires "choose", "Run
it here" fires "take", each with the story's name; "choose" may also name one of its recordings."""

from collections.abc import Sequence

import gradio as gr
import msgspec

from tokendyno.ui.components.scripts import bundle

_TEMPLATE = """
<section class="td-first" aria-live="polite"></section>
<nav class="td-findings" aria-label="Stories"></nav>
<article class="td-story-text"></article>
"""


class ShownRecording(msgspec.Struct, frozen=True):
    """One of a story's recordings. `recorded`: of which model, where and when; `shows`: what it adds, "" for the
    story's own."""

    recording: str
    recorded: str
    shows: str = ""


class ShownClaim(msgspec.Struct, frozen=True):
    """A measured claim of a story: its name and title on the Claims page, and the verdict on it. `remark`: on what that
    rests in short, "" where it is plain; `sentence`: the figures."""

    name: str
    title: str
    word: str
    remark: str
    sentence: str


class ShownStory(msgspec.Struct, frozen=True):
    """One story as it is shown.

    number    its one figure, "" for none; `headline` goes on after it, `why` is the reason
    times     what a token takes in both arms, "" where that is not the point
    curves    of arms A and B, from 0 to 1
    played    its own recording and then others; `batching`: another page plays it
    """

    name: str
    title: str
    number: str
    headline: str
    times: str
    why: str
    caption: str
    curves: list[list[float]]
    text: list[str]
    claim: str
    source: str
    claims: list[ShownClaim]
    found: str
    played: list[ShownRecording]
    batching: bool
    here: str
    chart: str


class Shown(msgspec.Struct, frozen=True):
    """The component's value. `playing`: the recording, "" for the story's own; `no_runs`: why nothing can be run here,
    "" where it can."""

    at: str
    playing: str
    no_runs: str
    stories: Sequence[ShownStory]


def encode(stories: Sequence[ShownStory], at: str, playing: str = "", no_runs: str = "") -> str:
    """The component's value: all stories, the name of the one that is shown ("" for the first), and its recording."""
    return msgspec.json.encode(Shown(at, playing, no_runs, stories)).decode()


def story_view(value: str) -> gr.HTML:
    """The component."""
    return gr.HTML(
        value=value, html_template=_TEMPLATE, js_on_load=bundle("story"), apply_default_css=False, elem_id="story"
    )
