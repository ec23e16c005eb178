"""The history file: nothing lost, nothing torn, nothing thrown away."""

import itertools
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from backend.config import ArmRequest, Request, Workload
from backend.errors import InputError
from backend.hosting.visitor import LOCAL
from backend.messages import Samples, Tokens
from backend.paths import ROOT
from backend.runs import history_file, history_schema
from backend.runs import store as run_store
from backend.runs.log import RunLog
from backend.runs.records import UNREADABLE, ArmEvent, ArmPlanned, Created, Ended, Record, decode_record
from backend.runs.retention import Retention
from backend.runs.store import Store, retries_s
from tests.support.processes import wait_for, with_path


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


def test_newest_is_the_run_created_last_not_the_one_written_last(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.sqlite")
    assert store.newest(LOCAL) is None
    for run_id, at in (("a", 1.0), ("c", 3.0), ("b", 2.0)):
        store.add(run_id, created(run_id, at))
    assert store.newest(LOCAL) == "c"
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
from backend.runs.store import Store
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


@pytest.mark.slow
def test_a_writer_killed_many_times_leaves_nothing_corrupt_or_partial_and_keeps_the_order(tmp_path: Path) -> None:
    """What was flushed before the kill is there; each run is a prefix of what was added, then "interrupted"."""
    path, flushed, rng = tmp_path / "h.sqlite", {}, random.Random(0)
    env = {**os.environ, "PYTHONPATH": with_path(ROOT)}
    for number in range(12):
        command = [sys.executable, "-c", WRITER, str(path), f"run{number}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the writer ended on its own"
        time.sleep(rng.random() / 5)
        process.kill()
        told = [line, *process.stdout.read().splitlines(keepends=True)]
        flushed[f"run{number}"] = max(int(text) for text in told if text.endswith("\n"))
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


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"this is no database, but a text that is long enough to look at" * 20),
        lambda path: path.write_bytes(path.read_bytes()[:4096] + os.urandom(path.stat().st_size - 4096)),
        lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    ],
    ids=["no database", "overwritten", "cut off"],
)
def test_a_corrupt_file_is_kept_aside_and_reported_and_a_new_one_is_begun(damage: object, tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    store = Store(path)
    store.add("a", created("a"))
    for i in range(0, 3000, 3):
        store.add("a", tokens(i))
    store.close()
    damage(path)  # type: ignore[operator]
    spoiled = path.read_bytes()
    store = Store(path)
    (aside,) = (p for p in tmp_path.glob("h.sqlite.unreadable-*") if not p.name.endswith(("-wal", "-shm")))
    assert aside.read_bytes() == spoiled
    assert len(store.messages) == 1 and aside.name in store.messages[0] and "new one was begun" in store.messages[0]
    store.add("b", created("b"))
    assert store.read("b") == [created("b")] and store.read("a") == []
    store.close()


@pytest.mark.parametrize("where", ["file/h.sqlite", "folder"])
def test_a_path_that_cannot_be_written_is_bad_input(where: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"cannot be written \((Is a directory|File exists)\)\. Name .* --history"):
        Store(tmp_path / where)


def test_a_history_makes_the_folders_that_it_lies_in(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "h.sqlite"
    Store(path).close()
    assert path.exists() and path.parent.stat().st_mode & 0o077 == 0


def test_the_write_ahead_log_waits_for_a_reader(tmp_path: Path) -> None:
    """SQLite itself does not: it says at once that the file is busy."""
    path = tmp_path / "h.sqlite"
    with closing(sqlite3.connect(path, check_same_thread=False, isolation_level=None)) as reader:
        reader.execute("CREATE TABLE old (x)")
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM old").fetchall()
        leaves = threading.Timer(0.2, lambda: reader.execute("ROLLBACK"))
        with closing(sqlite3.connect(path, timeout=0)) as writer:
            with pytest.raises(sqlite3.OperationalError):
                writer.execute("PRAGMA journal_mode = WAL")
            leaves.start()
            history_file._use_wal(writer)
            assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        leaves.join()


@pytest.mark.parametrize(("late_s", "alive"), [(0.0, True), (1.5, True), (2.5, False)])
def test_a_process_is_the_one_that_started_at_that_time(late_s: float, alive: bool) -> None:
    assert history_file._alive(os.getpid(), psutil.Process().create_time() + late_s) is alive


def test_an_intact_file_that_another_process_locks_is_not_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.sqlite"
    Store(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(history_file, "WAIT_S", 0.2)
        store = Store(path)
        store.add("a", created("a"))
        assert "another program has locked it" in store.trouble and store.read("a") == [created("a")]
    wait_for(lambda: not store.trouble, 10, "the lock to be noticed as gone")
    store.close()
    assert [p.name for p in tmp_path.iterdir() if "unreadable" in p.name] == [] and stored(path, "a") == [created("a")]


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


def test_an_older_file_is_migrated_with_a_backup_and_keeps_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.sqlite"
    store = Store(path)
    store.add("a", created("a"))
    store.add("a", Ended(1.0, "done"))
    store.close()

    def add_note(db: sqlite3.Connection) -> None:
        db.execute("ALTER TABLE records ADD COLUMN note TEXT")

    def rename(db: sqlite3.Connection) -> None:
        db.execute("ALTER TABLE records DROP COLUMN note")

    before = len(history_schema.MIGRATIONS)
    monkeypatch.setattr(history_schema, "MIGRATIONS", [*history_schema.MIGRATIONS, add_note, rename])
    store = Store(path)
    assert store.read("a") == [created("a"), Ended(1.0, "done")] and store.messages == []
    store.close()
    with closing(sqlite3.connect(path)) as db, closing(sqlite3.connect(f"{path}.backup-v{before}")) as backup:
        assert db.execute("PRAGMA user_version").fetchone() == (before + 2,)
        assert backup.execute("PRAGMA user_version").fetchone() == (before,)
        assert backup.execute("SELECT count(*) FROM records").fetchone() == (2,)
    Store(path).close()
    assert len(list(tmp_path.glob("*.backup-*"))) == 1


def test_a_migration_that_fails_leaves_the_old_file_whole_beside_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.sqlite"
    store = Store(path)
    store.add("a", created("a"))
    store.close()

    def broken(db: sqlite3.Connection) -> None:
        if db.execute("SELECT count(*) FROM runs").fetchone() != (0,):
            db.execute("DROP TABLE records")
            db.execute("SELECT * FROM nowhere")

    monkeypatch.setattr(history_schema, "MIGRATIONS", [*history_schema.MIGRATIONS, broken])
    store = Store(path)
    (aside,) = (p for p in tmp_path.glob("h.sqlite.unreadable-*") if not p.name.endswith(("-wal", "-shm")))
    assert aside.name in store.messages[0] and store.read("a") == []
    store.close()
    with closing(sqlite3.connect(aside)) as db:
        assert db.execute("SELECT count(*) FROM records").fetchone() == (1,)


def test_processes_that_open_one_new_file_at_once_all_write_and_none_sets_it_aside(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    code = WRITER.replace("10**9", "600") + "store.close()\n"
    env = {**os.environ, "PYTHONPATH": with_path(ROOT)}
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(path), f"run{n}"], stdout=subprocess.DEVNULL, env=env)
        for n in range(6)
    ]
    assert [process.wait(60) for process in processes] == [0] * 6
    assert [p.name for p in tmp_path.iterdir() if "unreadable" in p.name] == []
    store = Store(path)
    for n in range(6):
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


def test_many_threads_may_add_at_once_and_each_runs_order_is_kept(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.sqlite")

    def write(run_id: str) -> None:
        store.add(run_id, created(run_id))
        for i in range(0, 300, 3):
            store.add(run_id, tokens(i))

    threads = [threading.Thread(target=write, args=(f"run{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in range(8):
        assert store.read(f"run{n}") == [created(f"run{n}"), *(tokens(i) for i in range(0, 300, 3))]
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


def test_a_closed_store_has_nothing_to_wait_for(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.sqlite")
    store.add("a", created("a"))
    store.close()
    begin_s = time.monotonic()
    store.flush()
    store.close()
    assert store.read("a") == [created("a")]
    assert time.monotonic() - begin_s < 10


@pytest.mark.parametrize("gone", ["pid_started = 0", "pid = 4194305"])  # above Linux's largest
def test_an_interrupted_runs_last_record_follows_the_others_at_once(gone: str, tmp_path: Path) -> None:
    store = Store(tmp_path / "h.sqlite")
    for record in (created("a"), tokens(0), tokens(3)):
        store.add("a", record)
    store.close()
    with closing(sqlite3.connect(tmp_path / "h.sqlite")) as db:
        db.execute(f"UPDATE runs SET {gone}")
        db.commit()
    Store(tmp_path / "h.sqlite").close()
    with closing(sqlite3.connect(tmp_path / "h.sqlite")) as db:
        assert [seq for (seq,) in db.execute("SELECT seq FROM records ORDER BY seq")] == [0, 1, 2, 3]


def test_files_set_aside_within_one_second_are_numbered_from_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "strftime", lambda form: "now")
    for _ in range(3):
        (tmp_path / "h.sqlite").write_bytes(b"no database at all " * 100)
        assert history_file.open_file(tmp_path / "h.sqlite")
    found = {path.name.removeprefix("h.sqlite.unreadable-") for path in tmp_path.glob("*unreadable-*")}
    assert {name for name in found if not name.endswith(("-wal", "-shm"))} == {"now", "now-2", "now-3"}


def test_a_file_that_cannot_be_written_is_tried_again_within_four_seconds_at_last() -> None:
    assert list(itertools.islice(retries_s(), 7)) == [0.25, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0]


@pytest.mark.parametrize("on_disk", [True, False])
def test_newest_goes_by_the_time_and_of_one_moment_by_the_order(on_disk: bool, tmp_path: Path) -> None:
    store = Store(tmp_path / "h.sqlite" if on_disk else None)
    for run_id, at in (("z", 1.0), ("b", 2.0), ("a", 2.0)):
        store.add(run_id, created(run_id, at))
    assert store.newest(LOCAL) == "a"
    assert [one.id for one in store.recent("pocket", 2)] == ["a", "b"] and store.recent("other", 9) == []
    store.close()


@pytest.mark.parametrize(("ahead_s", "newest"), [(30.0, "ahead"), (90.0, "now")])
def test_clocks_of_processes_may_differ_by_a_minute(ahead_s: float, newest: str, tmp_path: Path) -> None:
    store = Store(tmp_path / "h.sqlite")
    for run_id, at in (("ahead", time.time() + ahead_s), ("now", time.time())):
        store.add(run_id, created(run_id, at))
    store.flush()
    assert store.newest(LOCAL) == newest
    store.close()


def test_a_run_whose_time_is_damaged_counts_as_the_oldest(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    store = Store(path)
    store.add("b", created("b"), Ended(1.0, "done"))
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE runs SET created = 'never' WHERE id = 'b'")
    store = Store(path)
    assert store.newest(LOCAL) == "b"
    store.add("c", created("c", 0.0))  # not on disk yet
    assert store.newest(LOCAL) == "c"
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


def test_in_memory_nothing_waits_and_nothing_is_in_trouble() -> None:
    store = Store(None)
    store.add("a", created("a"))
    store.settle()
    store.refuse_set_aside()
    assert (store.messages, store.trouble) == ([], "")


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


def test_a_run_as_large_as_the_limit_is_read_and_a_larger_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.sqlite"
    store = Store(path)
    store.add("a", created("a"), Ended(9.0, "done"))
    store.flush()
    size = store.query("SELECT sum(length(body)) FROM records", ())[0][0]
    for most, count in ((size, 2), (size - 1, 0)):
        monkeypatch.setattr("backend.runs.store.MAX_RUN_BYTES", most)
        assert len(store.read("a")) == count
    store.close()


@pytest.mark.parametrize(("code", "looks"), [("CORRUPT", True), ("BUSY", False)])
def test_a_reader_that_meets_damage_has_the_file_looked_at(
    code: str, looks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "h.sqlite")
    error = sqlite3.DatabaseError(code)
    error.sqlite_errorcode = getattr(sqlite3, f"SQLITE_{code}")

    def fail(path: Path, wait_s: float) -> None:
        raise error

    looked = threading.Event()
    monkeypatch.setattr(store._writer, "_set_damaged_aside", looked.set)
    monkeypatch.setattr(run_store, "connect", fail)
    why = "CORRUPT. It is being checked" if looks else "another program has locked it. End that program"
    with pytest.raises(InputError, match=rf"The history h\.sqlite cannot be read: {why}"):
        store.query("SELECT 1", ())
    assert looked.wait(5.0 if looks else 0.3) is looks
    store.close()


def test_a_fault_of_the_writer_ends_neither_the_writer_nor_the_app(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "h.sqlite")
    assert store._thread.daemon, "the app may end without it"
    attempt, faults = store._writer.attempt, [RuntimeError("a fault")]

    def faulty(first: bool = False) -> bool:
        if faults:
            raise faults.pop()
        return attempt(first)

    monkeypatch.setattr(store._writer, "attempt", faulty)
    store.add("a", created("a"))
    wait_for(lambda: stored(tmp_path / "h.sqlite", "a"), 5, "the next attempt")
    assert store._thread.is_alive()
    store.close()


def test_what_is_too_old_goes_only_after_what_waits_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = Retention(max_bytes=1)
    store, pruned = Store(tmp_path / "h.sqlite", rule), list[bool]()
    store.close()
    monkeypatch.setattr(store._writer, "prune", lambda: pruned.append(True))
    for written in (True, False):
        monkeypatch.setattr(store._writer, "attempt", lambda written=written: written)
        assert store._attempt() is written
    monkeypatch.setattr(store._writer, "attempt", lambda: 1 // 0)
    assert store._attempt() is False and pruned == [True] and store._writer._retention == rule
