"""The frame of the page: name, machine and start-up messages above, one tab per page below."""

import gradio as gr

from backend.engine.bench import Bench
from ui.batching.page import batching_page, wanted_run
from ui.compare.page import compare_page, device_line
from ui.components.text_line import text_line
from ui.fit import fit_page
from ui.visitor import visitor_of


def build(bench: Bench, logins: bool = False) -> gr.Blocks:
    """The whole page over a bench, which may be started later. No model is loaded here. `logins`: visitors have names,
    and a way out."""
    demo: gr.Blocks
    with gr.Blocks(title="tokendyno", fill_width=True, analytics_enabled=False, elem_id="tokendyno") as demo:
        with gr.Row(elem_id="masthead"):
            gr.HTML("<h1>tokendyno</h1><p>a dynamometer for Transformers inference</p>", elem_id="brand")
            text_line("device", device_line(), classes="td-device")
            if logins:
                _account(demo)
        startup = text_line("startup", " ".join(bench.messages), role="status", classes="td-startup")
        with gr.Tabs(elem_id="pages") as pages:
            with gr.Tab("Compare", id="compare", render_children=True):
                compare_page(bench)
            with gr.Tab("Batching", id="batching", render_children=True):
                batching_page(bench)
            with gr.Tab("Fit", id="fit") as fit_tab:
                fit_page(bench, fit_tab)

        def page_of(request: gr.Request) -> gr.Tabs:
            linked = bool(request.query_params.get("run")) and wanted_run(bench, request) is not None
            return gr.Tabs(selected="batching" if linked else "compare")

        demo.load(
            lambda: " ".join(bench.messages), None, startup, queue=False, show_progress="hidden",
            api_visibility="private",
        )  # fmt: skip
        demo.load(page_of, None, pages, queue=False, show_progress="hidden", api_visibility="private")
    return demo


def _account(demo: gr.Blocks) -> None:
    """Who is logged in, and the link to the button that ends the login."""
    name = text_line("account", classes="td-account")
    gr.HTML('<a href="logout">Log out</a>', elem_id="logout", elem_classes=["td-account"])

    def named(request: gr.Request) -> str:
        return visitor_of(request).name

    demo.load(named, None, name, queue=False, show_progress="hidden", api_visibility="private")
