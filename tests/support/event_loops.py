"""Closes the event loops that Gradio creates, and leaves open, when a page is built outside of one; runs coroutines
where another loop may be running already."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

_created: list[asyncio.AbstractEventLoop] = []
_new_event_loop = asyncio.new_event_loop


def _remembered_loop() -> asyncio.AbstractEventLoop:
    loop = _new_event_loop()
    _created.append(loop)
    return loop


asyncio.new_event_loop = _remembered_loop


def finished(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns. It runs in a thread of its own: in this one Playwright's loop runs, once a browser test
    has come before."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def pytest_unconfigure() -> None:
    """After the last test."""
    for loop in _created:
        loop.close()
