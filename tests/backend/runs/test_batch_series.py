"""Many requests read by cursor: pulls fit together, and nothing is told twice or left out."""

import msgspec
import pytest

from tests.support.batches import batch_arm, batch_created, paged_events, static_events
from tokendyno.backend.messages import DECODE, BatchEvent, PageMoves, PagesAllocated, RequestEnds, Steps, Waits
from tokendyno.backend.runs import batch_series
from tokendyno.backend.runs.batch_series import BatchColumns, BatchSeries, columns_past
from tokendyno.backend.runs.records import Ended
from tokendyno.backend.runs.run import Run

NOTHING = [0, 0, 0, 0]
LISTS = {
    "first": ("begin_s", "end_s", "padding", "waiting", "part_ends"),
    "first_part": ("request", "kind", "tokens"),
    "first_wait": ("wait_s", "wait_request", "wait_reason"),
    "first_move": ("move_step", "move_group", "move_page", "move_request"),
    "first_end": ("ended", "ended_s", "reasons", "texts"),
}
"""Columns by the field that tells at which index they begin."""


def served() -> Run:
    run = Run(batch_created())
    for record in (*batch_arm("A", static_events()), *batch_arm("B", paged_events())):
        run.append(record)
    return run


def ends(columns: BatchColumns) -> list[int]:
    return [columns.end_step, columns.end_wait, columns.end_move, columns.end_end]


@pytest.mark.parametrize("arm", [0, 1])
@pytest.mark.parametrize("cursor", [[-1, -1, -1, -1], [1, 0, 2, 1], [2, 1, 1, 3], [4, 0, 6, 2], [99, 99, 99, 99]])
def test_a_pull_brings_what_lies_past_its_cursor(arm: int, cursor: list[int]) -> None:
    batch = served().snapshot().arms["AB"[arm]].batch
    (whole, _), (rest, _) = columns_past(batch, NOTHING), columns_past(batch, cursor)
    for begin, names in LISTS.items():
        for name in names:
            assert getattr(rest, name) == getattr(whole, name)[getattr(rest, begin) :], name
    inside = [min(max(at, 0), end) for at, end in zip(cursor, ends(whole), strict=True)]
    assert [rest.first, rest.first_wait, rest.first_move, rest.first_end] == inside and ends(rest) == ends(whole)


def test_pulls_of_bounded_size_fit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    run = served()
    run.append(Ended(3.0, "done"))
    whole = run.past_batch(0, [NOTHING] * 2)
    assert whole.ended and [len(columns.begin_s) for columns in whole.columns] == [5, 4]
    for name, most in (("STEPS", 2), ("MOVES", 4), ("ENDS", 1)):
        monkeypatch.setattr(batch_series, f"MAX_{name}_PER_PULL", most)
    cursors, joined = [NOTHING] * 2, [dict[str, list[object]](), dict[str, list[object]]()]
    pulls, ended = 0, False
    while not ended:
        past = run.past_batch(whole.version, cursors)
        assert past.snapshot is None, "nothing new"
        for columns, into in zip(past.columns, joined, strict=True):
            for name in (name for names in LISTS.values() for name in names):
                into.setdefault(name, []).extend(getattr(columns, name))
        cursors, ended, pulls = [ends(columns) for columns in past.columns], past.ended, pulls + 1
    assert pulls == 3
    for columns, into in zip(whole.columns, joined, strict=True):
        assert into == {name: getattr(columns, name) for name in into}


def test_later_events_leave_a_copy_alone() -> None:
    run = Run(batch_created())
    records = batch_arm("A", static_events())
    for record in records[:4]:  # all steps, no end of a request
        run.append(record)
    before = run.snapshot().arms["A"].batch
    row = before.requests[0].copy()
    for record in records[4:]:
        run.append(record)
    assert before.done == 0 and before.requests[0] == row and before.requests[0].end_s is None
    assert run.snapshot().arms["A"].batch.requests[0].end_s == 1.5


def test_steps_that_do_not_continue_the_series_are_refused() -> None:
    run = served()
    steps = static_events()[1]
    with pytest.raises(ValueError, match="out of order"):
        run.snapshot().arms["A"].batch.take(msgspec.structs.replace(steps, first=4))


def test_a_prompt_that_is_processed_again_counts_once() -> None:
    batch = served().snapshot().arms["B"].batch
    assert [batch.requests[i].prompt_tokens for i in range(3)] == [6, 2, 4], "request 2 came in two chunks"
    assert [batch.requests[i].start_s for i in range(3)] == [0.0, 0.0, 0.5]
    assert [len(parts) for parts in batch.parts_of_steps()] == [2, 2, 2, 1]


def test_a_decoded_token_is_no_part_of_the_prompt() -> None:
    """Also where it is the first thing that is known of a request."""
    batch = BatchSeries()
    batch.take(Steps(0, [0.0], [1.0], [1], [0], [0], request=[0], kind=[DECODE], tokens=[7], made=[5]))
    assert (batch.requests[0].prompt_tokens, batch.requests[0].ids) == (0, [5])


@pytest.mark.parametrize(
    "event",
    [
        Waits([0.5, 0.6], [2, 1], ["batch"]),
        RequestEnds([1, 0], [0.5], ["length", "length"], ["one", "zero"]),
        RequestEnds([1], [0.5], ["length"], ["one", "zero"]),
        Steps(0, [0.0], [1.0, 2.0], [0, 0], [0], [0], [], [], [], []),
        Steps(0, [0.0, 1.0], [1.0, 2.0], [0], [0], [0], [], [], [], []),
    ],
)
def test_columns_of_unequal_length_are_refused(event: BatchEvent) -> None:
    """As a file that was made elsewhere may have them."""
    with pytest.raises(ValueError, match="zip"):
        BatchSeries().take(event)


def test_without_pages_none_are_held() -> None:
    static, paged = (served().snapshot().arms[name].batch for name in "AB")
    assert static.pages_in_use() == [] and paged.pages_in_use() == [[3, 3, 3, 2]]


def test_pages_of_each_group_are_counted_apart() -> None:
    batch = BatchSeries()
    for event in paged_events():
        if isinstance(event, Steps):
            batch.take(event)
        if isinstance(event, PagesAllocated):
            batch.take(PagesAllocated(event.groups * 2, 600, 0))
    batch.take(PageMoves([0, 1, 2, 3], [0, 1, 1, 1], [0, 0, 1, 0], [0, 0, 0, -1]))
    assert batch.pages_in_use() == [[1, 1, 1, 1], [0, 1, 2, 1]]


def test_what_ended_is_pulled_with_its_time_its_reason_and_its_text() -> None:
    columns, _ = columns_past(served().snapshot().arms["A"].batch, [0, 0, 0, 1])
    assert (columns.ended, columns.ended_s, columns.texts) == ([0, 2], [1.5, 2.5], ["zero", "two"])
    assert columns.reasons == ["length", "length"]


def test_a_request_waits_for_each_reason_once() -> None:
    batch = BatchSeries()
    batch.take(Waits([0.1, 0.2, 0.3], [0, 0, 0], ["batch", "requests", "batch"]))
    assert batch.requests[0].waited_for == ["batch", "requests"] and len(batch.wait_s) == 3
