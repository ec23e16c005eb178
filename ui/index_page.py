"""The page's HTML on its way to the browser: it opens in the room that was asked for, has titles of its own, and says
what a preview of its link shows.

Gradio's template names Gradio in what a link to the page shows, and its settings open one tab, whatever the address
says: another one was shown a moment later.
"""

import html
import re
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote

import msgspec
from starlette.types import Scope

from tokendyno.ui.picture import HEIGHT, WIDTH

NAME, WHAT = (
    "tokendyno",
    "A dynamometer for Transformers inference: what each optimization does, with proof that it was in effect.",
)

FIRST = b'"selected":"compare"'
"""Where Gradio's settings say which tab is open at first (`gr.Tabs(selected="compare")`)."""

TITLE = b'"title":"tokendyno"'
"""Likewise the title that Gradio gives the browser's tab (`gr.Blocks(title="tokendyno")`)."""

_SETTINGS = b"window.gradio_config"
_PREVIEW = re.compile(rb'<meta\s+(?:property|name)="(?:og|twitter):[^>]*>\s*')
_ROOT = re.compile(rb'"root":"(https?://[^"\\]*)"')
_HEAD = b"<head>"
MAX_ADDRESS = 2_000


class Opened(NamedTuple):
    """What a request opens.

    page   the room
    title  of what is shown there, such as a run; "" for the room's own
    what   says it in a sentence or a few
    run    id of the run whose picture shows it; "" without one
    """

    page: str
    title: str = ""
    what: str = WHAT
    run: str = ""


def finish_index(opens: Callable[[Scope], Opened], scope: Scope, whole: bytes) -> bytes:
    """The HTML of the page for this request; any other is left as it is."""
    before, settings, rest = whole.partition(_SETTINGS)
    if not settings:
        return whole
    opened = opens(scope)
    title = f"{opened.title or opened.page.capitalize()} - {NAME}"
    root = _ROOT.search(rest)
    address = root[1].decode().rstrip("/") if root else ""
    told = {"og:title": title, "og:description": opened.what, "og:type": "website", "og:url": address}
    if address and scope["query_string"]:
        told["og:url"] += "/?" + scope["query_string"].decode("latin-1")[:MAX_ADDRESS]
    if address and opened.run:
        told["og:image"] = f"{address}/files/{quote(opened.run)}.png"
        told |= {"og:image:width": str(WIDTH), "og:image:height": str(HEIGHT), "og:image:alt": opened.what}
    card = "summary_large_image" if "og:image" in told else "summary"
    head = f"<title>{html.escape(title)}</title>" + "".join(
        f'<meta property="{name}" content="{html.escape(text)}">' for name, text in told.items() if text
    )
    head += f'<meta name="description" content="{html.escape(opened.what)}"><meta name="twitter:card" content="{card}">'
    before = _PREVIEW.sub(b"", before).replace(_HEAD, _HEAD + head.encode(), 1)
    rest = rest.replace(TITLE, b'"title":' + msgspec.json.encode(title).replace(b"<", b"\\u003c"), 1)
    return before + settings + rest.replace(FIRST, f'"selected":"{opened.page}"'.encode(), 1)
