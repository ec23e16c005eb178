"""A line of plain text on the page: what it says reaches the document as a text node, never as HTML."""

import gradio as gr

_SHOW = """
const show = () => {
  element.querySelector('.td-words').textContent = props.value || '';
};
show();
watch('value', show);
"""


def words(elem_id: str, text: str = "", role: str = "", classes: str = "") -> gr.HTML:
    """A line that an event may change by its value. `role` "alert" is read out at once, "status" when it suits."""
    attribute = f' role="{role}"' if role else ""
    return gr.HTML(
        value=text,
        html_template=f'<div class="td-words"{attribute}></div>',
        js_on_load=_SHOW,
        apply_default_css=False,
        elem_id=elem_id,
        elem_classes=["td-line", *classes.split()],
    )
