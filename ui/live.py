"""The live panel: one HTML component whose value is a run's id, and the one function that its browser side calls.

The browser pulls what lies past its cursor, as often as suits it. So a late viewer, a reload, a cut line and a
replay are all the same read, no viewer holds a queue slot, and the server keeps nothing for a viewer.
"""

import re
import time
from pathlib import Path
from typing import Annotated

import gradio as gr
import msgspec
import plotly

from backend import view
from backend.runlog import RunLog
from backend.runs import MAX_TOKENS_A_PULL
from ui.charts import PANELS

SCRIPTS = (
    "dom", "series", "decimate", "pull", "marks", "charts", "texts", "phases", "tiles", "details", "ledger", "remarks",
    "panel",
)  # fmt: skip
"""Files of ui/js, in the order in which they are joined into one function body."""

FOLDER = Path(__file__).resolve().parent / "js"
PLOTLY_JS = Path(plotly.__file__).resolve().parent / "package_data" / "plotly.min.js"
RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
MOST_LANES = 8

TEMPLATE = """
<div class="td-head">
  <span class="td-status" role="status" aria-live="polite"></span><span class="td-message"></span>
  <span class="td-title"></span><span class="td-note"></span>
  <span class="td-quiet"></span>
  <span class="td-link" hidden>
    <a class="td-permalink" title="This run, for a bookmark or a colleague"></a>
    <button type="button" class="td-copy">Copy link</button><span class="td-copied" role="status"></span>
  </span>
</div>
<div class="td-failure" role="alert"></div>
<div class="td-trouble" role="status"></div>
<div class="td-ways"></div>
<div class="td-stage">
  <div class="td-plot" role="img" aria-label="Charts of token latency, memory and KV cache for the arms A and B;
 the figures below say the same in numbers"></div>
  <p class="td-empty-run"></p>
</div>
<p class="td-marks" aria-label="Marks on the latency chart"></p>
<p class="td-compared"><span class="td-verdict-text" role="status"></span><span class="td-spoiled"></span></p>
<div class="td-tiles" aria-label="Figures of each arm"></div>
<details class="td-details"><summary>More figures</summary><div class="td-rows"></div></details>
<div class="td-texts"></div>
<div class="td-ledger"></div>
<ul class="td-remarks" aria-label="Remarks"></ul>
"""


class Query(msgspec.Struct, forbid_unknown_fields=True):
    """A pull: which run, the version of the head that is there, and a cursor (tokens, samples, characters) a lane."""

    run: Annotated[str, msgspec.Meta(max_length=64)]
    version: int
    cur: Annotated[list[tuple[int, int, int]], msgspec.Meta(max_length=MOST_LANES)]


def answer(runs: RunLog, question: object) -> str:
    """The JSON text for one pull. It is the browser's only door to a run, so nothing of `question` is trusted."""
    try:
        query = msgspec.convert(question, Query, strict=True)
    except msgspec.ValidationError as error:
        return _refusal(f"This pull cannot be read: {error}.")
    if not RUN_ID.fullmatch(query.run) or (run := runs.get(query.run)) is None:
        return _refusal("There is no such run here.")
    cursors = query.cur + [(0, 0, 0)] * (len(run.lanes) - len(query.cur))
    delta: view.Delta = run.delta(query.version, cursors, time.time() - run.created.created)
    return msgspec.json.encode(delta).decode()


def _refusal(sentence: str) -> str:
    return msgspec.json.encode({"error": sentence}).decode()


def script() -> str:
    """The panel's JavaScript, joined."""
    return "\n".join((FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)


def live_panel(runs: RunLog) -> gr.HTML:
    """The panel. It announces the end of a run with the event "finished".

    plotly.js comes from the plotly package (4.1; Gradio brings an older one) as a static file, by a relative
    address, so that it is found behind a proxy's sub-path too.
    """
    gr.set_static_paths([PLOTLY_JS])

    def pull(question: object) -> str:
        return answer(runs, question)

    panels = [
        panel._asdict()
        | {"traces": [trace._asdict() for trace in panel.traces]}
        | {"encoder": panel.encoder._asdict() if panel.encoder else None}
        for panel in PANELS
    ]

    return gr.HTML(
        value="",
        html_template=TEMPLATE,
        js_on_load=script(),
        head=f'<script src="gradio_api/file={PLOTLY_JS}"></script>',
        server_functions=[pull],
        apply_default_css=False,
        elem_id="live",
        panels=panels,
        most=MAX_TOKENS_A_PULL,
    )
