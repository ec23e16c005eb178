"""The page's HTML on its way to the browser: it opens in the room that was asked for, and has titles of its own.

Gradio's template names Gradio in what a link to the page shows, and its settings open one tab, whatever the address
says: another one was shown a moment later.
"""

import html
import re
from collections.abc import Callable

from starlette.types import Scope

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


def title_of(page: str) -> str:
    """The title of a browser's tab while a page is shown."""
    return f"{page.capitalize()} - {NAME}" if page else NAME


def finish_index(opens: Callable[[Scope], str], scope: Scope, whole: bytes) -> bytes:
    """The HTML of the page for this request; any other is left as it is. `opens`: the page that a request opens."""
    before, settings, rest = whole.partition(_SETTINGS)
    if not settings:
        return whole
    page = opens(scope)
    root = _ROOT.search(rest)
    address = root[1].decode() if root else ""
    if address and scope["query_string"]:
        address += "/?" + scope["query_string"].decode("latin-1")[:MAX_ADDRESS]
    told = {"og:title": title_of(page), "og:description": WHAT, "og:type": "website", "og:url": address}
    head = f"<title>{title_of(page)}</title>" + "".join(
        f'<meta property="{name}" content="{html.escape(text)}">' for name, text in told.items() if text
    )
    head += f'<meta name="description" content="{html.escape(WHAT)}"><meta name="twitter:card" content="summary">'
    before = _PREVIEW.sub(b"", before).replace(_HEAD, _HEAD + head.encode(), 1)
    rest = rest.replace(TITLE, f'"title":"{title_of(page)}"'.encode(), 1)
    return before + settings + rest.replace(FIRST, f'"selected":"{page}"'.encode(), 1)
