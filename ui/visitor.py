"""Who sent an event, and what of a run is the visitor's: the gate (`tokendyno.ui.gate`) notes it in every request."""

from typing import Any

import gradio as gr

from tokendyno.backend.hosting.visitor import Visitor
from tokendyno.backend.runs.run import Run

KEY = "tokendyno.visitor"
"""Where the gate leaves the visitor in a request's scope."""

Buttons = tuple[bool, bool]
IDLE, BUSY = (True, False), (False, True)
"""Whether Run and Stop can be pressed: BUSY during a run of one's own."""

REFUSED = "Not stopped: this run has already ended, or another visitor started it."


def visitor_of(request: gr.Request) -> Visitor:
    """Who sent this event. LookupError for a request that did not come through the gate: there is no default.

    Gradio hands a component's server function the request of the web framework itself."""
    inner: Any = request.request if isinstance(request, gr.Request) else request
    found: object = inner.scope.get(KEY) if inner is not None else None
    if not isinstance(found, Visitor):
        raise LookupError("an event came past the gate, so that its visitor is unknown")
    return found


def buttons_of(run: Run | None, request: gr.Request) -> Buttons:
    """What a visitor may press while this run is shown."""
    if run is None or run.ended or run.created.owner != visitor_of(request).owner:
        return IDLE
    return BUSY
