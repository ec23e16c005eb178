"""The live panel: an HTML component whose value is a run's id, and the one function that its JavaScript calls.

The browser pulls what lies past its cursor, at its own pace. A late viewer, a reload, a lost connection and a replay
are therefore all the same read; no viewer holds a queue slot, and the server keeps no state for one.
"""

import re
from pathlib import Path
from typing import Annotated

import gradio as gr
import msgspec
import plotly

from backend.runs.log import RunLog
from backend.runs.run import MAX_TOKENS_PER_PULL
from backend.runs.statistics import MIN_SAMPLES
from backend.views import live
from ui.components.queue_line import QueueLine, no_queue
from ui.live.charts import CHARTS
from ui.live.pace import PACE

SCRIPTS = (
    "dom", "run_line", "series", "decimate", "windows", "chart_data", "annotations", "download", "readout", "pointer",
    "fresh", "charts", "distribution", "pull", "texts", "race", "phases", "verdict", "quality", "tiles", "details",
    "ledger", "remarks", "step_time", "panel",
)  # fmt: skip
"""Files of ui/live/js, in the order in which they are joined into one function body."""

FOLDER = Path(__file__).resolve().parent / "js"
PLOTLY_JS = Path(plotly.__file__).resolve().parent / "package_data" / "plotly.min.js"
RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
MAX_ARMS = 8

TEMPLATE = """
<p class="td-empty-run"></p>
<div class="td-failure" role="alert"></div>
<div class="td-verdict">
  <h2 class="td-sentence" role="status"></h2>
  <p class="td-head">
    <span class="td-status" role="status" aria-live="polite"></span><span class="td-message"></span>
    <span class="td-title"></span><span class="td-note"></span>
    <span class="td-basis"></span><span class="td-gate"></span>
    <span class="td-digest" hidden></span><span class="td-interference"></span>
    <span class="td-connection" role="status"></span>
    <span class="td-link" hidden>
      <a class="td-permalink" title="Permanent link to this run"></a>
      <button type="button" class="td-copy">Copy link</button><span class="td-copied" role="status"></span>
    </span>
  </p>
  <p class="td-unkept" role="status"></p>
</div>
<h2 class="td-hidden td-figures-title">Figures</h2>
<div class="td-tiles" role="group" aria-label="Figures of the arms, and what B's are against A's"></div>
<div class="td-progress"></div>
<section class="td-quality" aria-label="Quality on given texts" hidden></section>
<div class="td-texts"></div>
<p class="td-tools">
    <button type="button" class="td-race" title="Play both arms again, as fast as they were" disabled>▶ Race</button>
    <select class="td-speed" aria-label="Speed of the race" disabled><option value="0.25">¼ ×</option>
    <option value="1" selected>1 ×</option><option value="2">2 ×</option><option value="4">4 ×</option>
    <option value="16">16 ×</option></select>
    <input type="range" class="td-scrub" min="0" max="1" step="any" value="0" disabled aria-label="Moment of the run">
    <span class="td-clock"></span>
    <span class="td-axis" role="group" aria-label="Horizontal axis of the charts">
      <button type="button" data-axis="token" aria-pressed="true">Tokens</button>
      <button type="button" data-axis="second" aria-pressed="false">Seconds</button>
    </span>
    <button type="button" class="td-whole" hidden>Whole run</button>
    <button type="button" class="td-outliers" aria-pressed="false" hidden>Show outliers in full</button>
    <button type="button" class="td-distribution" aria-haspopup="dialog">Latency distribution</button>
    <button type="button" class="td-csv" title="Every token and memory sample of this run">CSV</button>
    <button type="button" class="td-png" title="The charts as a picture">PNG</button>
</p>
<div class="td-stage">
  <div class="td-plot" role="group" aria-label="Charts of token latency, memory and KV cache for arms A and B;
 the figures above give the same data as numbers"></div>
  <div class="td-fresh" aria-hidden="true"></div>
  <div class="td-moments" aria-hidden="true"></div>
  <p class="td-noted" aria-hidden="true" hidden></p>
</div>
<p class="td-annotations" role="group" aria-label="Annotations on the latency chart"></p>
<section class="td-parts" aria-label="Where the time of a step goes" hidden></section>
<dialog class="td-spread" aria-labelledby="td-spread-title">
  <header><h2 id="td-spread-title">Distribution of latencies</h2>
  <button type="button" class="td-close" aria-label="Close">×</button></header>
  <p class="td-spread-what"></p>
  <div class="td-spread-plot" aria-hidden="true"></div>
  <p class="td-spread-said"></p>
  <div class="td-spread-rows" tabindex="0" role="region" aria-label="Latencies as numbers"><table></table></div>
</dialog>
<div class="td-ledger"></div>
<details class="td-details"><summary>More figures</summary><div class="td-rows"></div></details>
<ul class="td-remarks" aria-label="Remarks"></ul>
"""


class Query(msgspec.Struct, forbid_unknown_fields=True):
    """A pull: the run, the version of the head that the browser has, a cursor (tokens, samples, characters) per arm."""

    run: Annotated[str, msgspec.Meta(max_length=64)]
    version: int
    cur: Annotated[list[tuple[int, int, int]], msgspec.Meta(max_length=MAX_ARMS)]


class Refusal(msgspec.Struct):
    """The answer to a pull that cannot be served."""

    error: str


def answer(runs: RunLog, question: object, queue: QueueLine = no_queue) -> str:
    """The JSON text for one pull. It is the browser's only access to a run, so nothing of `question` is trusted.
    `queue`: where a run stands."""
    try:
        query = msgspec.convert(question, Query, strict=True)
    except msgspec.ValidationError as error:
        return _refusal(f"This pull cannot be read: {error}.")
    if not RUN_ID.fullmatch(query.run) or (run := runs.get(query.run)) is None:
        return _refusal("There is no such run here.")
    cursors = query.cur + [(0, 0, 0)] * (len(run.arms) - len(query.cur))
    place = queue(run.id) if run.status == "queued" else ""
    delta: live.Delta = live.delta(run, query.version, cursors, run.elapsed_s, place, runs)
    delta = msgspec.structs.replace(delta, trouble=runs.trouble, every_ms=PACE.every_ms())
    return msgspec.json.encode(delta).decode()


def _refusal(sentence: str) -> str:
    return msgspec.json.encode(Refusal(sentence)).decode()


def script() -> str:
    """The panel's JavaScript: all files of `SCRIPTS`, joined."""
    return "\n".join((FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)


def live_panel(
    runs: RunLog, first: str = "", queue: QueueLine = no_queue, elem_id: str = "live", replays: bool = False
) -> gr.HTML:
    """The panel. It fires the event "finished" when its run has ended. `first`: what a visitor without a run is told of
    the arms; `replays`: it plays each run again as soon as it has it, and leaves the address alone.

    plotly.js comes from the plotly package (4.1; Gradio ships an older one) as a static file, by a relative address,
    so that it is also found behind a proxy's sub-path.
    """
    gr.set_static_paths([PLOTLY_JS])

    def pull(question: object) -> str:
        return answer(runs, question, queue)

    return gr.HTML(
        value="",
        html_template=TEMPLATE,
        js_on_load=script(),
        head=None if replays else f'<script src="gradio_api/file={PLOTLY_JS}"></script>',
        server_functions=[pull],
        apply_default_css=False,
        elem_id=elem_id,
        replays=replays,
        elem_classes=["td-panel"],
        charts=[chart.as_json() for chart in CHARTS],
        most=MAX_TOKENS_PER_PULL,
        first=first,
        fewest={str(share): count for share, count in MIN_SAMPLES.items()},
    )
