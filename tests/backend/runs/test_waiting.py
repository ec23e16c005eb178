"""Records in memory: in order, whole or said to be cut, and never more than a limit."""

import pytest

from backend.runs import waiting
from backend.runs.records import Ended, Record, encode_record
from backend.runs.waiting import CUT, Waiting
from tests.backend.runs.test_store import created, tokens, whole


def encoded(*runs: list[Record]) -> Waiting:
    """Runs a, b, c and so on."""
    line = Waiting()
    for run_id, records in zip("abc", runs, strict=False):
        line.add(run_id, *records)
    line.encode(lambda error: pytest.fail(str(error)))
    return line


def size(records: list[Record]) -> int:
    return sum(len(encode_record(record)) for record in records)


def runs_of(line: Waiting) -> str:
    return "".join(dict.fromkeys(item.run_id for item in line.all()))


def test_each_run_counts_its_own_records_and_its_bytes() -> None:
    line = Waiting()
    assert line.state == (0, 0, 0)
    for run_id, *records in (("a", created("a")), ("b", created("b"), tokens(0)), ("a", tokens(0), tokens(3))):
        line.add(run_id, *records)
    assert [(item.run_id, item.seq) for item in line.all()] == [("a", 0), ("b", 0), ("b", 1), ("a", 1), ("a", 2)]
    assert line.state == (5, 2, 0), "nothing is encoded yet"
    line.encode(lambda error: None)
    assert line.state[2] == size([created("a"), tokens(0), tokens(3), created("b"), tokens(0)])
    assert [item.seq for item in line.of("b")] == [0, 1]


@pytest.mark.parametrize(("room", "left", "lost"), [(0, "abc", 0), (-1, "bc", 1)])
def test_as_much_as_the_limit_may_wait_and_the_oldest_run_goes_first(room: int, left: str, lost: int) -> None:
    runs = [whole("a"), whole("b"), whole("c")]
    line = encoded(*runs)
    assert line.shed(sum(map(size, runs)) + room) == lost
    assert runs_of(line) == left and all(line.of(run_id) for run_id in left)


def test_no_more_runs_go_than_make_room() -> None:
    runs = [whole("a"), whole("b"), whole("c")]
    line = encoded(*runs)
    assert line.shed(size(runs[2]) + size(runs[1]) // 2) == 2 and runs_of(line) == "c"


def test_a_run_that_lost_records_is_told_once_and_forgotten_with_its_end() -> None:
    line = encoded([created("a"), tokens(0), tokens(3)])
    line.remove(line.all()[:1])  # its beginning is on disk
    assert line.shed(1.0) == 1 and line.all() == []
    line.add("a", tokens(6), tokens(9))
    line.encode(lambda error: None)
    assert line.shed(1e9) == 0 and line.all() == [], "what follows a gap is of no use"
    line.add("a", Ended(9.0, "done"))
    line.encode(lambda error: None)
    assert line.shed(1e9) == 0
    (end,) = line.all()
    assert (end.record, end.seq) == (Ended(9.0, "interrupted", CUT), 5)
    assert end.body == encode_record(end.record)
    assert line.shed(1e9) == 0 and line.all() == [end], "it is complete as it is"


def test_a_whole_run_that_did_not_fit_leaves_no_end() -> None:
    line = encoded(whole("a"))
    assert line.shed(1.0) == 1 and line.all() == []


def test_a_record_that_cannot_be_encoded_is_left_out_alone() -> None:
    line, told = Waiting(), list[Exception]()
    line.add("a", created("a"), Ended(1.0, "failed", "half a character: \udcff"))
    line.add("b", created("b"))
    for _ in range(2):
        line.encode(told.append)
    assert len(told) == 1 and runs_of(line) == "ab" and len(line.all()) == 2


def test_numbers_are_remembered_of_the_latest_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "KEPT_NUMBERS", 2)
    line = Waiting()
    for run_id in "abcab":
        line.add(run_id, created(run_id))
    assert [item.seq for item in line.all()] == [0, 0, 0, 0, 0]
    monkeypatch.setattr(waiting, "KEPT_NUMBERS", 3)
    for run_id in "cabab":
        line.add(run_id, tokens(0))
    assert [item.seq for item in line.all()[5:]] == [0, 1, 1, 2, 2]
