"""The live panel: an HTML component whose value is a run's id, and the one function that its JavaScript calls.

The browser pulls what lies past its cursor, at its own pace. A late viewer, a reload, a lost connection and a replay
are therefore all the same read; no viewer holds a queue slot, and the server keeps no state for one.
"""

import re
import threading
from typing import Annotated, TypeVar

import gradio as gr
import msgspec

from tokendyno.backend.errors import InputError
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.run import MAX_TOKENS_PER_PULL, Run
from tokendyno.backend.views import live
from tokendyno.backend.views.live import Heads
from tokendyno.ui.components.pulls import PullRefused
from tokendyno.ui.components.queue_line import QueueLine, no_queue
from tokendyno.ui.components.scripts import bundle
from tokendyno.ui.live.pace import PACE
from tokendyno.ui.live.plotly import plotly_address
from tokendyno.ui.live.sources import TEMPLATE, panel_settings

RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
MAX_ARMS = 8
MOST_WAIT_MS = 100
WAITING = threading.BoundedSemaphore(4)
"""Pulls that may wait for news at a time: each holds a thread. Others are answered at once."""


class Pull(msgspec.Struct, forbid_unknown_fields=True):
    """The run, and the version of the head that the browser has."""

    run: Annotated[str, msgspec.Meta(max_length=64)]
    version: int


Question = TypeVar("Question", bound=Pull)


class Query(Pull):
    """A pull, with a cursor (tokens, samples, characters) for each arm.

    anew     what viewers share may be too old
    wait_ms  how long the answer may wait for the next tokens, so that they are seen as soon as they are there
    """

    cur: Annotated[list[tuple[int, int, int]], msgspec.Meta(max_length=MAX_ARMS)]
    anew: bool = False
    wait_ms: Annotated[int, msgspec.Meta(ge=0, le=MOST_WAIT_MS)] = 0


def asked(runs: RunLog, question: object, kind: type[Question]) -> tuple[Question, Run]:
    """What a browser asked, of which nothing is trusted, and the run. PullRefused without one."""
    try:
        query = msgspec.convert(question, kind, strict=True)
    except msgspec.ValidationError as error:
        raise PullRefused(f"This pull cannot be read: {error}.") from None
    try:
        run = runs.get(query.run) if RUN_ID.fullmatch(query.run) else None
    except InputError as error:
        raise PullRefused(str(error)) from None
    if run is None:
        raise PullRefused("There is no such run here.")
    return query, run


def answer(runs: RunLog, question: object, queue: QueueLine = no_queue, heads: Heads[live.Head] | None = None) -> str:
    """The JSON text for one pull. `queue`: where a run stands; `heads`: what viewers share."""
    try:
        query, run = asked(runs, question, Query)
    except PullRefused as refused:
        return refused.answer
    if query.wait_ms and WAITING.acquire(blocking=False):
        try:
            PACE.held(run.wait(query.wait_ms / 1000))
        finally:
            WAITING.release()
    cursors = query.cur + [(0, 0, 0)] * (len(run.arms) - len(query.cur))
    place = queue(run.id) if run.status == "queued" else ""
    delta: live.Delta = live.delta(
        run, query.version, cursors, run.elapsed_s, place, runs, None if query.anew else heads
    )
    delta = msgspec.structs.replace(delta, trouble=runs.trouble, every_ms=PACE.every_ms())
    return msgspec.json.encode(delta).decode()


def live_panel(
    runs: RunLog,
    first: str = "",
    queue: QueueLine = no_queue,
    elem_id: str = "live",
    replays: bool = False,
    acts: bool = True,
) -> gr.HTML:
    """The panel. It fires the event "finished" when its run has ended. `first`: what a visitor without a run is told of
    the arms; `replays`: it plays each run again as soon as it has it, and leaves the address alone;
    `acts`: Run can be pressed.
    """
    heads: Heads[live.Head] = Heads()

    def pull(question: object) -> str:
        return answer(runs, question, queue, heads)

    return gr.HTML(
        value="",
        html_template=TEMPLATE,
        js_on_load=bundle(
            "live",
            **panel_settings(),
            most=MAX_TOKENS_PER_PULL,
            first=first,
            replays=replays,
            links=not replays,
            acts=acts and not replays,
            plotly=plotly_address(),
        ),
        server_functions=[pull],
        apply_default_css=False,
        elem_id=elem_id,
        elem_classes=["td-panel"],
    )
