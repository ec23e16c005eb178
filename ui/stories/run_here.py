""" "Run it here": a story's arms on the Compare page, with the model of the recording where a GPU can run it, else with
the embedded model."""

from typing import Any

import gradio as gr

from backend.arms.parse import parse_arm
from backend.config import ArmRequest, Request, Workload
from backend.engine.bench import Bench
from backend.errors import InputError
from backend.recordings.shelf import shipped_id
from backend.stories import Story, story
from ui.compare.page import CompareControls
from ui.compare.request import choice_values
from ui.errors import Updates, shows_errors
from ui.fit.run_this import FOCUS_RUN
from ui.stories.page import StoryControls, name_of


def run_here(bench: Bench, controls: StoryControls, compare: CompareControls, pages: gr.Tabs) -> None:
    """Connect the button."""

    def take(event: gr.EventData) -> Updates:
        told = story(name_of(event))
        if told.here.page == "batching":
            bench.expect_run()
            return {pages: gr.Tabs(selected="batching"), controls.message: ""}
        asked = request_here(bench, told)
        updates: Updates = {pages: gr.Tabs(selected="compare"), controls.message: ""}
        updates |= compare.work.values(asked.model, asked.workload)
        for axes, arm in zip((compare.arm_a, compare.arm_b), asked.arms, strict=True):
            updates |= dict(zip(axes, choice_values(arm.choices), strict=True))
        bench.expect_run()
        return updates

    quiet: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
    outputs = [pages, controls.message, *compare.work, *compare.arm_a, *compare.arm_b]
    taken = controls.view.take(shows_errors(controls.message)(take), None, outputs, **quiet)
    taken.success(None, None, None, js=FOCUS_RUN, **quiet)


def request_here(bench: Bench, told: Story) -> Request:
    """What a story runs on this machine: what was recorded, if that runs here, else two arms of the embedded model."""
    recorded = bench.runs.get(shipped_id(told.recording))
    if recorded is not None and recorded.request.traffic is None and _runs(bench, recorded.request):
        return recorded.request
    here = told.here
    arms = [
        ArmRequest(name, dict(parse_arm(here.model, text).choices))
        for name, text in zip("AB", (here.a, here.b), strict=True)
    ]
    work = Workload(here.prompt, max_new_tokens=here.max_new_tokens, ignore_eos=here.ignore_eos)
    return Request(here.model, arms, work)


def _runs(bench: Bench, request: Request) -> bool:
    """Whether this machine is of the kind that was recorded, and every arm would run on it."""
    if bench.machine().device != "cuda":
        return False
    try:
        return not any(checked.blocked for checked in bench.check(request).values())
    except InputError:
        return False
