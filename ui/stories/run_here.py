""" "Run it here": a story's arms run on the Compare page or the Batching page, with the model of the recording where a
GPU can run it, else with the embedded model."""

from dataclasses import replace

import gradio as gr
import msgspec

from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.config import MOST_PAIRS, UNTIL_S, ArmRequest, Request, Workload, workload_of
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.recordings.shelf import shipped_id
from tokendyno.backend.stories import Story, story
from tokendyno.backend.traffic import Limits
from tokendyno.backend.traffic.presets import drawn, traffic_presets
from tokendyno.ui.batching import request as batch_request
from tokendyno.ui.batching.page import BatchControls
from tokendyno.ui.batching.traffic_row import TTFT_LIMIT_S
from tokendyno.ui.compare.page import CompareControls
from tokendyno.ui.compare.request import choice_values, within
from tokendyno.ui.components.events import FOCUS_RUN, QUIET
from tokendyno.ui.errors import Updates, shows_errors
from tokendyno.ui.live.panel import RUN_ID
from tokendyno.ui.stories.page import StoryControls, name_of
from tokendyno.ui.visitor import BUSY, buttons_of, visitor_of

GOING_ON = (
    "Your run on the page {page} is still going on. Stop it there or wait for its end, then press Run it here again."
)


def run_here(
    bench: Bench, controls: StoryControls, compare: CompareControls, batching: BatchControls, pages: gr.Tabs
) -> None:
    """Connect the button. What is refused is said beside it, and changes nothing on the other pages."""

    def take(event: gr.EventData, request: gr.Request, *shown: object) -> Updates:
        asked = request_here(bench, story(name_of(event)))
        page = "compare" if asked.traffic is None else "batching"
        here = shown[page == "batching"]
        run = bench.runs.get(here) if isinstance(here, str) and RUN_ID.fullmatch(here) else None
        if buttons_of(run, request) == BUSY:
            raise InputError(GOING_ON.format(page=page.capitalize()))
        begun = bench.submit(asked, visitor_of(request))
        updates: Updates = {pages: gr.Tabs(selected=page), controls.message: ""}
        target: CompareControls | BatchControls
        if asked.traffic is None:
            updates |= compare.work.values(asked)
            target, values = compare, choice_values
            *starting, stop = compare.buttons
        else:
            settings = batch_request.traffic_values(asked) | {"trace": ""}
            updates |= {batching.fields[name]: value for name, value in settings.items()}
            target, values = batching, batch_request.choice_values
            *starting, stop = batching.run, batching.stop
        for axes, arm in zip((target.arm_a, target.arm_b), asked.arms, strict=True):
            updates |= dict(zip(axes, values(arm.choices), strict=True))
        updates |= {button: gr.update(interactive=False) for button in starting}
        return updates | {stop: gr.update(interactive=True), target.live: begun}

    outputs = [
        pages,
        controls.message,
        *compare.work,
        *compare.arm_a,
        *compare.arm_b,
        compare.live,
        *compare.buttons,
        *batching.fields.values(),
        *batching.arm_a,
        *batching.arm_b,
        batching.live,
        batching.run,
        batching.stop,
    ]
    shown = [compare.live, batching.live]
    taken = controls.view.take(shows_errors(controls.message)(take), shown, outputs, **QUIET)
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
    asked = msgspec.structs.replace(
        request, workload=work, until_s=UNTIL_S, reading=[] if request.traffic is None else None
    )
    return within(asked, bench.limits)


def _runs(bench: Bench, request: Request) -> bool:
    """Whether this machine is of the kind that was recorded, and every arm would run on it."""
    if bench.machine().device != "cuda":
        return False
    try:
        return not any(checked.blocked for checked in bench.check(request).values())
    except InputError:
        return False
