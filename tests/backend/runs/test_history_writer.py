"""The writer of the history file, step by step and without its thread."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from backend.runs import history_file, history_writer
from backend.runs.history_schema import MIGRATIONS
from backend.runs.history_writer import HistoryWriter
from backend.runs.records import Ended, Record, encode_record
from backend.runs.retention import AGES_AFTER_S, Deleted, Retention
from backend.runs.waiting import Waiting
from tests.backend.runs.test_store import created, stored, tokens, whole
from tests.support.processes import wait_for


def writer_at(path: Path, retention: Retention | None = None, most_bytes: int = 1 << 20) -> HistoryWriter:
    return HistoryWriter(path, Waiting(most_bytes), retention or Retention())


def write(writer: HistoryWriter, run_id: str, *records: Record) -> None:
    writer._waiting.add(run_id, *records)
    assert writer.attempt() and not writer.trouble and not writer._waiting.all()


def test_what_was_said_of_a_run_is_searched_with_its_verdict(tmp_path: Path) -> None:
    writer = writer_at(tmp_path / "h.sqlite")
    write(writer, "a", created("a"), Ended(1.0, "done", verdict="B is Faster"))
    write(writer, "b", created("b"), Ended(1.0, "done"))
    writer.close()
    with closing(sqlite3.connect(tmp_path / "h.sqlite")) as db:
        found = db.execute("SELECT status, verdict, trim(said) FROM runs ORDER BY id").fetchall()
    assert found == [("done", "B is Faster", "b is faster"), ("done", None, "")]


def test_a_transaction_that_fails_is_taken_back_and_written_again(tmp_path: Path) -> None:
    writer = writer_at(tmp_path / "h.sqlite")
    write(writer, "a", created("a"))
    with closing(sqlite3.connect(tmp_path / "h.sqlite", isolation_level=None)) as db:
        writer._waiting.add("a", tokens(0), tokens(3))
        db.execute("PRAGMA user_version = 99")  # as a newer version does
        assert not writer.attempt() and "newer version" in writer.trouble
        assert writer._db is not None and not writer._db.in_transaction
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    assert writer.attempt() and stored(tmp_path / "h.sqlite", "a") == [created("a"), tokens(0), tokens(3)]
    writer.close()


@pytest.mark.parametrize(("damage", "kept"), [("", True), ("torn", False)])
def test_only_a_damaged_file_is_set_aside_when_a_reader_suspects_it(
    damage: str, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.sqlite"
    writer = writer_at(path)
    write(writer, "a", created("a"), tokens(0))
    file = history_file.identity(path)
    monkeypatch.setattr(history_writer, "damage_of", lambda path: damage)
    writer.suspect = True
    assert writer.attempt()
    assert (history_file.identity(path) == file) is kept is not bool(writer.messages)
    assert stored(path, "a") == [created("a"), tokens(0)], "the new one begins with what runs"
    write(writer, "a", tokens(3))
    assert len(stored(path, "a")) == 3
    writer.close()


@pytest.mark.parametrize("gone", ["removed", "replaced"])
def test_a_file_that_is_gone_is_begun_anew_with_the_runs_that_go_on(gone: str, tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    writer = writer_at(path)
    write(writer, "over", *whole("over"))
    write(writer, "a", created("a"), tokens(0))
    path.rename(tmp_path / "before.sqlite")
    if gone == "replaced":
        history_file.open_file(path)
    write(writer, "a", tokens(3))
    assert stored(path, "a") == [created("a"), tokens(0), tokens(3)] and stored(path, "over") == []
    (message,) = writer.messages
    assert f"was {gone}" in message
    writer.close()


def test_a_file_that_another_process_began_anew_gets_what_it_does_not_have(tmp_path: Path) -> None:
    """Closed here after an error of its disk, and another by the time it is opened again."""
    path = tmp_path / "h.sqlite"
    writer = writer_at(path)
    write(writer, "a", created("a"), tokens(0))
    writer.close()
    path.rename(tmp_path / "before.sqlite")
    history_file.open_file(path)
    write(writer, "a", tokens(3))
    assert stored(path, "a") == [created("a"), tokens(0), tokens(3)]
    writer.close()


@pytest.mark.parametrize(("room", "left"), [(0, ["a", "b"]), (-1, ["a"])])
def test_copies_of_running_runs_are_bounded_and_the_largest_goes_first(
    room: int, left: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = writer_at(tmp_path / "h.sqlite")
    records: dict[str, list[Record]] = {"a": [created("a")], "b": [created("b"), tokens(0), tokens(3)]}
    size = sum(len(encode_record(record)) for found in records.values() for record in found)
    monkeypatch.setattr(history_writer, "MAX_COPY_BYTES", size + room)
    for run_id, found in records.items():
        write(writer, run_id, *found)
    assert list(writer._copies) == left
    write(writer, "a", Ended(1.0, "done"))
    assert "a" not in writer._copies, "what has ended is not needed again"
    writer.close()


@pytest.mark.parametrize(("damage", "suspect"), [("torn", True), ("", False)])
@pytest.mark.parametrize("longer", [0, 1])
def test_pages_of_a_file_are_checked_at_once_or_if_it_is_large_soon_after(
    longer: int, damage: str, suspect: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As large as the limit still counts as small."""
    path, checks = tmp_path / "h.sqlite", list[str]()
    first = writer_at(path)
    first.attempt()
    first.close()
    for module in (history_file, history_writer):
        monkeypatch.setattr(module, "CHECKED_AT_ONCE_BYTES", path.stat().st_size - longer)
    monkeypatch.setattr(history_file, "_check_pages", lambda db: checks.append("at once"))
    monkeypatch.setattr(history_writer, "damage_of", lambda path: checks.append("later") or damage)  # type: ignore[func-returns-value]
    writer = writer_at(path)
    assert (writer.attempt() and not writer.suspect) or longer
    wait_for(lambda: checks, 5, "the pages to be checked")
    assert checks == ["later" if longer else "at once"]
    if longer and suspect:
        wait_for(lambda: writer.suspect, 5, "the damage to be noted")
    assert writer.suspect is (suspect and longer > 0)
    writer.close()


def test_runs_that_did_not_fit_in_memory_are_told_with_the_limit(tmp_path: Path) -> None:
    writer = writer_at(tmp_path / "h.sqlite", most_bytes=3 << 20)
    writer._waiting.add("a", created("a"), Ended(1.0, "failed", "x" * (4 << 20)))
    writer._waiting.encode(lambda error: None)
    error = sqlite3.OperationalError("full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    assert not writer._fail(error) and not writer._waiting.all()
    assert "1 run could not be kept" in writer.messages[0] and "more than 3 MiB waited" in writer.messages[0]
    assert "its disk is full" in writer.trouble
    writer.close()


def test_the_same_is_said_once_and_the_eight_latest_are_kept(tmp_path: Path) -> None:
    writer = writer_at(tmp_path / "h.sqlite")
    for text in [*"abcdefghi", "i", "c"]:
        writer.report(text)
    assert writer.messages == [*"bcdefghi"]


# --- retention ------------------------------------------------------------------------------------


class Clocks:
    """A wall clock and a steady one, in whole seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall_s, self.steady_s = 2_000_000_000.0, 1_000.0
        monkeypatch.setattr(time, "time", lambda: self.wall_s)
        monkeypatch.setattr(time, "monotonic", lambda: self.steady_s)

    def pass_s(self, seconds: float, jump_s: float = 0.0) -> None:
        self.wall_s += seconds + jump_s
        self.steady_s += seconds


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


def old_runs(path: Path, clocks: Clocks, **changes: int) -> HistoryWriter:
    """A writer that forgets runs after a day, and two that are older."""
    writer = writer_at(path, Retention(max_age_s=86_400.0, **changes))
    for run_id in ("a", "b"):
        write(writer, run_id, created(run_id, clocks.wall_s - 100_000.0), Ended(1.0, "done"))
    return writer


def count(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        found: int = db.execute("SELECT count(*) FROM runs").fetchone()[0]
    return found


@pytest.mark.parametrize(
    ("passed_s", "jump_s", "left"),
    [
        (AGES_AFTER_S - 1, 0, 2),
        (AGES_AFTER_S, 0, 0),  # the clock may be set by then
        (AGES_AFTER_S, 59, 0),
        (AGES_AFTER_S, -59, 0),
        (AGES_AFTER_S, 60, 2),  # a clock that jumped by a minute is not trusted
        (AGES_AFTER_S, -60, 2),
    ],
)
def test_nothing_goes_for_its_age_before_the_clock_can_be_trusted(
    passed_s: float, jump_s: float, left: int, tmp_path: Path, clocks: Clocks
) -> None:
    writer = old_runs(tmp_path / "h.sqlite", clocks)
    clocks.pass_s(passed_s, jump_s)
    writer.prune()
    assert count(tmp_path / "h.sqlite") == left
    assert writer.messages == ([] if left else ["Deleted from the history since the start: 2 runs older than 1 days."])
    writer.close()


def test_it_is_due_at_once_after_ten_minutes_and_then_every_hour(tmp_path: Path, clocks: Clocks) -> None:
    writer = old_runs(tmp_path / "h.sqlite", clocks)
    due_s = []
    for seconds in (0.0, 600.0, 0.0, 3_600.0):
        clocks.pass_s(seconds)
        writer.prune()
        due_s.append(writer._prune_at_s - clocks.steady_s)
    assert due_s == [600.0, 0.0, 3_600.0, 3_600.0], "where something was deleted there may be more"
    assert writer.idle_s() == 3_600.0
    writer.close()


def deleted(path: Path, run_id: str, at_s: float) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE runs SET deleted_at = ? WHERE id = ?", (at_s, run_id))


def test_nothing_is_removed_while_records_wait_or_before_it_is_due(tmp_path: Path, clocks: Clocks) -> None:
    path = tmp_path / "h.sqlite"
    writer = old_runs(path, clocks)
    deleted(path, "a", 1.0)
    writer._waiting.add("c", created("c"))
    writer.prune()
    assert count(path) == 2
    assert writer.attempt()
    writer._prune_at_s = clocks.steady_s + 1.0
    writer.prune()
    assert count(path) == 3
    writer._prune_at_s = clocks.steady_s
    writer.prune()
    assert count(path) == 2
    writer.close()
    writer._prune_at_s = clocks.steady_s
    writer.prune()
    assert writer._prune_at_s == clocks.steady_s, "without a file there is nothing to do"


def test_what_cannot_be_deleted_now_is_tried_again_later(tmp_path: Path, clocks: Clocks) -> None:
    path = tmp_path / "h.sqlite"
    writer = old_runs(path, clocks)
    deleted(path, "a", 1.0)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("CREATE TRIGGER no BEFORE DELETE ON runs BEGIN SELECT raise(FAIL, 'no'); END")
        writer.prune()
        assert count(path) == 2 and writer._prune_at_s == clocks.steady_s + AGES_AFTER_S
        db.execute("DROP TRIGGER no")
    write(writer, "c", created("c"))
    clocks.pass_s(AGES_AFTER_S)
    writer.prune()
    assert count(path) == 1
    writer.close()


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((1, 0, 0), "1 runs older than 1 days."),
        ((0, 2_000, 0), "2,000 of the oldest runs, to stay below 5 MiB."),
        ((0, 0, 1), "1 ablation, too old or the oldest of too many."),
        ((3, 4, 2), "3 runs older than 1 days, 4 of the oldest runs, to stay below 5 MiB, 2 ablations, too old"),
    ],
)
def test_what_was_deleted_is_said_once_with_its_sum(counts: tuple[int, int, int], said: str, tmp_path: Path) -> None:
    writer = writer_at(tmp_path / "h.sqlite", Retention(86_400.0, 5 << 20))
    for factor in (1, 2):
        writer._deleted = Deleted(*(factor * one for one in counts))
        writer._say_deleted()
    writer._deleted = Deleted(*counts)
    writer._say_deleted()
    (message,) = writer.messages
    assert message.startswith(f"Deleted from the history since the start: {said}")


def test_runs_and_then_ablations_are_deleted_and_counted_together(
    tmp_path: Path, clocks: Clocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.sqlite"
    writer = old_runs(path, clocks, max_ablation_bytes=9)
    (tmp_path / "ablations").mkdir()
    (tmp_path / "ablations" / "one.jsonl").write_bytes(bytes(10))
    clocks.pass_s(AGES_AFTER_S)
    found = []
    for _ in range(3):
        writer.prune()
        found.append(tuple(writer._deleted))
    assert found == [(2, 0, 0), (2, 0, 1), (2, 0, 1)]
    writer.close()
