"""A run folded from its records: figures, evidence, and what lies past a cursor."""

import threading
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tests.support.runs import created, finished, tokens
from tokendyno.backend.messages import Progress, Samples, Tokens
from tokendyno.backend.runs.records import ArmEvent, Ended, Expected, Predicted
from tokendyno.backend.runs.run import Run


def test_repeats_add_to_the_statistics_and_leave_the_series_alone() -> None:
    run = Run(created(arms="A", repeats=2))
    run.append(ArmEvent("A", 0, 1.0, tokens(0, 3, "abc")))
    run.append(ArmEvent("A", 0, 1.1, finished("abc")))
    before = run.past(0, [[0, 0, 0]]).columns
    once = run.snapshot().summaries["A"]
    run.append(ArmEvent("A", 1, 2.0, Tokens(0, [0.3, 0.6], [0.3, 0.3], [1, 1], [1, 1], [1, 1], [4, 5], "xy")))
    run.append(ArmEvent("A", 1, 2.1, finished("xy")))
    assert run.past(0, [[0, 0, 0]]).columns == before and run.arms["A"].text == "abc"
    twice = run.snapshot().summaries["A"]
    assert [once.ttft_s, once.latency_mean_s] == pytest.approx([0.1, 0.1])
    assert [twice.ttft_s, twice.latency_mean_s] == pytest.approx([0.03**0.5, 0.03**0.5])
    assert twice.tokens == 3


def test_the_proof_is_that_of_the_last_repeat() -> None:
    run = Run(created(arms="A", repeats=2))
    run.append(ArmEvent("A", 0, 1.0, tokens(0, 3, "abc")))
    run.append(ArmEvent("A", 0, 1.1, msgspec.structs.replace(finished("abc"), findings=[], extra={"energy_j": 1.0})))
    assert run.snapshot().ledgers["A"] == []
    later = msgspec.structs.replace(finished("abc"), extra={"energy_j": 2.0, "step_busy_s": 0.5})
    run.append(ArmEvent("A", 1, 2.1, later))
    assert [row.finding.proof for row in run.snapshot().ledgers["A"] if row.finding.axis == "dtype"] == ["checked"]
    ended = run.arms["A"].finished
    assert ended is not None and ended.extra == {"energy_j": 1.0, "step_busy_s": 0.5}


def repeat(run: Run, arm: str, number: int, step_s: float, reason: Any = "length") -> None:
    times = [1.0, 1.0 + step_s, 1.0 + 2 * step_s]
    run.append(
        ArmEvent(arm, number, 1.0, Tokens(0, times, [1.0, step_s, step_s], [1] * 3, [1] * 3, [1] * 3, [1] * 3, "x"))
    )
    run.append(ArmEvent(arm, number, 1.1, finished("x", reason)))


def test_arms_are_compared_over_the_repeats_that_both_completed() -> None:
    run = Run(created(repeats=4))
    assert run.snapshot().comparison is None
    for number in range(3):
        repeat(run, "A", number, 0.2 + 0.001 * number)
        if number < 2:
            repeat(run, "B", number, 0.1)
    comparison = run.snapshot().comparison
    assert comparison is not None and (comparison.pairs, comparison.outcome) == (2, "b_faster")
    assert comparison.ratio == pytest.approx(2.005, abs=1e-3)
    repeat(run, "B", 2, 0.1, "cancelled")
    assert run.snapshot().comparison == comparison, "a cancelled repeat is not compared"


def test_the_ledger_joins_what_was_requested_planned_and_found() -> None:
    run = Run(created(arms="A"))
    assert run.snapshot().ledgers["A"] == []
    run.append(ArmEvent("A", 0, 1.0, finished("x")))
    row, _ = run.snapshot().ledgers["A"]
    assert (row.requested, row.planned) == ("auto", "bfloat16")
    assert (row.finding.effective, row.status) == ("bfloat16", "verified")


@pytest.mark.parametrize(
    ("checked", "why", "status"),
    [(None, "on a GPU nothing is", "unchecked"), (None, "", "unchecked"), (8.0, "", "verified")],
)
def test_older_records_get_a_row_of_tokens(checked: float | None, why: str, status: str) -> None:
    run = Run(created(arms="A"))
    counts = {} if checked is None else {"checked_tokens": checked, "strange_tokens": 0.0}
    run.append(ArmEvent("A", 0, 1.0, msgspec.structs.replace(finished("x"), extra=counts, unchecked=why)))
    row = run.snapshot().ledgers["A"][-1]
    assert (row.finding.axis, row.status) == ("tokens", status)
    assert not why or row.finding.proof == why


# --- read by cursor -------------------------------------------------------------------------------


def test_columns_begin_at_the_cursor_and_keep_their_names() -> None:
    run = Run(created(arms="A"))
    run.append(ArmEvent("A", 0, 1.0, tokens(0, 5, "abcde")))
    (columns,) = run.past(0, [[2, 0, 4]]).columns
    assert (columns.first, columns.end, columns.first_character, columns.end_character) == (2, 5, 4, 5)
    assert columns.t_s == pytest.approx([0.3, 0.4, 0.5]) and columns.latency_s == [0.1] * 3
    assert (columns.kv_sliding, columns.kv_growing, columns.text) == ([4, 6, 8], [6, 9, 12], "e")
    two = Run(created(arms="AB"))
    assert len(two.past(0, [[0, 0, 0]]).columns) == 1, "who asks for one arm gets one"


def test_a_snapshot_comes_only_with_a_new_version_and_later_records_leave_it_alone() -> None:
    run = Run(created(arms="A"))
    past = run.past(0, [[0, 0, 0]])
    assert past.snapshot is not None and run.past(past.version, [[0, 0, 0]]).snapshot is None
    run.append(ArmEvent("A", 0, 1.0, tokens(0, 3)))
    run.append(Ended(1.0, "done"))
    assert not past.snapshot.ended and past.snapshot.arms["A"].ids == []
    assert run.snapshot().ended and run.snapshot().summaries["A"].tokens == 3


def test_readers_never_see_half_a_record() -> None:
    """Columns of one length, and figures that match them, while another thread appends."""
    run, stop = Run(created(arms="A")), threading.Event()
    torn: list[str] = []

    def read() -> None:
        while not stop.is_set():
            past = run.past(0, [[0, 0, 0]])
            (columns,), now = past.columns, past.snapshot
            series: list[list[Any]] = [columns.t_s, columns.latency_s, columns.kv_sliding, columns.kv_growing]
            if {len(column) for column in series} != {columns.end} or now is None:
                torn.append("columns")
            elif not columns.end == len(now.arms["A"].ids) == len(now.arms["A"].text) == now.summaries["A"].tokens:
                torn.append("snapshot")

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for first in range(0, 900, 3):
        run.append(ArmEvent("A", 0, first / 10, tokens(first, 3, "abc")))
    stop.set()
    for reader in readers:
        reader.join()
    assert torn == [] and run.snapshot().summaries["A"].tokens == 900


# --- predictions ----------------------------------------------------------------------------------


def test_figures_are_refreshed_twice_a_second_while_tokens_stream_and_at_once_by_anything_else() -> None:
    run = Run(created(arms="A"))

    def refreshed(record: ArmEvent) -> bool:
        before = run.version
        run.append(record)
        return run.version > before

    assert refreshed(ArmEvent("A", 0, 0.0, Progress("run", "begin", 0.0)))
    assert refreshed(ArmEvent("A", 0, 1.0, tokens(0, 1)))
    assert not refreshed(ArmEvent("A", 0, 1.4, tokens(1, 1)))
    assert refreshed(ArmEvent("A", 0, 1.5, tokens(2, 1)))
    assert not refreshed(ArmEvent("A", 0, 1.9, tokens(3, 1)))
    assert not refreshed(ArmEvent("A", 0, 1.95, Samples([0.0], [1]))), "the chart reads it by its cursor"
    assert refreshed(ArmEvent("A", 0, 1.96, Progress("run", "end", 1.0)))


def test_a_pull_brings_four_thousand_tokens_at_most_and_the_next_one_the_rest() -> None:
    run = Run(created(arms="A"))
    run.append(ArmEvent("A", 0, 1.0, tokens(0, 4_500)))
    run.append(Ended(2.0, "done"))
    past = run.past(0, [[0, 0, 0]])
    assert (past.columns[0].first, past.columns[0].end, past.ended) == (0, 4_000, False)
    rest = run.past(0, [[4_000, 0, 0]])
    assert (rest.columns[0].end, rest.ended) == (4_500, True)


def test_texts_are_compared_once_both_arms_ended_if_they_were_greedy() -> None:
    run = Run(created())
    assert run.snapshot().texts is None
    repeat(run, "A", 0, 0.2)
    assert run.snapshot().texts is None, "one arm has ended"
    repeat(run, "B", 0, 0.1)
    texts = run.snapshot().texts
    assert texts is not None and texts.tokens_equal_until is None
    alone = Run(created(arms="A"))
    repeat(alone, "A", 0, 0.2)
    assert alone.snapshot().texts is None
    first = created()
    workload = replace(first.request.workload, temperature=0.7)
    sampled = Run(msgspec.structs.replace(first, request=msgspec.structs.replace(first.request, workload=workload)))
    for arm in "AB":
        repeat(sampled, arm, 0, 0.2)
    assert sampled.snapshot().texts is None


def test_seconds_since_it_was_created_come_from_a_steady_clock_in_its_own_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A clock set back by a year does not make a run that goes on here older or younger."""
    live, stored = Run(created(), live=True), Run(created())
    monkeypatch.setattr("tokendyno.backend.runs.run.time.time", lambda: live.created.created + 3600.0)
    assert live.elapsed_s < 60
    assert stored.elapsed_s == pytest.approx(3600.0, abs=60)


@pytest.mark.parametrize(
    ("record", "wakes"),
    [
        (ArmEvent("A", 0, 1.2, tokens(3, 3, "def")), True),
        (ArmEvent("A", 0, 1.2, finished("abc")), True),
        (Ended(2.0, "cancelled"), True),
        (ArmEvent("A", 0, 1.2, Samples([0.5], [7])), False),
    ],
)
def test_who_waits_is_told_of_tokens_and_of_changes_but_not_of_samples(record: Any, wakes: bool) -> None:
    """Samples of memory arrive just before the tokens of the same moment."""
    run = Run(created(arms="A"))
    run.append(ArmEvent("A", 0, 1.0, tokens(0, 3, "abc")))
    timer = threading.Timer(0.1, run.append, [record])
    timer.start()
    took_s = run.wait(30.0 if wakes else 0.5)
    timer.join()
    assert took_s < 10 if wakes else took_s >= 0.5


@pytest.mark.parametrize(("index", "given"), [(-5, 0), (0, 0), (3, 3), (4, 3)])
def test_a_cursor_outside_a_run_is_brought_back_into_it(index: int, given: int) -> None:
    run = Run(created(arms="A"))
    run.append(ArmEvent("A", 0, 1.0, tokens(0, 3, "abc")))
    run.append(ArmEvent("A", 0, 1.0, Samples([0.0, 0.5, 1.0], [1, 2, 3])))
    (columns,) = run.past(0, [[index] * 3]).columns
    assert (columns.first, columns.first_sample, columns.first_character) == (given,) * 3
    assert (columns.end, columns.end_sample, columns.end_character) == (3, 3, 3)
    assert columns.kv_sliding == [0, 2, 4][given:]


def test_every_change_but_that_of_a_column_has_a_version_of_its_own() -> None:
    run = Run(created(arms="A"))
    versions = [run.version]
    for record in (
        Predicted("A", []),
        Expected("A", {"load": 1.0}),
        ArmEvent("A", 0, 1.0, finished("x")),
        Ended(1.0, "done"),
    ):
        run.append(record)
        versions.append(run.version)
    assert len(set(versions)) == 5 and run.arms["A"].expected_s == {"load": 1.0}
    with pytest.raises(ValueError, match="created once"):
        run.append(created(arms="A"))
