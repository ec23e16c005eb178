"""The Stories page: guided pages whose recording plays at once; `tokendyno.backend.stories` reads them.

The list and the text of the story that is shown are one component, whose value is JSON. Choosing another story fires
"choose", "Run it here" fires "take", each with the story's name; "choose" may also name one of its recordings.
"""

from collections.abc import Sequence
from typing import NamedTuple

import gradio as gr
import msgspec

from tokendyno.backend import hardware
from tokendyno.backend.claims.view import measured_of
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.limits import NO_RUNS
from tokendyno.backend.recordings.shelf import shipped_id
from tokendyno.backend.stories import Story, first_story, stories, story
from tokendyno.backend.views.card import card_of
from tokendyno.backend.views.origin import device_name, whole_note
from tokendyno.backend.views.story_number import story_number
from tokendyno.ui.components.events import QUIET
from tokendyno.ui.components.html import component, text_line
from tokendyno.ui.errors import Updates, shows_errors
from tokendyno.ui.live.panel import live_panel

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


class StoryControls(NamedTuple):
    """What opens a story, the message line, what an opened story sets, and why nothing can be run here (else "")."""

    view: gr.HTML
    panel: gr.HTML
    message: gr.HTML
    shown: list[ShownStory]
    no_runs: str

    def open(self, name: str, recording: str = "") -> Updates:
        """Updates that show a story, the first if there is none of this name, and play its recording, or another of
        the story's."""
        if not self.shown:
            return {}
        first = first_story(hardware.detect().device).name
        known = {one.name: one for one in self.shown}
        found = known.get(name) or known[first]
        played = [one.recording for one in found.played]
        playing = recording if recording in played else played[0]
        play = "" if found.batching else shipped_id(playing)
        return {self.view: encode(self.shown, found.name, playing, self.no_runs), self.panel: play}


def stories_page(bench: Bench) -> StoryControls:
    """Build the page inside the current tab."""
    shown = [_shown(bench, one) for one in stories()]
    no_runs = "" if bench.limits.runs else NO_RUNS
    view = component(
        "story", _TEMPLATE, "story", encode(shown, first_story(hardware.detect().device).name, no_runs=no_runs)
    )
    message = text_line("story-message", role="alert", classes="td-failure")
    panel = live_panel(bench, elem_id="story-live", replays=True)
    controls = StoryControls(view, panel, message, shown, no_runs)

    def choose(event: gr.EventData) -> Updates:
        return controls.open(name_of(event), recording_of(event)) | {message: ""}

    view.choose(shows_errors(message)(choose), None, [view, panel, message], trigger_mode="multiple", **QUIET)
    return controls


def encode(stories: Sequence[ShownStory], at: str, playing: str = "", no_runs: str = "") -> str:
    """The component's value: all stories, the name of the one that is shown ("" for the first), and its recording."""
    return msgspec.json.encode(Shown(at, playing, no_runs, stories)).decode()


def name_of(event: gr.EventData) -> str:
    """The story that an event of the list names. InputError for anything else."""
    asked = event._data.get("name") if isinstance(event._data, dict) else None
    if not isinstance(asked, str):
        raise InputError("This story cannot be read. Reload the page.")
    return story(asked).name


def recording_of(event: gr.EventData) -> str:
    """The recording that an event of the list names, "" for the story's own."""
    asked = event._data.get("recording", "") if isinstance(event._data, dict) else ""
    return asked if isinstance(asked, str) else ""


def _shown(bench: Bench, guided: Story) -> ShownStory:
    shows = {one.recording: one.shows for one in guided.also}
    played = [_played(bench, guided, name, shows.get(name, "")) for name in guided.recordings]
    claims = [ShownClaim(one.name, one.title, one.word, one.remark, one.sentence) for one in measured_of(guided.claims)]
    run = bench.runs.get(shipped_id(guided.recording))
    assert run is not None  # `_played` has refused a story without its recording
    beside = bench.runs.get(shipped_id(guided.beside)) if guided.beside else None
    number = story_number(run, guided.number, guided.sittings, beside)
    card = card_of(run.snapshot()) if run.request.traffic is None else None
    tile = card.tiles[0] if card is not None and guided.number == "speed" else None
    caption = f"{run.created.model_label} on {device_name(run.created.machine)}"
    caption += f", beside {beside.created.model_label}" if beside is not None else ""
    if len(guided.sittings) > 1:
        caption += f"; the median of {len(guided.sittings)} sittings"
    return ShownStory(
        guided.name,
        guided.title,
        number.figure,
        guided.headline,
        f"{tile.a} \u2192 {tile.b} {tile.unit} a token" if tile is not None else "",
        guided.why,
        caption,
        number.curves,
        list(guided.text),
        guided.claim,
        guided.source,
        claims,
        guided.found,
        played,
        run.request.traffic is not None,
        guided.here.note,
        guided.chart,
    )


def _played(bench: Bench, guided: Story, recording: str, shows: str) -> ShownRecording:
    run = bench.runs.get(shipped_id(recording))
    if run is None:
        raise InputError(f"The recording {recording!r} of the story {guided.name!r} is missing. Reinstall tokendyno.")
    note = whole_note(run.created)
    return ShownRecording(recording, f"{run.created.model_label}. {note[:1].upper()}{note[1:]}", shows)
