"""How the page's events go to the server."""

from typing import NamedTuple

import pytest

from backend.executors import open_bench
from backend.hosting.limits import LIMITS
from ui.page import build

BY_TURNS = "sharding"
"""What is answered one at a time, and so through the queue: transformers splits a model, for seconds."""


class Event(NamedTuple):
    """An event. `asks`: something of the server; `turns`: what it takes turns with."""

    on: list[str]
    queue: bool | None
    turns: str
    mode: str
    private: bool
    asks: bool


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    """Every event of the page."""
    bench = open_bench(tmp_path_factory.mktemp("page") / "history.sqlite", None, LIMITS["local"], "subprocess")
    try:
        found = build(bench).fns.values()
    finally:
        bench.close()
    return [
        Event(
            [kind for _, kind in one.targets], one.queue, one.concurrency_id, one.trigger_mode,
            one.api_visibility == "private", one.fn is not None,
        )
        for one in found
    ]  # fmt: skip


def test_no_press_goes_through_gradios_queue(events: list[Event]) -> None:
    """Its client opens no stream of answers while it believes the last one open: a press whose request arrived just
    after the server had closed that stream was answered to nobody, until something else was pressed."""
    asked = [event for event in events if event.private and event.asks]
    queued = [event for event in asked if event.queue is not False]
    assert len(asked) > 40
    assert [event.turns for event in queued] == [BY_TURNS, BY_TURNS]


def test_what_starts_a_run_waits_for_the_answer_of_the_press_before(events: list[Event]) -> None:
    """With Gradio's own mode a press on Run is dropped while the one before, with bad input, is being answered."""
    assert [event.mode for event in events if "submit" in event.on] == ["always_last"]
