"""How the page's events go to the server."""

import inspect
from typing import NamedTuple

import pytest

from tokendyno.backend.executors import open_bench
from tokendyno.backend.hosting.limits import LIMITS
from tokendyno.ui.page import build

BY_TURNS = "sharding"
"""What is answered one at a time, and so through the queue: transformers splits a model, for seconds."""


class Event(NamedTuple):
    """An event. `name`: of its handler, if it asks the server; `on`: components and what happens to them; `turns`: what
    it takes turns with."""

    name: str
    on: list[tuple[int | None, str]]
    queue: bool | None
    turns: str
    mode: str
    private: bool


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    """Every event of the page."""
    bench = open_bench(tmp_path_factory.mktemp("page") / "history.sqlite", None, LIMITS["local"], "subprocess")
    try:
        functions = build(bench).fns.values()
    finally:
        bench.close()
    return [
        Event(
            getattr(inspect.unwrap(function.fn), "__name__", "a part of one") if function.fn else "",
            function.targets,
            function.queue,
            function.concurrency_id,
            function.trigger_mode,
            function.api_visibility == "private",
        )
        for function in functions
    ]


def test_no_press_goes_through_gradios_queue(events: list[Event]) -> None:
    """Its client opens no stream of answers while it believes the last one open: a press whose request arrived just
    after the server had closed that stream was answered to nobody, until something else was pressed."""
    handled = [event for event in events if event.private and event.name]
    queued = [event for event in handled if event.queue is not False]
    assert len(handled) > 40
    assert [event.turns for event in queued] == [BY_TURNS, BY_TURNS]


def test_what_starts_a_run_waits_for_the_answer_of_the_press_before(events: list[Event]) -> None:
    """With Gradio's own mode a press on Run is dropped while the one before, with bad input, is being answered."""
    runs = [event for event in events if any(kind == "submit" for _, kind in event.on)]
    assert [(event.name, event.mode) for event in runs] == [("run", "always_last")]
