"""Folds the axes that matter less behind a button.

The leading axes of this kind of model and whatever was set are always shown. The rest is hidden by a style rule, so
every control stays in the document: Tab and events reach it as soon as the button is pressed.
"""

from collections.abc import Mapping

import gradio as gr
import msgspec

from backend.models import ModelFacts
from backend.optimizations import prompt_axes

_SHOW = """
const button = element.querySelector('.td-more');
const rule = element.querySelector('style');
let open = false;
const show = () => {
  const { arm, folded } = JSON.parse(props.value);
  const hidden = folded.map((name) => `#axis-${arm}-${name}:not(:focus-within)`).join(', ');
  rule.textContent = open || !hidden ? '' : `${hidden} { display: none !important; }`;
  button.textContent = open ? 'Fewer options \u25b4' : `More options (${folded.length}) \u25be`;
  button.setAttribute('aria-expanded', String(open));
  button.hidden = !folded.length;
};
button.addEventListener('click', () => { open = !open; show(); });
show();
watch('value', show);
"""


class Fold(msgspec.Struct):
    """The folded axes of an arm, by name."""

    arm: str
    folded: list[str]


def fold_button(arm: str, choices: Mapping[str, str], facts: ModelFacts | None) -> gr.HTML:
    """The component; its value is what `folded` returns. Its template hides the axes before any script has run."""
    names = folded_axes(choices, facts)
    hidden = ", ".join(f"#axis-{arm}-{name}" for name in names) or "#none"
    return gr.HTML(
        value=folded(arm, choices, facts),
        html_template="<style>" + hidden + " { display: none !important; }</style>"
        f'<button type="button" class="td-more" aria-expanded="false" aria-controls="axes-{arm}">'
        f"More options ({len(names)}) \u25be</button>",
        js_on_load=_SHOW,
        apply_default_css=False,
        elem_id=f"fold-{arm}",
        elem_classes=["td-fold"],
    )


def folded(arm: str, choices: Mapping[str, str], facts: ModelFacts | None) -> str:
    """The component's value. `arm`: "a" or "b", as in the ids of the controls."""
    return msgspec.json.encode(Fold(arm, folded_axes(choices, facts))).decode()


def folded_axes(choices: Mapping[str, str], facts: ModelFacts | None) -> list[str]:
    """Axes that are folded: those that do not lead or make no difference for this model, unless they were set."""
    return [
        axis.name
        for axis in prompt_axes()
        if choices.get(axis.name, axis.default) == axis.default
        and not (axis.leading and (facts is None or axis.matters(facts)))
    ]
