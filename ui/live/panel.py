"""The panels of runs: HTML components whose value is a run's id, and the one function that their JavaScript calls.

The browser pulls what lies past its cursor, at its own pace. A late viewer, a reload, a lost connection and a replay
are therefore all the same read; no viewer holds a queue slot, and the server keeps no state for one.
"""

import re
import threading
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import gradio as gr
import msgspec

from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.engine.turns import QueuePlace
from tokendyno.backend.errors import InputError
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.run import MAX_TOKENS_PER_PULL, Run
from tokendyno.backend.views import live
from tokendyno.backend.views.live import Heads
from tokendyno.ui.components.html import component
from tokendyno.ui.errors import refusal
from tokendyno.ui.live.pace import PACE
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


class Query(Pull):
    """A pull, with a cursor (tokens, samples, characters) for each arm.

    anew     what viewers share may be too old
    wait_ms  how long the answer may wait for the next tokens, so that they are seen as soon as they are there
    """

    cur: Annotated[list[tuple[int, int, int]], msgspec.Meta(max_length=MAX_ARMS)]
    anew: bool = False
    wait_ms: Annotated[int, msgspec.Meta(ge=0, le=MOST_WAIT_MS)] = 0


Question = TypeVar("Question", bound=Pull)
QueueLine = Callable[[Run], str]
"""Where a run stands in the queue, in words; "" where it does not wait."""


def answer_pull(
    runs: RunLog, question: object, kind: type[Question], delta: Callable[[Question, Run], live.Pulled]
) -> str:
    """The JSON text for one pull. `question`: what a browser asked, of which nothing is trusted; `delta`: what lies
    past its cursor, or InputError."""
    try:
        query = msgspec.convert(question, kind, strict=True)
        run = runs.get(query.run) if RUN_ID.fullmatch(query.run) else None
        if run is None:
            return refusal("There is no such run here.")
        pulled = delta(query, run)
    except msgspec.ValidationError as error:
        return refusal(f"This pull cannot be read: {error}.")
    except InputError as error:
        return refusal(str(error))
    pulled = msgspec.structs.replace(pulled, trouble=runs.trouble, every_ms=PACE.every_ms())
    return msgspec.json.encode(pulled).decode()


def answer(
    runs: RunLog, question: object, queue: QueueLine = lambda run: "", heads: Heads[live.Head] | None = None
) -> str:
    """The answer to a pull of a run of one prompt. `heads`: what viewers share."""

    def delta(query: Query, run: Run) -> live.Delta:
        if query.wait_ms and WAITING.acquire(blocking=False):
            try:
                PACE.waited(run.wait(query.wait_ms / 1000))
            finally:
                WAITING.release()
        cursors = query.cur + [(0, 0, 0)] * (len(run.arms) - len(query.cur))
        shared = None if query.anew else heads
        return live.delta(run, query.version, cursors, run.elapsed_s, queue(run), runs, shared)

    return answer_pull(runs, question, Query, delta)


def live_panel(bench: Bench, elem_id: str = "live", replays: bool = False) -> gr.HTML:
    """The panel of runs of one prompt. It fires the event "finished" when its run has ended. `replays`: it
    plays each run again as soon as it has it, and leaves the address alone."""
    heads, queue = Heads[live.Head](), queue_line(bench)

    def pull(question: object) -> str:
        return answer(bench.runs, question, queue, heads)

    settings: dict[str, Any] = panel_settings() | {"most": MAX_TOKENS_PER_PULL, "replays": replays}
    settings |= {"links": not replays, "acts": bench.limits.runs and not replays}
    return component(
        "live",
        TEMPLATE,
        elem_id,
        classes=["td-panel"],
        functions=[pull],
        plots=True,
        script_from="live" if replays else "",
        **settings,
    )


def queue_line(bench: Bench) -> QueueLine:
    """What the panels say of a queued run."""

    def line(run: Run) -> str:
        place = bench.place(run.id) if run.status == "queued" else None
        return place_text(place) if place else ""

    return line


def place_text(place: QueuePlace) -> str:
    """A place in the queue: how many runs come first, and about how long they take where that can be estimated."""
    if not place.ahead:
        return "its turn is next"
    runs = "1 run comes first" if place.ahead == 1 else f"{place.ahead} runs come first"
    if place.wait_s is None:
        return f"{runs}; how long they take is not known yet"
    if place.wait_s < 90:
        step = 1 if place.wait_s < 10 else 10
        return f"{runs}; about {max(1, round(place.wait_s / step)) * step} s to go"
    return f"{runs}; about {round(place.wait_s / 60):,} min to go"
