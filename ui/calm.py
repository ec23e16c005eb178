"""Errors of event handlers, in words: bad input says what to do, anything else stays calm, and nothing is lost.

Gradio would show an exception's text as it is, or a bare "Error". Here the page keeps all that was typed, one
sentence appears in its message line, and a traceback goes to the server's log alone.
"""

import functools
import logging
import traceback
from collections.abc import Callable
from typing import Any

import gradio as gr

from backend.errors import InputError
from backend.redact import redact

log = logging.getLogger("tokendyno.page")

UNEXPECTED = (
    "Something went wrong on the server. Nothing of what you typed is lost; try again. The server's log says more."
)

Updates = dict[Any, Any]


def calmly(message: gr.HTML) -> Callable[[Callable[..., Updates]], Callable[..., Updates]]:
    """Decorates a handler that returns {component: update}; on an error only `message` is updated."""

    def decorate(handler: Callable[..., Updates]) -> Callable[..., Updates]:
        @functools.wraps(handler)
        def safe(*args: Any) -> Updates:
            try:
                return handler(*args)
            except InputError as error:
                return {message: redact(str(error))}
            except gr.Error:
                raise
            except Exception:
                log.error("a page event failed\n%s", redact(traceback.format_exc()))
                return {message: UNEXPECTED}

        return safe

    return decorate
