"""The Stories page: guided pages whose recording plays at once. Wiring only: `tokendyno.backend.stories` reads them."""

from typing import NamedTuple

import gradio as gr

from tokendyno.backend import hardware
from tokendyno.backend.claims.view import measured_of
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.limits import NO_RUNS
from tokendyno.backend.recordings.shelf import shipped_id
from tokendyno.backend.stories import Story, first_story, stories, story
from tokendyno.backend.views.card import card_of
from tokendyno.backend.views.sentences import device_name, whole_note
from tokendyno.backend.views.story_number import story_number
from tokendyno.ui.components.events import QUIET
from tokendyno.ui.components.text_line import text_line
from tokendyno.ui.errors import Updates, shows_errors
from tokendyno.ui.live.panel import live_panel
from tokendyno.ui.stories.view import ShownClaim, ShownRecording, ShownStory, encode, story_view


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
    view = story_view(encode(shown, first_story(hardware.detect().device).name, no_runs=no_runs))
    message = text_line("story-message", role="alert", classes="td-failure")
    panel = live_panel(bench.runs, elem_id="story-live", replays=True)
    controls = StoryControls(view, panel, message, shown, no_runs)

    def choose(event: gr.EventData) -> Updates:
        return controls.open(name_of(event), recording_of(event)) | {message: ""}

    view.choose(shows_errors(message)(choose), None, [view, panel, message], trigger_mode="multiple", **QUIET)
    return controls


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


def _shown(bench: Bench, told: Story) -> ShownStory:
    shows = {one.recording: one.shows for one in told.also}
    played = [_played(bench, told, name, shows.get(name, "")) for name in told.recordings]
    claims = [ShownClaim(one.name, one.title, one.word, one.remark, one.sentence) for one in measured_of(told.claims)]
    run = bench.runs.get(shipped_id(told.recording))
    assert run is not None  # `_played` has refused a story without its recording
    beside = bench.runs.get(shipped_id(told.beside)) if told.beside else None
    number = story_number(run, told.number, told.sittings, beside)
    card = card_of(run.snapshot()) if run.request.traffic is None else None
    tile = card.tiles[0] if card is not None and told.number == "speed" else None
    caption = f"{run.created.model_label} on {device_name(run.created.machine)}"
    caption += f", beside {beside.created.model_label}" if beside is not None else ""
    if len(told.sittings) > 1:
        caption += f"; the median of {len(told.sittings)} sittings"
    return ShownStory(
        told.name,
        told.title,
        number.figure,
        told.headline,
        f"{tile.a} \u2192 {tile.b} {tile.unit} a token" if tile is not None else "",
        told.why,
        caption,
        number.curves,
        list(told.text),
        told.claim,
        told.source,
        claims,
        told.found,
        played,
        run.request.traffic is not None,
        told.here.note,
        told.chart,
    )


def _played(bench: Bench, told: Story, recording: str, shows: str) -> ShownRecording:
    run = bench.runs.get(shipped_id(recording))
    if run is None:
        raise InputError(f"The recording {recording!r} of the story {told.name!r} is missing. Reinstall tokendyno.")
    note = whole_note(run.created)
    return ShownRecording(recording, f"{run.created.model_label}. {note[:1].upper()}{note[1:]}", shows)
