"""The frame of the page: name, machine and start-up messages above, one tab per page below; Worth has none that is
seen."""

import html
import itertools
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

import gradio as gr
import msgspec
from starlette.requests import Request
from starlette.types import Scope

from tokendyno.backend import hardware
from tokendyno.backend.ablation.courses import Courses, is_advice
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.fit.device import THIS
from tokendyno.backend.recordings.recorded_runs import shipped_id
from tokendyno.backend.stories import first_story, stories
from tokendyno.backend.views.share import shared
from tokendyno.ui.address import PAGES, address_bar, enter, read_address, tell
from tokendyno.ui.advise.arrive import advise_on_compare, advise_on_fit
from tokendyno.ui.advise.page import AdviseControls, advise_page
from tokendyno.ui.api import endpoints
from tokendyno.ui.batching.page import batching_page, wanted_run
from tokendyno.ui.claims.page import ClaimsControls, claims_page
from tokendyno.ui.compare.page import compare_page
from tokendyno.ui.components.events import QUIET
from tokendyno.ui.components.html import text_line
from tokendyno.ui.components.scripts import bundle
from tokendyno.ui.components.summary import machine_line
from tokendyno.ui.errors import Updates
from tokendyno.ui.fit.page import FitControls, fit_page, run_this
from tokendyno.ui.fit.request import write_amounts
from tokendyno.ui.history.page import history_page
from tokendyno.ui.live.panel import RUN_ID
from tokendyno.ui.picture import HEIGHT, WIDTH
from tokendyno.ui.stories.page import StoryControls, run_here, stories_page
from tokendyno.ui.visitor import visitor_of
from tokendyno.ui.worth.page import worth_page


def build(bench: Bench, logins: bool = False, mcp: bool = False) -> gr.Blocks:
    """The whole page over a bench, which may be started later. `logins`: visitors have names; `mcp`: tools too."""
    demo: gr.Blocks
    with gr.Blocks(title="tokendyno", fill_width=True, analytics_enabled=False, elem_id="tokendyno") as demo:
        endpoints(bench, queued=not mcp)  # first, since Gradio gives a name to whoever takes it first
        _masthead(demo, logins)
        startup = text_line("startup", " ".join(bench.messages), role="status", classes="td-startup")
        demo.load(lambda: " ".join(bench.messages), None, startup, **QUIET)
        address, courses = address_bar(), Courses(bench)
        with gr.Tabs(elem_id="pages", selected="compare") as pages:
            with gr.Tab("Stories", id="stories") as stories_tab:
                story = stories_page(bench)
            with gr.Tab("Compare", id="compare", render_children=True) as compare_tab:
                compare = compare_page(bench, courses)
            with gr.Tab("Advise", id="advise", render_children=True) as advise_tab:
                advise = advise_page(bench, courses)
            with gr.Tab("Batching", id="batching", render_children=True) as batching_tab:
                batching = batching_page(bench)
            with gr.Tab("Fit", id="fit", render_children=True) as fit_tab:
                fit = fit_page(bench, fit_tab, address)
            with gr.Tab("History", id="history", render_children=True) as history_tab:
                history_page(bench)
            with gr.Tab("Claims", id="claims", render_children=True) as claims_tab:
                claims = claims_page(claims_tab)
            # on the right, where it takes no room (css/pages.css): on the left it would come into the menu of a phone
            with gr.Tab("Worth", id="worth", alignment="right", render_children=True) as worth_tab:
                worth_page(bench, courses, compare, worth_tab)

        tabs = [compare_tab, advise_tab, batching_tab, fit_tab, stories_tab, history_tab, claims_tab, worth_tab]
        _tell_address(tabs, [compare.model, advise.fields.model, batching.model, fit.model], fit)
        run_this(fit, compare, pages)
        advise_on_fit(fit, advise, pages)
        advise_on_compare(compare, advise, pages)
        run_here(bench, story, compare, batching, pages)
        _open_visit(bench, demo, address, story, advise, fit, claims)
    return demo


def _masthead(demo: gr.Blocks, logins: bool) -> None:
    """Name and machine, and with `logins` who is logged in, with the link to the button that ends the login."""
    with gr.Row(elem_id="masthead"):
        brand = "<h1>tokendyno</h1><p>a dynamometer for Transformers inference</p>"
        gr.HTML(brand, elem_id="brand", js_on_load=bundle("page"))
        text_line("device", machine_line(hardware.detect()), classes="td-device")
        if logins:
            account = text_line("account", classes="td-account")
            gr.HTML('<a href="logout">Log out</a>', elem_id="logout", elem_classes=["td-account"])

            def user_name(request: gr.Request) -> str:
                return visitor_of(request).name

            demo.load(user_name, None, account, **QUIET)


def _tell_address(tabs: Sequence[gr.Tab], models: Sequence[gr.Dropdown], fit: FitControls) -> None:
    """The address names the page, and the model that is chosen there, which goes along to the next page that has one;
    on Fit also the device and the amounts. `tabs`: in the order of `address.PAGES`; `models`: of the first of them."""
    for page, tab, model in itertools.zip_longest(PAGES, tabs, models):
        here = [model] if model else None
        tab.select(None, models, here, js=enter(page), **QUIET)
        if here:
            model.change(None, here, None, js=tell(page, "model"), **QUIET)
    changes, values = [fit.gpu.change, fit.gpus.change, fit.amounts.input], [fit.gpu, fit.gpus, fit.amounts]
    gr.on(changes, None, values, None, js=tell("fit", "gpu", "gpus", "amounts"), **QUIET)


def _open_visit(
    bench: Bench,
    demo: gr.Blocks,
    address: gr.HTML,
    story: StoryControls,
    advise: AdviseControls,
    fit: FitControls,
    claims: ClaimsControls,
) -> None:
    """Show what the address of a visit asks for. Runs and courses are found by the pages that show them."""

    def opened(request: gr.Request) -> Updates:
        query = read_address(request)
        page = opening_page(bench, request)
        bench.expect_run()  # the first page has a button that starts one, and so have most others
        updates: Updates = {address: page}  # `index_page` has opened its tab; whoever was faster has another by now
        updates |= claims.show() if page == "claims" else {}
        updates |= {advise.fields.model: query.model} if query.model else {}
        return updates | story.open(query.story) | _fit_values(fit, request)

    def first_fit(request: gr.Request, page: object, *values: Any) -> Updates:
        return fit.show(request, *values) if page == "fit" else {fit.message: gr.skip()}

    outputs = [address, story.view, story.panel, story.many, claims.message, claims.result, advise.fields.model]
    loaded = demo.load(opened, None, [*outputs, fit.model, fit.gpu, fit.gpus, fit.amounts], **QUIET)
    loaded.then(first_fit, [address, fit.model, fit.gpu, fit.amounts, fit.gpus], fit.outputs, **QUIET)


def opening_page(bench: Bench, request: Any) -> str:
    """The page that a visit opens: by its address, its story, ablation, sweep or run, else where a visit begins."""
    address = read_address(request)
    if address.page or address.story:
        return address.page or "stories"
    worth = request.query_params.get("worth") or ""
    if request.query_params.get("advice") or is_advice(bench, worth):
        return "advise"
    if worth or request.query_params.get("sweep"):
        return "worth"
    linked = bool(request.query_params.get("run")) and wanted_run(bench, request) is not None
    return "batching" if linked else first_page(bench, request)


def index_page(bench: Bench) -> Callable[[Scope, bytes], bytes]:
    """What finishes Gradio's HTML: by a request, with the tab that it opens and the preview of its link."""

    def opens(scope: Scope) -> Opened:
        request: Any = Request(scope)
        page, run_id = opening_page(bench, request), request.query_params.get("run") or ""
        if page in ("compare", "batching") and RUN_ID.fullmatch(run_id):
            with suppress(InputError):  # a history that cannot be read is said on the page
                run = bench.runs.get(run_id)
                if run is not None:
                    preview = shared(run, bench.runs)
                    return Opened(page, preview.title, preview.description, run.id if run.ended else "")
        if page == "stories" and stories():
            name = read_address(request).story
            story = next((story for story in stories() if story.name == name), first_story(bench.machine().device))
            recorded = shipped_id(story.recording)
            finding = f"{story.found.partition('. ')[0].rstrip('.')}."
            return Opened(page, story.title, finding, recorded) if name == story.name else Opened(page, run=recorded)
        return Opened(page)

    return partial(finish_index, opens)


def first_page(bench: Bench, request: gr.Request) -> str:
    """Where a visit begins whose address names no page: with a story where there is no run of this visitor."""
    if any(request.query_params.get(key) for key in ("run", "model", "a", "b")):
        return "compare"
    return "stories" if bench.runs.newest(visitor_of(request).owner) is None else "compare"


def _fit_values(fit: FitControls, request: gr.Request) -> Updates:
    """What the address says of the Fit page."""
    query = read_address(request)
    updates: Updates = {fit.model: query.model} if query.model else {}
    if query.page != "fit":
        return updates
    return updates | {
        fit.gpu: query.gpu or THIS,
        fit.gpus: query.gpus or 1,
        fit.amounts: write_amounts(query.context, query.batch or 1),
    }


# --- the page's index ----------------------------------------------------------------------------

# Gradio's template names Gradio in the preview of a link to the page, and its settings open the same tab whatever the
# address says: the right one would be shown a moment later. So the HTML is finished on its way to the browser.

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

    page   its name, as in the address
    title  of what it shows, such as a run; "" for the page's own
    what   the same in a sentence or a few
    run    id of the run whose picture shows it; "" without one
    """

    page: str
    title: str = ""
    what: str = WHAT
    run: str = ""


def finish_index(opens: Callable[[Scope], Opened], scope: Scope, page: bytes) -> bytes:
    """The HTML of the page for this request; any other is left as it is."""
    before, settings, rest = page.partition(_SETTINGS)
    if not settings:
        return page
    opened = opens(scope)
    title = f"{opened.title or opened.page.capitalize()} - {NAME}"
    root = _ROOT.search(rest)
    address = root[1].decode().rstrip("/") if root else ""
    preview = {"og:title": title, "og:description": opened.what, "og:type": "website", "og:url": address}
    if address and scope["query_string"]:
        preview["og:url"] += "/?" + scope["query_string"].decode("latin-1")[:MAX_ADDRESS]
    if address and opened.run:
        preview["og:image"] = f"{address}/files/{quote(opened.run)}.png"
        preview |= {"og:image:width": str(WIDTH), "og:image:height": str(HEIGHT), "og:image:alt": opened.what}
    card = "summary_large_image" if "og:image" in preview else "summary"
    head = f"<title>{html.escape(title)}</title>" + "".join(
        f'<meta property="{name}" content="{html.escape(text)}">' for name, text in preview.items() if text
    )
    head += f'<meta name="description" content="{html.escape(opened.what)}"><meta name="twitter:card" content="{card}">'
    before = _PREVIEW.sub(b"", before).replace(_HEAD, _HEAD + head.encode(), 1)
    rest = rest.replace(TITLE, b'"title":' + msgspec.json.encode(title).replace(b"<", b"\\u003c"), 1)
    return before + settings + rest.replace(FIRST, f'"selected":"{opened.page}"'.encode(), 1)
