"""Closes the event loops that Gradio creates, and leaves open, when a page is built outside of one."""

import asyncio

_created: list[asyncio.AbstractEventLoop] = []
_new_event_loop = asyncio.new_event_loop


def _remembered_loop() -> asyncio.AbstractEventLoop:
    loop = _new_event_loop()
    _created.append(loop)
    return loop


asyncio.new_event_loop = _remembered_loop


def pytest_unconfigure() -> None:
    """After the last test."""
    for loop in _created:
        loop.close()
