"""Says that the results on the page belong to other settings than those that are shown, and dims them.

The value names the run that it was computed for: an answer that arrives after another run was started says nothing.
"""

from collections.abc import Sequence
from dataclasses import replace

import gradio as gr
import msgspec

from backend.arms.parse import make_config
from backend.config import ArmRequest, Request
from backend.errors import InputError
from backend.runs.run import Run
from ui.compare.request import read_request

_SHOW = """
const show = () => {
  const { run, text } = props.value ? JSON.parse(props.value) : { run: '', text: '' };
  const panel = document.querySelector('#live .td-live'), shown = panel && panel.dataset.run;
  element.querySelector('.td-line-text').textContent = run && run === shown ? text : '';
};
show();
watch('value', show);
window.addEventListener('tokendyno-run', show);
"""

UNREADABLE = "These results are of the run before: what is set now cannot run yet."


class Stale(msgspec.Struct):
    """The value of the component: what is said of that run; "" while the page shows its settings."""

    run: str
    text: str


def stale_line() -> gr.HTML:
    """The component; its value is what `stale` returns."""
    return gr.HTML(
        value="",
        html_template='<div class="td-line-text" role="status"></div>',
        js_on_load=_SHOW,
        apply_default_css=False,
        elem_id="stale",
        elem_classes=["td-line"],
    )


def stale(run: Run | None, values: Sequence[object]) -> str:
    """The component's value for a run that is shown and the values of the controls."""
    if run is None:
        return ""
    try:
        text = _sentence(changed(run.request, read_request(values, need_prompt=False)))
    except InputError:
        text = UNREADABLE
    return msgspec.json.encode(Stale(run.id, text)).decode()


def changed(ran: Request, wanted: Request) -> list[str]:
    """What was edited since that run. Repeats do not count: Measure asks for more of them."""
    found = [] if ran.model == wanted.model else ["the model"]
    if ran.quality is not None:  # its texts are no workload that the page shows
        return found + _changed_arms(ran, wanted)
    was, now = ran.workload, replace(wanted.workload, repeats=ran.workload.repeats)
    if was.prompt != now.prompt:
        found.append("the prompt")
    if replace(was, prompt="?") != replace(now, prompt="?"):
        found.append("the workload")
    return found + _changed_arms(ran, wanted)


def _changed_arms(ran: Request, wanted: Request) -> list[str]:
    arms = {arm.name: _chosen(arm) for arm in ran.arms}
    return [f"arm {arm.name}" for arm in wanted.arms if arms.get(arm.name, _chosen(arm)) != _chosen(arm)]


def _chosen(arm: ArmRequest) -> tuple[tuple[str, str], ...]:
    """The choices without defaults."""
    return make_config("", arm.choices).choices


def _sentence(parts: Sequence[str]) -> str:
    if not parts:
        return ""
    what = " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
    return f"You changed {what} since this run. Press Run for new results."
