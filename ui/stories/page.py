"""The Stories page: guided pages whose recording plays at once; `tokendyno.backend.stories` reads them.

The list and the text of the story that is shown are one component, whose value is JSON. Choosing another story fires
"choose", "Run it here" fires "take", each with the story's name; "choose" may also name one of its recordings.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import gradio as gr
import msgspec

from tokendyno.backend import hardware
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.claims.view import measured_of
from tokendyno.backend.config import MOST_PAIRS, UNTIL_S, ArmRequest, Request, Workload, workload_of
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.limits import NO_RUNS
from tokendyno.backend.recordings.recorded_runs import shipped_id
from tokendyno.backend.stories import Story, first_story, stories, story
from tokendyno.backend.traffic import Limits
from tokendyno.backend.traffic.presets import drawn, traffic_presets
from tokendyno.backend.views.card import card_of
from tokendyno.backend.views.sentences import device_name, whole_note
from tokendyno.backend.views.story_number import story_number
from tokendyno.ui.batching import request as batch_request
from tokendyno.ui.batching.page import BatchingPage
from tokendyno.ui.batching.panel import batch_panel
from tokendyno.ui.batching.traffic_row import TTFT_LIMIT_S
from tokendyno.ui.compare.page import ComparePage
from tokendyno.ui.compare.request import within
from tokendyno.ui.components.events import FOCUS_RUN, QUIET
from tokendyno.ui.components.html import component, text_line
from tokendyno.ui.errors import Updates, read_event, shows_errors
from tokendyno.ui.live.panel import live_panel
from tokendyno.ui.run_page import RunPage
from tokendyno.ui.visitor import BUSY, buttons_of, visitor_of

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

    number    its one figure, "" where the recording decides none; `headline` goes on after it, `why` is the reason
    times     what a token takes in both arms, "" where that is not the point
    curves    of arms A and B, from 0 to 1
    played    its own recording and then others; `batching`: many requests
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
    """What opens a story, the panels of a recording of one prompt and of many requests, the message line, what an
    opened story sets, and why nothing can be run here (else "")."""

    view: gr.HTML
    panel: gr.HTML
    many: gr.HTML
    message: gr.HTML
    shown: list[ShownStory]
    no_runs: str

    def open(self, name: str, recording: str = "") -> Updates:
        """Updates that show a story, the first if there is none of this name, and play its recording, or another of
        the story's."""
        if not self.shown:
            return {}
        first = first_story(hardware.detect().device).name
        by_name = {guided.name: guided for guided in self.shown}
        opened = by_name.get(name) or by_name[first]
        played = [each.recording for each in opened.played]
        playing = recording if recording in played else played[0]
        shown, other = (self.many, self.panel) if opened.batching else (self.panel, self.many)
        value = encode(self.shown, opened.name, playing, self.no_runs)
        return {self.view: value, shown: shipped_id(playing), other: ""}


def stories_page(bench: Bench) -> StoryControls:
    """Build the page inside the current tab."""
    shown = [_shown(bench, guided) for guided in stories()]
    no_runs = "" if bench.limits.runs else NO_RUNS
    view = component(
        "story", _TEMPLATE, "story", encode(shown, first_story(hardware.detect().device).name, no_runs=no_runs)
    )
    message = text_line("story-message", role="alert", classes="td-failure")
    panel = live_panel(bench, elem_id="story-live", replays=True)
    many = batch_panel(bench, elem_id="story-many", recorded=True)
    controls = StoryControls(view, panel, many, message, shown, no_runs)

    def choose(event: gr.EventData) -> Updates:
        chosen = read_event(event, Chosen, "This story")
        return controls.open(story(chosen.name).name, chosen.recording) | {message: ""}

    view.choose(shows_errors(message)(choose), None, [view, panel, many, message], trigger_mode="multiple", **QUIET)
    return controls


def encode(stories: Sequence[ShownStory], at: str, playing: str = "", no_runs: str = "") -> str:
    """The component's value: all stories, the name of the one that is shown ("" for the first), and its recording."""
    return msgspec.json.encode(Shown(at, playing, no_runs, stories)).decode()


class Chosen(msgspec.Struct):
    """What the browser sends: a story, and one of its recordings, "" for its own."""

    name: str
    recording: str = ""


def _shown(bench: Bench, guided: Story) -> ShownStory:
    """A story with what is known of its recordings and its claims."""
    additions = {also.recording: also.shows for also in guided.also}
    recordings = [_played(bench, guided, name, additions.get(name, "")) for name in guided.recordings]
    claims = [ShownClaim(c.name, c.title, c.word, c.remark, c.sentence) for c in measured_of(guided.claims)]
    run = bench.runs.get(shipped_id(guided.recording))
    assert run is not None  # `_played` has refused a story without its recording
    other = bench.runs.get(shipped_id(guided.beside)) if guided.beside else None
    number = story_number(run, guided.number, guided.sittings, other)
    card = card_of(run.snapshot()) if run.request.traffic is None else None
    tile = card.tiles[0] if card is not None and guided.number == "speed" and number.figure else None
    machine = run.created.machine
    caption = f"{run.created.model_label} on {device_name(machine)}"
    if run.created.device != "cpu":  # launches are the work of the host
        caption += f", host {machine.get('cpu', 'unknown')}, {machine.get('cores', '?')} cores"
    caption += f", beside {other.created.model_label}" if other is not None else ""
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
        recordings,
        run.request.traffic is not None,
        guided.here.note,
        guided.chart,
    )


def _played(bench: Bench, guided: Story, recording: str, shows: str) -> ShownRecording:
    run = bench.runs.get(shipped_id(recording))
    if run is None:
        raise InputError(f"The recording {recording!r} of the story {guided.name!r} is missing. Reinstall tokendyno.")
    note = whole_note(run.created)
    return ShownRecording(recording, f"{run.created.model_label}. {note}", shows)


# --- "Run it here": with the recorded model where a GPU can run it, else with the embedded one ---

GOING_ON = (
    "Your run on the page {page} is still going on. Stop it there or wait for its end, then press the button again."
)


def run_here(
    bench: Bench, controls: StoryControls, compare: ComparePage, batching: BatchingPage, pages: gr.Tabs
) -> None:
    """Connect the button. What is refused is said beside it, and changes nothing on the other pages."""

    def take(event: gr.EventData, request: gr.Request, *shown_ids: object) -> Updates:
        run_request = request_here(bench, story(read_event(event, Chosen, "This story").name))
        many = run_request.traffic is not None
        page: RunPage = batching if many else compare
        if buttons_of(page.find_run(shown_ids[many]), request) == BUSY:
            raise InputError(GOING_ON.format(page=page.parts.name.capitalize()))
        run_id = bench.submit(run_request, visitor_of(request))
        if many:
            values = batch_request.traffic_values(run_request) | {"trace": ""}
            updates: Updates = {batching.row.fields[name]: value for name, value in values.items()}
        else:
            updates = compare.work.values(run_request)
        updates |= page.arms_of(run_request) | page.buttons(BUSY)
        return updates | {page.live: run_id, pages: gr.Tabs(selected=page.parts.name), controls.message: ""}

    shown_ids = [compare.live, batching.live]
    outputs = [pages, controls.message, *shown_ids]
    outputs += [part for page in (compare, batching) for part in (*page.inputs, *page.run_and_stop)]
    taken = controls.view.take(shows_errors(controls.message)(take), shown_ids, outputs, **QUIET)
    taken.success(None, None, None, js=FOCUS_RUN, **QUIET)


def request_here(bench: Bench, guided: Story) -> Request:
    """What a story runs on this machine: pairs of runs of what was recorded, if that runs here, else of two arms of the
    embedded model."""
    recorded = bench.runs.get(shipped_id(guided.recording))
    if recorded is not None and _runs(bench, recorded.request):
        return _decided(bench, recorded.request)
    here = guided.here
    arms = [
        ArmRequest(name, dict(parse_arm(here.model, text).choices))
        for name, text in zip("AB", (here.a, here.b), strict=True)
    ]
    if here.page == "batching":
        first = traffic_presets()[0]
        traffic = drawn(first.draw, 1, first.concurrent, limits=Limits(TTFT_LIMIT_S))
        return _decided(bench, Request(here.model, arms, workload_of(traffic, 1, ignore_eos=True), traffic))
    work = Workload(here.prompt, max_new_tokens=here.max_new_tokens, ignore_eos=here.ignore_eos)
    return _decided(bench, Request(here.model, arms, work))


def _decided(bench: Bench, request: Request) -> Request:
    """As Run asks for it."""
    if len(request.arms) != 2:
        return request
    work = replace(request.workload, repeats=MOST_PAIRS)
    decided = msgspec.structs.replace(
        request, workload=work, until_s=UNTIL_S, reading=[] if request.traffic is None else None
    )
    return within(decided, bench.limits)


def _runs(bench: Bench, request: Request) -> bool:
    """Whether this machine is of the kind that was recorded, and every arm would run on it."""
    if bench.machine().device != "cuda":
        return False
    try:
        return not any(checked.blocked for checked in bench.check(request).values())
    except InputError:
        return False
