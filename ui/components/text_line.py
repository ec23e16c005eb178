"""A line of plain text on the page: its value reaches the document as a text node, never as HTML."""

import gradio as gr

from tokendyno.ui.components.scripts import bundle


def text_line(elem_id: str, text: str = "", role: str = "", classes: str = "") -> gr.HTML:
    """A line whose value an event may change. A screen reader announces `role` "alert" at once, "status" politely."""
    attribute = f' role="{role}"' if role else ""
    return gr.HTML(
        value=text,
        html_template=f'<div class="td-line-text"{attribute}></div>',
        js_on_load=bundle("text_line"),
        apply_default_css=False,
        elem_id=elem_id,
        elem_classes=["td-line", *classes.split()],
    )
