"""One model on all pages, and an address that can be reloaded and shared: it names the page, the model, on the Fit page
the device and the amounts, on Compare the arms and the amounts, and on History what is looked for and pinned. A run is
named by `run`, and has its own arms and amounts. (`page` belongs to Gradio, which answers unknown ones with an
error.)

The browser writes the address and carries the model, without the server (`js/address.js`); this module reads it. What
is too long or too private for it, such as a prompt, is kept by the browser's tab for a reload.
"""

from collections.abc import Sequence

import gradio as gr
import msgspec

from tokendyno.backend.config import MAX_BATCH_SIZE
from tokendyno.ui.components.html import component

PAGES = ("compare", "advise", "batching", "fit", "stories", "history", "claims", "worth")
"""The first four have a model of their own; the others leave it as it is."""

MAX_TEXT = 300
MAX_ARM = 2_000
MAX_NUMBER = 1 << 40


class Address(msgspec.Struct, frozen=True):
    """What an address asks for; "" or None where it does not say, or says what no page can show."""

    page: str = ""
    model: str = ""
    gpu: str = ""
    gpus: int | None = None
    context: int | None = None
    batch: int | None = None
    story: str = ""
    a: str = ""
    b: str = ""
    tokens: int | None = None
    batch_size: int | None = None
    prompt_tokens: int | None = None


def read_address(request: gr.Request) -> Address:
    """The address of a visit."""
    query = request.query_params
    page = (query.get("view") or "").casefold()
    return Address(
        page if page in PAGES else "",
        (query.get("model") or "")[:MAX_TEXT],
        (query.get("gpu") or "")[:MAX_TEXT],
        _whole(query.get("gpus"), MAX_NUMBER),
        _whole(query.get("context"), MAX_NUMBER),
        _whole(query.get("batch"), MAX_BATCH_SIZE),
        (query.get("story") or "")[:MAX_TEXT],
        (query.get("a") or "")[:MAX_ARM],
        (query.get("b") or "")[:MAX_ARM],
        _whole(query.get("tokens"), MAX_NUMBER),
        _whole(query.get("batch_size"), MAX_BATCH_SIZE),
        _whole(query.get("prompt_tokens"), MAX_NUMBER),
    )


def asks_for_settings(request: gr.Request, page: str) -> bool:
    """Whether an address opens this page with a model, or Compare with arms, and says nothing of a run."""
    address = read_address(request)
    named = address.model or (page == "compare" and (address.a or address.b))
    return bool(named) and address.page in ("", page) and not request.query_params.get("run")


def _whole(text: str | None, largest: int) -> int | None:
    """A positive whole number of at most `largest`."""
    if not text or len(text) > 15 or not text.isascii() or not text.isdigit():
        return None
    return int(text) if 0 < int(text) <= largest else None


def address_bar() -> gr.HTML:
    """The component behind the address; its value is the page that is shown at first."""
    return component("address", "", "address")


def enter(page: str) -> str:
    """JavaScript of a tab's event: takes the models of all pages, returns the one that this page shows now."""
    return f"(...models) => [window.tokendynoAddress.enter({page!r}, models)]"


def tell(page: str, *names: str) -> str:
    """JavaScript of a change: takes values of a page's controls, which the address then names."""
    return f"(...values) => {{ window.tokendynoAddress.tell({page!r}, {list(names)!r}, values); return []; }}"


def keep(page: str, ids: Sequence[str]) -> str:
    """JavaScript of a change: takes a page's run and values of its controls, which a reload brings back."""
    return f"(...values) => {{ window.tokendynoAddress.draft({page!r}, {ids!r}, values); return []; }}"


def bring_back(page: str, ids: Sequence[str]) -> str:
    """JavaScript of a page that was opened: takes the same values and returns them, after a reload those before it."""
    return f"(...values) => window.tokendynoAddress.bringBack({page!r}, {ids!r}, values)"
