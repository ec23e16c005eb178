"""The Batching page's own JavaScript in a blank page: columns go in, what would be drawn and said comes out."""

from collections.abc import Sequence
from typing import Any

import msgspec

from tests.support.batches import batch_arm, batch_created
from tokendyno.backend.messages import BatchEvent
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.batch_live import batch_delta
from tokendyno.backend.views.batch_tiles import WAIT_TEXTS
from tokendyno.ui.batching.panel import FOLDER
from tokendyno.ui.live.sources import FOLDER as SHARED

PURE = (SHARED / "dom.js", FOLDER / "columns.js", FOLDER / "requests.js", FOLDER / "scales.js")
"""Files whose functions need no document (of dom.js only the formats are used)."""

FOLD = """(replies, pages) => {
  const batch = emptyBatch();
  for (const reply of replies) appendBatch(batch, reply, pages);
  return batch;
}"""


class BatchPage:
    """A blank page with the pure part of the JavaScript."""

    def __init__(self, page: Any) -> None:
        self._page = page
        for file in PURE:
            page.add_script_tag(content=file.read_text(encoding="utf-8"))

    def of(self, replies: Sequence[Any], pages: Sequence[Any], expression: str, *given: Any) -> Any:
        """The value of a JavaScript function of the folded columns, and of what is given."""
        call = f"([replies, pages, given]) => ({expression})(({FOLD})(replies, pages), ...given)"
        return self._page.evaluate(call, [list(replies), list(pages), list(given)])

    def call(self, expression: str, *given: Any) -> Any:
        """The value of a JavaScript function."""
        return self._page.evaluate(f"given => ({expression})(...given)", list(given))

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
