"""The writer of the history: a failing disk is said while it lasts, nobody waits, and what is not kept is said."""

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.backend.runs.test_store import created, stored, whole
from tests.support.processes import wait_for, with_path
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.visitor import LOCAL
from tokendyno.backend.paths import ROOT
from tokendyno.backend.runs import history_file, history_writer
from tokendyno.backend.runs.history_writer import AGES_AFTER_S, PRUNE_EVERY_S
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.records import Ended
from tokendyno.backend.runs.retention import Retention
from tokendyno.backend.runs.store import Store
from tokendyno.ui.live.panel import answer


@pytest.fixture
def locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> sqlite3.Connection:
    """A history that another program writes to without end. Close it to let go."""
    monkeypatch.setattr(history_file, "WAIT_S", 0.1)
    monkeypatch.setattr(history_writer, "RETRY_S", 0.1)
    Store(tmp_path / "h.sqlite").close()
    db = sqlite3.connect(tmp_path / "h.sqlite", isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    return db


def test_a_locked_file_holds_nobody_and_everything_is_written_afterwards(
    locked: sqlite3.Connection, tmp_path: Path
) -> None:
    store = Store(tmp_path / "h.sqlite")
    log = RunLog(store)
    log.create(created("a"))
    for record in whole("a")[1:]:
        log.append("a", record)
    assert store.read("a") == whole("a") and store.newest(LOCAL) == "a"
    wait_for(lambda: "Waiting in memory" in store.trouble, 10, "the trouble to be said")
    assert store.trouble.startswith("Runs are not being kept. The history h.sqlite cannot be written: another program")
    pull = {"run": "a", "version": 0, "cur": [[0, 0, 0]]}
    assert "another program has locked it" in answer(log, pull), "the page says so with every pull"
    locked.close()
    wait_for(lambda: not store.trouble, 10, "the end of the trouble to be noticed")
    assert stored(tmp_path / "h.sqlite", "a") == whole("a") and "locked" not in answer(log, pull)
    store.close()
    assert store.messages == []


def test_what_is_lost_because_the_app_ends_is_said(locked: sqlite3.Connection, tmp_path: Path) -> None:
    store = Store(tmp_path / "h.sqlite")
    store.add("a", created("a"))
    store.close()
    locked.close()
    assert store.messages == [
        "1 run could not be kept in the history, or only in part: tokendyno ended before it could be written."
    ]


def test_what_cannot_be_read_is_told_and_holds_no_run(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.sqlite")
    store.add("old", *whole("old"))
    store.flush()
    log = RunLog(store, lambda run_id: whole("shipped") if run_id == "shipped" else [])
    (tmp_path / "h.sqlite").rename(tmp_path / "elsewhere")
    (tmp_path / "h.sqlite").mkdir()
    sentence = "The history h.sqlite cannot be read: it cannot be opened. Check that its folder exists and is writable."
    with pytest.raises(InputError) as refused:
        log.get("old")
    assert str(refused.value) == sentence and sentence in answer(log, {"run": "old", "version": 0, "cur": []})
    assert log.newest(LOCAL) is None and log.get("shipped") is not None
    first = created("new")
    run = log.create(first)
    log.expect(first)
    assert log.reading(first) is None and log.compared(first) == ""
    assert log.get("new") is run
    store.close()


FILL = """
import resource, signal, sys
from pathlib import Path
from tokendyno.backend.runs.store import Store
from tests.backend.runs.test_store import whole
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = Store(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
for n in range(40):
    store.add(f"r{n}", *whole(f"r{n}", 300))
store.flush()
print(store.trouble)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.close()
print(store.messages)
"""


def test_a_full_disk_keeps_runs_in_memory_and_writes_them_when_there_is_room(tmp_path: Path) -> None:
    """The disk is full by the limit on the size of a file, in a process of its own."""
    env = {**os.environ, "PYTHONPATH": with_path(ROOT)}
    command = [sys.executable, "-c", FILL, str(tmp_path / "h.sqlite")]
    during, after = subprocess.run(command, env=env, text=True, capture_output=True, timeout=120).stdout.splitlines()
    assert "disk" in during and "Waiting in memory" in during and after == "[]"
    store = Store(tmp_path / "h.sqlite")
    assert [store.read(f"r{n}") == whole(f"r{n}", 300) for n in range(40)] == [True] * 40
    store.close()


def test_what_was_said_of_a_run_is_searched_with_its_verdict(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.sqlite")
    store.add("a", created("a"), Ended(1.0, "done", verdict="B is Faster"))
    store.add("b", created("b"), Ended(1.0, "failed", "The worker was killed."))
    store.flush()
    rows = store.query("SELECT status, verdict, trim(said) FROM runs ORDER BY id", ())
    assert rows == [
        ("done", "B is Faster", "b is faster"),
        ("failed", "The worker was killed.", "the worker was killed."),
    ]
    store.close()


# --- retention ------------------------------------------------------------------------------------


class Clocks:
    """A wall clock and a steady one, in seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall_s, self.steady_s = 2_000_000_000.0, 1_000.0
        monkeypatch.setattr(time, "time", lambda: self.wall_s)
        monkeypatch.setattr(time, "monotonic", lambda: self.steady_s)

    def pass_s(self, seconds: float, jump_s: float = 0.0) -> None:
        self.wall_s += seconds + jump_s
        self.steady_s += seconds


def test_old_runs_go_while_the_clock_is_trusted_and_this_is_said_with_its_sum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = Clocks(monkeypatch)
    store = Store(tmp_path / "h.sqlite", Retention(max_age_s=86_400.0))

    def left(*added: str) -> list[str]:
        for run_id in added:
            store.add(run_id, created(run_id, clocks.wall_s - 100_000.0), Ended(1.0, "done"))
        store.flush()
        store.flush()  # what was written is deleted after it
        return [run_id for (run_id,) in store.query("SELECT id FROM runs ORDER BY id", ())]

    clocks.pass_s(AGES_AFTER_S - 1)
    assert left("a", "b") == ["a", "b"], "the clock may not be set yet"
    year_s = 365 * 86_400.0
    clocks.pass_s(1.0, jump_s=year_s)
    assert left() == ["a", "b"] and store.messages == [], "a clock that jumped"
    clocks.pass_s(PRUNE_EVERY_S, jump_s=-year_s)
    assert left() == []
    assert left("c") == ["c"]
    clocks.pass_s(PRUNE_EVERY_S)
    assert left() == []
    assert store.messages == ["Deleted from the history since the start: 3 runs older than 1 day."]
    store.close()


def test_a_run_whose_beginning_went_with_its_file_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_writer, "RETRY_S", 0.1)
    path = tmp_path / "h.sqlite"
    store = Store(path)
    store.add("0123456789", created("0123456789"))
    store.flush()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path.write_bytes(b"no database " * 1000)
    store.add("0123456789", Ended(5.0, "done"))
    store.add("later", *whole("later"))
    store.flush()
    assert "the file is damaged. Put a backup in its place, or move it away" in store.trouble
    for file in tmp_path.glob("h.sqlite*"):
        file.rename(tmp_path / f"away{file.suffix}")
    wait_for(lambda: not store.trouble, 10, "the new file")
    assert store.messages == ["Run 01234567 is not kept: the file that its beginning was in is gone."]
    store.close()
    assert stored(path, "later") == whole("later") and stored(path, "0123456789") == []
