"""What the live panel is made of: its markup and its charts, without Gradio, for reports too."""

from typing import Any

import msgspec

from tokendyno.backend.runs.statistics import MIN_SAMPLES
from tokendyno.backend.views.glossary import TERMS
from tokendyno.ui.live.charts import CHARTS

RUN_LINK = """    <span class="td-link" hidden>
      <a class="td-permalink" title="Permanent link to this run"></a>
      <button type="button" class="td-copy">Copy link</button>
      <a class="td-kept" title="This run in the history: name it, or pin its arms">History</a>
      <span class="td-copied" role="status"></span>
    </span>
"""
"""Where a run is found again: its link, and its place in the history."""

FILE_LINKS = """    <span class="td-files" hidden>
      <a class="td-file-json" download title="Figures, ledger and series">JSON</a>
      <a class="td-file-html" download title="One HTML file that opens offline">Report</a>
      <a class="td-file-dyno" download title="The whole run as one file, which tokendyno reads again">File</a>
      <button type="button" class="td-copy-as" data-as="md"
        title="Copy verdict, figures, machine and command as Markdown">Markdown</button>
      <button type="button" class="td-copy-as" data-as="png" title="Copy the verdict as a picture">Picture</button>
      <button type="button" class="td-copy-as" data-as="sh" title="Copy what repeats this run">Command</button>
      <span class="td-copied-as" role="status"></span>
    </span>
"""
"""The run as a file of the server, and what can be copied of it (`ui/js/page.js`)."""

VERDICT = """
<p class="td-empty-run"></p>
<div class="td-failure" role="alert"></div>
<div class="td-run-bar" role="group" aria-label="How far the run is" hidden></div>
<div class="td-verdict">
  <h2 class="td-sentence" role="status"></h2>
  <div class="td-answer" hidden></div>
  <p class="td-sure"></p>
"""
"""Where every panel begins."""

VIEWS = """    <span class="td-axis" role="group" aria-label="Horizontal axis of the charts">
      <button type="button" data-axis="token" aria-pressed="true">Tokens</button>
      <button type="button" data-axis="second" aria-pressed="false">Seconds</button>
    </span>
    <button type="button" class="td-whole" hidden>Whole run</button>
    <button type="button" class="td-outliers" aria-pressed="false" title="Show in full what the charts cut off"
      disabled>Outliers</button>
"""
"""How charts are looked at."""

TEMPLATE = f"""{VERDICT}  <p class="td-head">
    <span class="td-status" role="status" aria-live="polite"></span><span class="td-message"></span>
    <span class="td-title"></span><span class="td-note"></span>
    <span class="td-basis"></span>
    <span class="td-digest" hidden></span><span class="td-interference"></span>
    <span class="td-connection" role="status"></span>
{RUN_LINK}  </p>
  <p class="td-pays"></p>
  <p class="td-unasked"></p>
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
{VIEWS}    <button type="button" class="td-distribution" aria-haspopup="dialog">Latency distribution</button>
    <button type="button" class="td-present" aria-haspopup="dialog"
      title="One figure and one chart on the whole screen (P)">Present</button>
    <button type="button" class="td-csv" title="Every token and memory sample of the runs in the charts">CSV</button>
    <button type="button" class="td-png" title="The charts as a picture">PNG</button>
{FILE_LINKS}</p>
<div class="td-stage">
  <div class="td-plot" role="group" aria-label="Charts of token latency, memory and KV cache for arms A and B;
 the figures on this page give the same data as numbers"></div>
  <div class="td-fresh" aria-hidden="true"></div>
  <div class="td-moments" aria-hidden="true"></div>
  <p class="td-noted" aria-hidden="true" hidden></p>
</div>
<p class="td-annotations" role="group" aria-label="Annotations on the latency chart"></p>
<section class="td-parts" aria-label="Where the time of a step goes" hidden></section>
<section class="td-parts td-start" aria-label="Where the time of the start goes" hidden></section>
<section class="td-parts td-crossing" aria-label="When waiting pays" hidden></section>
<dialog class="td-spread" aria-labelledby="td-spread-title">
  <header><h2 id="td-spread-title">Distribution of latencies</h2>
  <button type="button" class="td-close" aria-label="Close">×</button></header>
  <p class="td-spread-what"></p>
  <div class="td-spread-plot" aria-hidden="true"></div>
  <p class="td-spread-said"></p>
  <div class="td-spread-rows" tabindex="0" role="region" aria-label="Latencies as numbers"><table></table></div>
</dialog>
<dialog class="td-slide">
  <div class="td-slide-page" tabindex="-1">
    <header><b>tokendyno</b><span class="td-slide-what"></span></header>
    <h2 class="td-slide-title"></h2>
    <div class="td-slide-body">
      <div class="td-slide-said">
        <p class="td-slide-lead"></p><p class="td-slide-figure"></p><p class="td-slide-tail"></p>
        <p class="td-slide-badge"></p><p class="td-slide-claim"></p><p class="td-slide-proof"></p>
      </div>
      <div class="td-slide-chart" aria-hidden="true"></div>
      <div class="td-slide-texts" hidden></div>
    </div>
    <div class="td-slide-bar">
      <button type="button" class="td-slide-back" hidden>◀ <span></span></button>
      <span class="td-slide-place"></span><span class="td-slide-clock"></span>
      <button type="button" class="td-slide-play" hidden><kbd>Space</kbd> <span></span></button>
      <button type="button" class="td-slide-curves" hidden>Chart</button>
      <button type="button" class="td-slide-leave"><kbd>Esc</kbd> Leave</button>
      <button type="button" class="td-slide-on" hidden><span></span> ▶</button>
    </div>
  </div>
</dialog>
<div class="td-ledger"></div>
<details class="td-details"><summary>More figures</summary><p class="td-gate"></p><div class="td-rows"></div></details>
<ul class="td-remarks" aria-label="Remarks"></ul>
"""


def panel_settings() -> dict[str, Any]:
    """What the script reads besides the run: charts, glossary, and from how many values a percentile is shown."""
    return {
        "terms": msgspec.to_builtins(TERMS),
        "charts": [chart.as_json() for chart in CHARTS],
        "fewest": {str(share): count for share, count in MIN_SAMPLES.items()},
    }
