"""Turns what goes wrong while the page is answered into one sentence there, and a traceback in the log where it was not
foreseen.

Of an event handler Gradio would show the exception's text as it is, or a bare "Error". Here everything typed into the
page is kept.
"""

import functools
import logging
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

import gradio as gr
import msgspec

from tokendyno.backend.errors import InputError
from tokendyno.backend.redact import redact

log = logging.getLogger("tokendyno.page")

UNEXPECTED = "Something went wrong on the server. Your input is kept: try again. Details are in the server's log."

Updates = dict[Any, Any]
T = TypeVar("T")


def log_unexpected(log: logging.Logger, what: str) -> None:
    """Log the exception that is being handled, with its traceback, without secrets."""
    log.error("%s\n%s", what, redact(traceback.format_exc()))


def refusal(sentence: str) -> str:
    """The answer, as JSON, to a pull or a question of a component that cannot be served."""
    return msgspec.json.encode({"error": sentence}).decode()


def read_event(event: gr.EventData, kind: type[T], what: str) -> T:
    """What the browser sent with an event, which may be anything; InputError with `what` if it is something else."""
    try:
        return msgspec.convert(event._data, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"{what} cannot be read. Reload the page.") from error


def shows_errors(message: gr.HTML) -> Callable[[Callable[..., Updates]], Callable[..., Updates]]:
    """Decorator of handlers that return {component: update}; on an error only `message` is updated.

    `message` must be among the event's outputs. It also stands for a handler with nothing to update, since Gradio
    answers an empty dict with HTTP 500.
    """

    def decorate(handler: Callable[..., Updates]) -> Callable[..., Updates]:
        @functools.wraps(handler)
        def safe(*args: Any) -> Updates:
            try:
                return handler(*args) or {message: gr.skip()}
            except InputError as error:
                return {message: redact(str(error))}
            except Exception:
                log_unexpected(log, "a page event failed")
                return {message: UNEXPECTED}

        return safe

    return decorate
