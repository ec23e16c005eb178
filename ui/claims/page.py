"""The Claims page: what documents claim and what was measured. `tokendyno.backend.claims` decides and words it."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import gradio as gr
import msgspec

from tokendyno.backend.claims.declared import shipped_claims
from tokendyno.backend.claims.results import read_results
from tokendyno.backend.claims.view import claims_document
from tokendyno.ui.components.events import QUIET
from tokendyno.ui.components.html import component, text_line
from tokendyno.ui.errors import Updates, shows_errors

_TEMPLATE = """
<div class="td-claims">
  <p class="td-claims-lead">What guides and documentation say of these optimizations, each claim beside what was
    measured of it. A verdict follows from the interval alone; a claim about GPUs is never decided by a CPU.</p>
  <p class="td-claims-counts" role="group" aria-label="Show claims with one verdict only"></p>
  <div class="td-claims-rows" role="region" tabindex="0" aria-label="Claims and verdicts"></div>
</div>
"""


class ClaimsControls(NamedTuple):
    """What is filled when the page is opened, and from what."""

    result: gr.HTML
    message: gr.HTML
    show: Callable[[], Updates]


def claims_page(opened: gr.Tab) -> ClaimsControls:
    """Build the page inside the current tab. It is filled when the tab is opened; nothing here runs a model."""
    message = text_line("claims-message", role="alert", classes="td-failure")
    result = component("claims", _TEMPLATE, "claims", plots=True)

    show = shows_errors(message)(lambda: {message: "", result: shipped()})
    opened.select(show, None, [message, result], **QUIET)
    return ClaimsControls(result, message, show)


@functools.cache
def shipped() -> str:
    """Every claim with the results that came with the project, as JSON. InputError where such a file is damaged."""
    claims = shipped_claims()
    return msgspec.json.encode(claims_document(claims, read_results(claims.tests))).decode()
