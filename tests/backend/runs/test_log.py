"""All runs: what stays in memory, what is read back, and which is the newest."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tests.backend.runs.test_quality import A, B, planned, run_of
from tests.support.runs import created, tokens
from tokendyno.backend.hosting.visitor import LOCAL
from tokendyno.backend.messages import Progress
from tokendyno.backend.runs import log as run_log
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.records import UNREADABLE, ArmEvent, Ended
from tokendyno.backend.runs.store import Store


def fill(log: RunLog, run_id: str, at_s: float, end: bool = True) -> None:
    log.create(created(run_id, "A", at_s=at_s))
    log.append(run_id, ArmEvent("A", 0, 1.0, tokens(0, 3, run_id)))
    if end:
        log.append(run_id, Ended(2.0, "done"))


def test_eviction_never_drops_a_live_run_and_an_evicted_one_is_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_log, "CACHED_RUNS", 3)
    log = RunLog(Store(None))
    fill(log, "live", 0.0, end=False)
    live, first = log.get("live"), None
    for n in range(10):
        fill(log, f"r{n}", 1.0 + n)
        first = first or log.get("r0")
        assert len(log._runs) <= 4
    assert log.get("live") is live and log.newest(LOCAL) == "live"
    again = log.get("r0")
    assert again is not None and again is not first and again.arms["A"].text == "r0" and again.status == "done"
    log.append("live", ArmEvent("A", 0, 1.0, tokens(3, 2)))
    assert live is not None and len(live.arms["A"].ids) == 5


def test_the_run_viewed_last_is_the_last_to_be_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_log, "CACHED_RUNS", 3)
    log = RunLog(Store(None))
    for n in range(3):
        fill(log, f"r{n}", float(n))
    watched = log.get("r0")
    for n in range(3, 10):
        fill(log, f"r{n}", float(n))
        assert log.get("r0") is watched


def test_an_end_is_on_disk_before_anybody_sees_it_unless_the_disk_is_in_trouble(tmp_path: Path) -> None:
    """A run that the page had shown as done came back as interrupted after a kill 20 ms later."""
    store = Store(tmp_path / "h.sqlite")
    log = RunLog(store)
    for n in range(3):
        fill(log, f"r{n}", float(n))
        with closing(sqlite3.connect(tmp_path / "h.sqlite")) as db:
            assert db.execute("SELECT status FROM runs WHERE id = ?", (f"r{n}",)).fetchall() == [("done",)]
    with closing(sqlite3.connect(tmp_path / "h.sqlite", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        begin_s = time.monotonic()
        for n in range(3, 5):
            fill(log, f"r{n}", float(n))
        assert time.monotonic() - begin_s < 2 * run_log.END_WAIT_S + 1
    store.close()


def test_a_live_run_of_another_process_is_read_again_each_time() -> None:
    store = Store(None)
    mine, theirs = RunLog(store), RunLog(store)
    fill(theirs, "a", 1.0, end=False)
    first = mine.get("a")
    theirs.append("a", ArmEvent("A", 0, 1.0, tokens(3, 2)))
    second = mine.get("a")
    assert first is not None and second is not None
    assert len(first.arms["A"].ids) == 3 and len(second.arms["A"].ids) == 5


def test_newest_prefers_the_run_in_progress_then_the_one_created_last() -> None:
    log = RunLog(Store(None))
    assert log.newest(LOCAL) is None
    fill(log, "a", 1.0)
    fill(log, "b", 2.0)
    assert log.newest(LOCAL) == "b"
    fill(log, "c", 3.0, end=False)
    fill(log, "d", 4.0, end=False)
    log.get("c")
    assert log.newest(LOCAL) == "c" and log.newest("ada") is None


def test_an_unknown_run_is_none_and_cannot_be_appended_to() -> None:
    log = RunLog(Store(None))
    assert log.get("nothing") is None
    with pytest.raises(KeyError):
        log.append("nothing", Ended(1.0, "done"))


def test_what_is_forgotten_is_read_again_and_a_live_run_is_never_forgotten() -> None:
    log = RunLog(Store(None))
    fill(log, "ended", 0.0)
    fill(log, "live", 1.0, end=False)
    ended, live = log.get("ended"), log.get("live")
    for run_id in ("ended", "live", "nosuch"):
        log.forget(run_id)
    assert log.get("live") is live
    cached = log.get("ended")
    assert cached is not ended and log.get("ended") is cached


def test_a_stored_run_that_cannot_be_followed_ends_there() -> None:
    """A file may hold anything: here a beginning within a run, and tokens that continue nothing."""
    for broken, at_s in ((created("a", "A"), 0.0), (ArmEvent("A", 0, 7.0, tokens(9, 1)), 7.0)):
        store = Store(None)
        store.add(
            "a", created("a", "A"), ArmEvent("A", 0, 0.0, Progress("run", "begin", 0.0)), broken, Ended(9.0, "done")
        )
        run = RunLog(store).get("a")
        assert run is not None and (run.status, run.message) == ("interrupted", UNREADABLE)
        assert run.arms["A"].phases["run"].seconds == at_s


def test_a_reading_with_the_arms_swapped_is_taken_only_where_there_is_no_other() -> None:
    log, mine = RunLog(Store(None)), planned(created(), {}, "ab")
    for number, keys in enumerate(("ab", "ba")):
        first = msgspec.structs.replace(planned(run_of(A=A, B=B).created, {}, keys, keys), created=float(number))
        log.create(first)
        for event in (*(ArmEvent("A", 0, 1.0, score) for score in A), *(ArmEvent("B", 0, 1.0, score) for score in B)):
            log.append(keys, event)
        log.append(keys, Ended(1.0, "done"))
        reading = log.reading(mine)
        assert reading is not None and not reading.swapped and reading.created.id == "ab", "the newer one is swapped"
    swapped = log.reading(planned(created(), {}, "ba"))
    assert swapped is not None and (swapped.created.id, swapped.swapped) == ("ba", False)
    assert log.reading(planned(created(), {}, "xy")) is None
