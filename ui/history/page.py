"""The History page: runs that are found again, and arms of any of them side by side.

One component: the browser asks (`ui/history/answer.py`) and draws; what it shows is in the address. The charts are
those of the live panel, over the columns that the same pull returns.
"""

import gradio as gr

from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.history.pins import FEWEST, MOST
from tokendyno.backend.optimizations import all_axes
from tokendyno.ui.components.html import component
from tokendyno.ui.history.answer import answer
from tokendyno.ui.live.charts import CHARTS
from tokendyno.ui.live.panel import answer as live_answer
from tokendyno.ui.live.sources import VIEWS
from tokendyno.ui.visitor import visitor_of

TEMPLATE = f"""
<h2 class="td-hidden">Runs</h2>
<form class="td-search" role="search" aria-label="Runs" autocomplete="off">
  <label class="td-field td-field-q"><span>Search</span><input type="search" name="q" maxlength="200"
    placeholder="words of model, choices, prompt, verdict, name, note"></label>
  <label class="td-field"><span>Model</span><input type="search" name="of" maxlength="200"
    placeholder="part of its name"></label>
  <label class="td-field"><span>Axis</span><select name="axis"><option value="">any</option></select></label>
  <label class="td-field"><span>Machine</span><input type="search" name="machine" maxlength="200"
    placeholder="such as H200"></label>
  <label class="td-field"><span>From</span><input type="date" name="since"></label>
  <label class="td-field"><span>To</span><input type="date" name="until"></label>
  <button type="button" class="td-clear">Clear</button>
</form>
<p class="td-failure" role="alert"></p>
<p class="td-unkept" role="status"></p>
<div class="td-undo" role="status"></div>
<div class="td-tray" role="group" aria-label="Pinned arms" hidden></div>
<div class="td-list">
  <p class="td-take-in" hidden><button type="button" class="td-import">Import a file</button>
  <input type="file" class="td-import-file" accept=".dyno" aria-label="A recording" hidden></p>
  <p class="td-count" role="status"></p>
  <p class="td-empty-run"></p>
  <div class="td-runs" role="region" tabindex="0" aria-label="Runs, the newest first" hidden></div>
  <nav class="td-pages" aria-label="Pages of runs" hidden></nav>
</div>
<section class="td-beside" aria-label="Pinned arms side by side" hidden>
  <p class="td-beside-tools"><button type="button" class="td-back">Back to the runs</button></p>
  <ul class="td-said" aria-label="What else differs"></ul>
  <p class="td-tools">
{VIEWS}    <button type="button" class="td-png" title="The charts as a picture">PNG</button>
    <span class="td-drawn" role="status"></span>
  </p>
  <div class="td-stage">
    <div class="td-plot" role="group" aria-label="Charts of token latency, memory and KV cache of the pinned arms; the
 table below gives the same data as numbers"></div>
    <div class="td-fresh" aria-hidden="true"></div>
    <div class="td-moments" aria-hidden="true"></div>
    <p class="td-noted" aria-hidden="true" hidden></p>
  </div>
  <div class="td-front"></div>
  <div class="td-side" role="region" tabindex="0" aria-label="Pinned arms, figure by figure"></div>
</section>
"""


def history_page(bench: Bench) -> None:
    """Build the page inside the current tab. It asks for runs when it is seen."""

    def ask(question: object, request: gr.Request) -> str:
        return answer(bench, question, visitor_of(request))

    def pull(question: object) -> str:
        return live_answer(bench.runs, question)

    component(
        "history",
        TEMPLATE,
        "history",
        classes=["td-panel"],
        functions=[ask, pull],
        plots=True,
        charts=[chart.as_json() for chart in CHARTS],
        axes=[
            {"name": axis.name, "title": axis.title, "choices": [(one.name, one.title) for one in axis.choices]}
            for axis in all_axes()
        ],
        fewest=FEWEST,
        most=MOST,
    )
