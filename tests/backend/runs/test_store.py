"""The history file: nothing lost, nothing torn, nothing thrown away."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.processes import with_path
from tokendyno.backend.config import ArmRequest, Request, Workload
from tokendyno.backend.hosting.visitor import LOCAL
from tokendyno.backend.messages import Samples, Tokens
from tokendyno.backend.paths import ROOT
from tokendyno.backend.runs import history_file
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.records import UNREADABLE, ArmEvent, ArmPlanned, Created, Ended, Record, decode_record
from tokendyno.backend.runs.store import Store


def created(run_id: str, at: float = 1.0, owner: str = LOCAL) -> Created:
    request = Request("pocket", [ArmRequest("A")], Workload(prompt="Once"))
    return Created(run_id, at, request, [ArmPlanned("A", {}, {}, [])], "Pocket", "", {}, "cpu", owner)


def tokens(first: int, count: int = 3) -> ArmEvent:
    each = list(range(first, first + count))
    times = [float(i) for i in each]
    return ArmEvent("A", 0, float(first), Tokens(first, times, times, each, each, each, each, f"<{first}>"))


def test_records_come_back_as_they_were_and_in_order(tmp_path: Path) -> None:
    records: list[Record] = [created("a"), *(tokens(i) for i in range(0, 300, 3)), Ended(9.0, "done")]
    store = Store(tmp_path / "h.sqlite")
    for record in records:
        store.add("a", record)
    assert store.read("a") == records and store.read("b") == []
    store.close()
    again = Store(tmp_path / "h.sqlite")
    assert again.read("a") == records and again.messages == []
    again.close()


def test_without_a_path_records_are_kept_in_memory_only() -> None:
    store = Store(None)
    store.add("a", created("a"))
    store.add("b", created("b"))
    store.flush()
    assert store.read("a") == [created("a")] and store.newest(LOCAL) == "b" and store.path is None
    store.close()


@pytest.mark.parametrize("on_disk", [True, False])
def test_newest_is_of_one_owner(on_disk: bool, tmp_path: Path) -> None:
    store = Store(tmp_path / "h.sqlite" if on_disk else None)
    for run_id, at, owner in (("a", 1.0, "ada"), ("b", 2.0, "bob"), ("c", 3.0, LOCAL)):
        store.add(run_id, created(run_id, at, owner))
    assert [store.newest(owner) for owner in ("ada", "bob", LOCAL, "eve")] == ["a", "b", "c", None]
    store.close()


def whole(run_id: str, count: int = 30) -> list[Record]:
    """A run of so many tokens that was carried out to its end."""
    return [created(run_id), *(tokens(first) for first in range(0, count, 3)), Ended(9.0, "done")]


def stored(path: Path, run_id: str) -> list[Record]:
    """What the file alone has of a run."""
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT body FROM records WHERE run_id = ? ORDER BY seq", (run_id,)).fetchall()
    return [decode_record(body) for (body,) in rows]


WRITER = """
import sys
from pathlib import Path
from tokendyno.backend.runs.store import Store
from tests.backend.runs.test_store import created, tokens
store = Store(Path(sys.argv[1]))
assert not store.messages, store.messages
run_id = sys.argv[2]
store.add(run_id, created(run_id))
for i in range(0, 10**9, 3):
    store.add(run_id, tokens(i))
    if i % 30 == 0:
        store.flush()
        print(i, flush=True)
"""


def test_a_writer_killed_some_times_leaves_nothing_corrupt_or_partial_and_keeps_the_order(tmp_path: Path) -> None:
    """What was flushed before the kill is there; each run is a prefix of what was added, then "interrupted"."""
    path, flushed, rng = tmp_path / "h.sqlite", {}, random.Random(0)
    env = {**os.environ, "PYTHONPATH": with_path(ROOT)}
    for number in range(3):
        command = [sys.executable, "-c", WRITER, str(path), f"run{number}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the writer ended on its own"
        time.sleep(rng.random() / 5)
        process.kill()
        lines = [line, *process.stdout.read().splitlines(keepends=True)]
        flushed[f"run{number}"] = max(int(text) for text in lines if text.endswith("\n"))
        process.wait()
        process.stdout.close()
    store = Store(path)
    assert store.messages == []
    for run_id, last in flushed.items():
        first, *middle, end = store.read(run_id)
        assert first == created(run_id) and isinstance(end, Ended) and end.status == "interrupted"
        assert middle == [tokens(i) for i in range(0, 3 * len(middle), 3)]
        assert 3 * (len(middle) - 1) >= last
        run = RunLog(store).get(run_id)
        assert run is not None and run.status == "interrupted" and len(run.arms["A"].ids) == 3 * len(middle)
    store.close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_only_runs_of_dead_processes_become_interrupted(tmp_path: Path) -> None:
    """The file is open twice: the second opening must leave the live runs of the first alone."""
    path = tmp_path / "h.sqlite"
    first = Store(path)
    for run_id in ("live", "over", "dead"):
        first.add(run_id, created(run_id))
        first.add(run_id, tokens(0))
    first.add("over", Ended(5.0, "done"))
    first.flush()
    process = subprocess.Popen(["sleep", "60"])
    process.send_signal(signal.SIGKILL)
    process.wait()
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE runs SET pid = ? WHERE id = 'dead'", (process.pid,))
        db.commit()
    second = Store(path)
    ends = {run_id: second.read(run_id)[-1] for run_id in ("live", "over", "dead")}
    assert ends["live"] == tokens(0) and ends["over"] == Ended(5.0, "done")
    dead = ends["dead"]
    assert isinstance(dead, Ended) and dead.status == "interrupted" and dead.at_s == 0.0 and "kept" in dead.message
    first.close()
    second.close()


def test_a_pid_that_was_given_to_another_process_does_not_keep_a_run_alive(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    store = Store(path)
    store.add("a", created("a"))
    store.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE runs SET pid_started = pid_started - 100")
        db.commit()
    store = Store(path)
    assert isinstance(store.read("a")[-1], Ended)
    store.close()


def test_processes_that_open_one_new_file_at_once_all_write(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    code = WRITER.replace("10**9", "600") + "store.close()\n"
    env = {**os.environ, "PYTHONPATH": with_path(ROOT)}
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(path), f"run{n}"], stdout=subprocess.DEVNULL, env=env)
        for n in range(3)
    ]
    assert [process.wait(60) for process in processes] == [0] * 3
    store = Store(path)
    for n in range(3):
        assert store.read(f"run{n}")[:201] == [created(f"run{n}"), *(tokens(i) for i in range(0, 600, 3))]
    store.close()


@pytest.mark.parametrize("again", [lambda path: history_file.connect(path).close(), history_file.check_path])
def test_a_process_that_ends_takes_the_log_from_no_other(again: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    store = Store(path)
    store.add("mine", created("mine"))
    store.flush()
    again(path)  # a file that is opened and closed beside SQLite loses this process's locks on it
    code = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('SELECT * FROM runs'); db.close()"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    assert path.with_name("h.sqlite-shm").exists(), "the other process was not the last"
    store.add("later", created("later"))
    store.flush()
    assert [len(store.read(run_id)) for run_id in ("mine", "later")] == [1, 1] and not store.trouble
    store.close()


def test_a_record_that_cannot_be_encoded_does_not_end_the_history(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.sqlite")
    store.add("a", created("a"))
    store.flush()
    store.add("a", Ended(1.0, "failed", "half a character: \udcff"))
    store.flush()
    assert "could not be kept" in store.messages[0]
    store.add("b", created("b"))
    assert store.read("b") == [created("b")] and store.read("a") == [created("a")]
    store.add("a", ArmEvent("A", 0, 1.0, Samples([1.0], [1])))
    assert len(store.read("a")) == 2
    store.close()


@pytest.mark.parametrize("on_disk", [True, False])
def test_newest_goes_by_the_time_and_of_one_moment_by_the_order(on_disk: bool, tmp_path: Path) -> None:
    store = Store(tmp_path / "h.sqlite" if on_disk else None)
    for run_id, at in (("z", 1.0), ("b", 2.0), ("a", 2.0)):
        store.add(run_id, created(run_id, at))
    assert store.newest(LOCAL) == "a"
    assert [one.id for one in store.recent("pocket", 2)] == ["a", "b"] and store.recent("other", 9) == []
    store.close()


def test_a_change_sees_what_waits_and_is_whole_or_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.sqlite")
    store.add("a", created("a"))
    store.pin("a", True)
    store.add("b", created("b"))
    store.settle()
    assert store.query("SELECT id FROM runs ORDER BY id", ()) == [("a",), ("b",)]
    with pytest.raises(ZeroDivisionError), store.change() as db:
        db.execute("UPDATE runs SET pinned = 0")
        _ = 1 // 0
    assert store.query("SELECT pinned FROM runs ORDER BY id", ()) == [(1,), (0,)]
    store.pin("b", True)
    store.close()


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_run_that_cannot_be_read_to_its_end_ends_at_its_last_record_that_can(at: int, tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    store = Store(path)
    store.add("a", created("a"), tokens(3), tokens(6), Ended(9.0, "done"))
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE records SET body = x'ff' WHERE seq = ?", (at,))
    store = Store(path)
    *before, end = store.read("a")
    assert len(before) == at and end == Ended([0.0, 3.0, 6.0][at - 1], "interrupted", UNREADABLE)
    store.close()
