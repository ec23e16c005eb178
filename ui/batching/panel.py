"""The panel of many requests: an HTML component whose value is a run's id, as `tokendyno.ui.live.panel`."""

from typing import Annotated

import gradio as gr
import msgspec

from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.runs.batch_series import MAX_ENDS_PER_PULL, MAX_MOVES_PER_PULL, MAX_STEPS_PER_PULL
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.batch_live import BatchDelta, BatchHead, batch_delta
from tokendyno.backend.views.glossary import TERMS
from tokendyno.backend.views.live import Heads
from tokendyno.ui.components.html import component
from tokendyno.ui.live.panel import MAX_ARMS, Pull, QueueLine, answer_pull, queue_line
from tokendyno.ui.live.sources import FILE_LINKS, RUN_LINK, VERDICT

TEMPLATE = f"""{VERDICT}  <p class="td-why"></p>
  <p class="td-head">
    <span class="td-status" role="status" aria-live="polite"></span><span class="td-message"></span>
    <span class="td-title"></span><span class="td-note"></span><span class="td-traffic"></span>
    <span class="td-basis"></span><span class="td-digest" hidden></span><span class="td-pace"></span>
    <span class="td-connection" role="status"></span>
{RUN_LINK}{FILE_LINKS}  </p>
  <p class="td-unasked"></p>
  <p class="td-unkept" role="status"></p>
</div>
<h2 class="td-hidden td-figures-title">Figures</h2>
<div class="td-tiles" role="group" aria-label="Figures of the arms, and what B's are against A's"></div>
<div class="td-progress"></div>
<div class="td-lanes-frame"><div class="td-lanes"></div><div class="td-tip" aria-hidden="true" hidden></div></div>
<div class="td-chosen"></div>
<details class="td-requests"><summary>Table of requests</summary><div class="td-request-rows" tabindex="0"
 role="region" aria-label="Table of requests"></div></details>
<section class="td-parts td-buckets" aria-label="One compile per bucket" hidden></section>
<div class="td-ledger"></div>
<details class="td-details"><summary>More figures</summary><div class="td-rows"></div></details>
<ul class="td-remarks" aria-label="Remarks"></ul>
"""


class BatchQuery(Pull):
    """A pull, with a cursor (steps, waits, moves of pages, ends of requests) for each arm."""

    cur: Annotated[list[tuple[int, int, int, int]], msgspec.Meta(max_length=MAX_ARMS)]


def answer(
    runs: RunLog, question: object, queue: QueueLine = lambda run: "", heads: Heads[BatchHead] | None = None
) -> str:
    """The answer to a pull. `heads`: what viewers share."""

    def delta(query: BatchQuery, run: Run) -> BatchDelta:
        if run.request.traffic is None:
            raise InputError("This run has one prompt. The page Compare shows it.")
        cursors = query.cur + [(0, 0, 0, 0)] * (len(run.arms) - len(query.cur))
        return batch_delta(run, query.version, cursors, run.elapsed_s, queue(run), heads)

    return answer_pull(runs, question, BatchQuery, delta)


def batch_panel(bench: Bench, elem_id: str = "batch-live", recorded: bool = False) -> gr.HTML:
    """The panel. It fires the event "finished" when its run has ended. `recorded`: of a story, whose run is not the
    page's: it leaves the address alone."""
    heads, queue = Heads[BatchHead](), queue_line(bench)

    def pull(question: object) -> str:
        return answer(bench.runs, question, queue, heads)

    return component(
        "batching",
        TEMPLATE,
        elem_id,
        classes=["td-panel"],
        functions=[pull],
        script_from="batch-live" if recorded else "",
        terms=TERMS,
        most=[MAX_STEPS_PER_PULL, MAX_MOVES_PER_PULL, MAX_ENDS_PER_PULL],
        links=not recorded,
        acts=bench.limits.runs and not recorded,
    )
