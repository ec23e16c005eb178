"""Gradio makes an event loop whenever a page is built outside of one, and leaves it open. Here they are closed."""

import asyncio

_made: list[asyncio.AbstractEventLoop] = []
_new_event_loop = asyncio.new_event_loop


def _remembered_loop() -> asyncio.AbstractEventLoop:
    loop = _new_event_loop()
    _made.append(loop)
    return loop


asyncio.new_event_loop = _remembered_loop


def pytest_unconfigure() -> None:
    """After the last test."""
    for loop in _made:
        loop.close()
