"""Components of the page: their markup with the script that fills it, and lines of plain text, whose values reach the
document as text nodes, never as HTML."""

from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from tokendyno.ui.components.scripts import PLOTLY_JS, bundle, script_of


def component(
    script: str,
    template: str,
    elem_id: str,
    value: str = "",
    *,
    classes: Sequence[str] = (),
    functions: Sequence[Callable[..., str]] = (),
    plots: bool = False,
    script_from: str = "",
    **settings: Any,
) -> gr.HTML:
    """A component with the script of that name (`ui/bundle/`). `functions`: of the server, which the script may call;
    `plots`: it draws with plotly.js, from a static file by a relative address, for proxies' sub-paths; `script_from`:
    id of a component of the page that has this script; `settings`: what the script is told besides its value."""
    if plots:
        gr.set_static_paths([PLOTLY_JS])
        settings["plotly"] = f"gradio_api/file={PLOTLY_JS}"
    return gr.HTML(
        value=value,
        html_template=template,
        js_on_load=script_of(script_from, **settings) if script_from else bundle(script, **settings),
        server_functions=list(functions) or None,
        apply_default_css=False,
        elem_id=elem_id,
        elem_classes=list(classes),
    )


def text_line(elem_id: str, text: str = "", role: str = "", classes: str = "", into: str = "") -> gr.HTML:
    """A line whose value an event may change. A screen reader announces `role` "alert" at once, "status" politely.
    `into`: a selector of the element of another component that shows it."""
    attribute = f' role="{role}"' if role else ""
    template = f'<div class="td-line-text"{attribute}></div>'
    return component("text_line", template, elem_id, text, classes=["td-line", *classes.split()], into=into)
