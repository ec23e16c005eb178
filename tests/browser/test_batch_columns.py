"""The Batching page's JavaScript, run in Chromium: columns by cursor, bars, reasons, slots and pages."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tests.browser.chart_page import ChartPage
from tests.support.batches import batch_arm, batch_created, paged_events, static_events
from tokendyno.backend.messages import BatchEvent, RequestEnds, Waits
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.batch_live import batch_delta
from tokendyno.backend.views.batch_tiles import WAIT_TEXTS

PURE = tuple(f"ui/batching/js/{name}.js" for name in ("columns", "requests", "scales"))
"""Modules whose functions need no document."""

FOLD = """(replies, pages) => {
  const batch = emptyBatch();
  for (const reply of replies) appendBatch(batch, reply, pages);
  return batch;
}"""


class BatchPage(ChartPage):
    """A blank page with the pure part of the JavaScript."""

    def of(self, replies: Sequence[Any], pages: Sequence[Any], expression: str, *given: Any) -> Any:
        """The value of a JavaScript function of the folded columns, and of what is given."""
        return self.call(
            f"(replies, pages, ...given) => ({expression})(({FOLD})(replies, pages), ...given)", replies, pages, *given
        )

    def says(self, replies: Sequence[Any], request: int, arrival: float, now: float) -> str:
        """What is said of a request at a moment."""
        describe = "(batch, r, at, now, waits) => describeRequest(r, batch.rows.get(r), at, now, waits)"
        found: str = self.of(replies, [], describe, request, arrival, now, WAIT_TEXTS)
        return found


def replies(events: Sequence[BatchEvent], cursor: Sequence[int] = (0, 0, 0, 0)) -> Any:
    """An arm's part of what the server sends to a viewer at that cursor."""
    run = Run(batch_created())
    for record in batch_arm("A", events):
        run.append(record)
    delta = batch_delta(run, 0, [tuple(cursor), (0, 0, 0, 0)], 1.0)
    return msgspec.json.decode(msgspec.json.encode(delta))["lanes"][0]


PAGES = [{"attention": "full_attention", "layers": 2, "page_tokens": 4, "page_bytes": 100, "pages": 6}]
BARS = """(batch, request, arrival, now) =>
  pieces(batch.rows.get(request), arrival, now).map(one => [one.kind, one.from, one.to])"""


@pytest.fixture(scope="module")
def js(browser: Any) -> Any:
    page = browser.new_context().new_page()
    yield BatchPage(page, PURE)
    page.context.close()


def test_static_batches_show_padding_and_slots_that_idle(js: BatchPage) -> None:
    arm = [replies(static_events())]
    assert js.of(arm, [], BARS, 0, 0.0, 2.5) == [["prefill", 0, 0.5], ["decode", 0.5, 1.5]]
    padded = js.of(arm, [], BARS, 1, 0.0, 2.5)  # 2 of 6 positions are its prompt, 4 are padding
    assert padded == [["padding", 0, pytest.approx(1 / 3)], ["prefill", pytest.approx(1 / 3), 0.5], ["idle", 0.5, 1.5]]
    assert js.of(arm, [], BARS, 2, 0.5, 2.5) == [["queued", 0.5, 1.5], ["prefill", 1.5, 2.0], ["decode", 2.0, 2.5]]
    assert js.says(arm, 1, 0.0, 2.5) == (
        "Request 2: began at once, prompt of 2 tokens and 4 of padding, first token after 0.50 s, 1 token, "
        "done after 0.50 s, its slot then idle for 1.00 s"
    )
    assert "waited 1.00 s for the static batch before it" in js.says(arm, 2, 0.5, 2.5)


def test_overlapping_replies_count_nothing_twice(js: BatchPage) -> None:
    events = paged_events()
    whole, later = replies(events), replies(events, (2, 0, 3, 1))
    all_of = "(batch) => [batch.steps, [...batch.rows], batch.moves, batch.tokens, batchCursor(batch)]"
    once = js.of([whole], PAGES, all_of)
    assert js.of([whole, later, whole], PAGES, all_of) == once and once[-1] == [4, 1, 6, 3]
    gap = js.of([later], PAGES, "(batch) => batchCursor(batch)")
    assert gap == [0, 1, 0, 0], "steps, moves and ends before the first gap are not taken"
    assert js.of([whole], [], "(batch) => batchCursor(batch)[2]") == 0, "no page moves before the pages are known"


def test_a_waiting_request_tells_the_reason_that_held_last(js: BatchPage) -> None:
    waits = Waits([0.5, 0.8, 1.2], [2, 2, 2], ["requests", "tokens", "pages"])
    arm = [replies([waits])]
    reason = "(batch, at) => reasonAt(batch.rows.get(2), at)"
    assert [js.of(arm, [], reason, at) for at in (0.5, 1.0, 9.0)] == ["requests", "tokens", "pages"]
    assert js.says(arm, 2, 0.5, 1.0) == "Request 3: waits for the token budget of a step"
    assert js.says(arm, 1, 5.0, 1.0) == "Request 2: arrives at 5.00 s"
    cancelled = [replies([waits, RequestEnds([2], [1.5], ["cancelled"], [""])])]
    assert js.says(cancelled, 2, 0.5, 1.5).startswith("Request 3: cancelled while it waited for the cap on requests")
    assert js.of(cancelled, [], BARS, 2, 0.5, 9.0) == [["queued", 0.5, 1.5]], "not past its end"


def test_the_map_of_pages_follows_each_change_of_hands(js: BatchPage) -> None:
    arm = [replies(paged_events())]
    owners = "(batch, lines, width) => [...pageMap(batch, 600, lines, width, 2)]"
    free = -1
    assert js.of(arm, PAGES, owners, 6, 4) == [
        *[0, 0, 1, free, free, free],  # step 0
        *[0, 0, free, 2, free, free],  # request 1 gave its page back
        *[0, 0, free, 2, free, free],
        *[free, 0, free, 2, free, free],
    ]
    # two pages a line: free only when neither is held
    assert js.of(arm, PAGES, owners, 3, 4)[-3:] == [0, 2, free]
