"""A history that cannot be written for a while: said while it lasts, nobody waits, and nothing that fits is lost."""

import errno
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from backend.ablation.journal import Journal
from backend.engine.bench import Bench
from backend.errors import InputError
from backend.executors import KINDS
from backend.hosting.limits import LIMITS
from backend.hosting.visitor import LOCAL
from backend.paths import ROOT
from backend.runs import history_file, history_writer
from backend.runs.history_writer import HistoryWriter
from backend.runs.log import RunLog
from backend.runs.records import Ended, encode_record
from backend.runs.retention import Deleted, Retention, prune, prune_ablations, used_bytes
from backend.runs.store import Store
from backend.runs.trouble import cause, code_of, passes
from backend.runs.waiting import CUT, Waiting
from tests.backend.ablation.test_journal import HEADING
from tests.backend.runs.test_store import created, stored, whole
from tests.support.processes import wait_for, with_path
from ui.live.panel import answer


@pytest.fixture
def locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> sqlite3.Connection:
    """A history that another program writes to without end. Close it to let go."""
    monkeypatch.setattr(history_file, "WAIT_S", 0.3)
    Store(tmp_path / "h.sqlite").close()
    db = sqlite3.connect(tmp_path / "h.sqlite", isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    return db


def test_a_locked_file_holds_nobody_and_everything_is_written_afterwards(
    locked: sqlite3.Connection, tmp_path: Path
) -> None:
    store = Store(tmp_path / "h.sqlite")
    log = RunLog(store)
    begin_s = time.monotonic()
    log.create(created("a"))
    for record in whole("a")[1:]:
        log.append("a", record)
    assert store.read("a") == whole("a") and store.newest(LOCAL) == "a"
    assert time.monotonic() - begin_s < 0.5
    wait_for(lambda: "wait in memory" in store.trouble, 10, "the trouble to be said")
    assert "locked" in store.trouble and "h.sqlite" in store.trouble and str(tmp_path) not in store.trouble
    pull = {"run": "a", "version": 0, "cur": [[0, 0, 0]]}
    assert "another program has locked it" in answer(log, pull), "the page says so with every pull"
    locked.close()
    wait_for(lambda: not store.trouble, 10, "the end of the trouble to be noticed")
    assert stored(tmp_path / "h.sqlite", "a") == whole("a") and "locked" not in answer(log, pull)
    assert store.messages == []
    store.close()


def test_a_file_that_nobody_may_even_read_holds_no_reader(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.sqlite")
    for record in whole("old"):
        store.add("old", record)
    store.flush()
    with closing(sqlite3.connect(tmp_path / "h.sqlite", isolation_level=None)) as db:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        begin_s = time.monotonic()
        store.add("new", created("new"))
        assert store.newest(LOCAL) in ("old", "new") and store.read("new") == [created("new")]
        assert time.monotonic() - begin_s < 1.5
    store.close()
    assert stored(tmp_path / "h.sqlite", "new") == [created("new")]


def test_what_cannot_be_read_is_told_and_holds_no_run(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.sqlite")
    for record in whole("old"):
        store.add("old", record)
    store.flush()
    log = RunLog(store, lambda run_id: whole("shipped") if run_id == "shipped" else [])
    (tmp_path / "h.sqlite").rename(tmp_path / "elsewhere")
    (tmp_path / "h.sqlite").mkdir()
    said = "The history h.sqlite cannot be read: it cannot be opened. Check that its folder exists and is writable."
    with pytest.raises(InputError) as told:
        log.get("old")
    assert str(told.value) == said and said in answer(log, {"run": "old", "version": 0, "cur": []})
    assert log.newest(LOCAL) is None and log.get("shipped") is not None
    first = created("new")
    run = log.create(first)
    log.expect(first)
    assert log.reading(first) is None and log.compared(first) == ""
    assert log.get("new") is run and store.read("new") == [first]
    store.close()


@pytest.mark.parametrize("code, closed", [("IOERR", True), ("CANTOPEN", True), ("BUSY", False), ("FULL", False)])
def test_the_file_is_opened_again_after_what_a_lost_disk_causes(
    code: str, closed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []
    connect = history_file.connect
    monkeypatch.setattr(history_writer, "connect", lambda path: opened.append(path) or connect(path))  # type: ignore[func-returns-value]
    error = sqlite3.OperationalError(code)
    error.sqlite_errorcode = getattr(sqlite3, f"SQLITE_{code}")
    writer = HistoryWriter(tmp_path / "h.sqlite", Waiting(), Retention())
    assert writer.attempt(first=True)
    assert not writer._fail(error) and writer.attempt() and not writer.trouble
    assert len(opened) == 1 + closed
    writer.close()


def test_a_file_that_was_suspect_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Path] = []
    monkeypatch.setattr(history_writer, "damage_of", lambda path: looks.append(path) or "")  # type: ignore[func-returns-value]
    writer = HistoryWriter(tmp_path / "h.sqlite", Waiting(), Retention())
    writer.suspect = True
    assert all(writer.attempt() for _ in range(3)) and len(looks) == 1
    writer.close()


FILL = """
import os, resource, signal, sys, time
from pathlib import Path
from backend.runs.store import Store
from tests.backend.ablation.test_journal import HEADING
from tests.backend.runs.test_store import whole
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = Store(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
for n in range(40):
    for record in whole(f"r{n}", 300):
        store.add(f"r{n}", record)
store.flush()
print(store.trouble)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.close()
print(store.trouble, store.messages)
"""


def test_a_full_disk_keeps_runs_in_memory_and_writes_them_when_there_is_room(tmp_path: Path) -> None:
    """The disk is full by the limit on the size of a file, in a process of its own."""
    env = {**os.environ, "PYTHONPATH": with_path(ROOT)}
    command = [sys.executable, "-c", FILL, str(tmp_path / "h.sqlite")]
    during, after = subprocess.run(command, env=env, text=True, capture_output=True, timeout=120).stdout.splitlines()
    assert "disk" in during and "wait in memory" in during and after == " []"
    store = Store(tmp_path / "h.sqlite")
    assert [store.read(f"r{n}") == whole(f"r{n}", 300) for n in range(40)] == [True] * 40
    store.close()


def test_what_does_not_fit_in_memory_goes_by_whole_runs_and_is_said(
    locked: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = sum(len(encode_record(record)) for record in whole("r0"))
    store = Store(tmp_path / "h.sqlite")
    monkeypatch.setattr(store._waiting, "most_bytes", 3 * size + 100)
    for n in range(8):
        for record in whole(f"r{n}"):
            store.add(f"r{n}", record)
    store.flush()
    assert store._waiting.state[2] <= 3 * size + 100
    (message,) = store.messages
    assert message.startswith("5 runs could not be kept")
    locked.close()
    wait_for(lambda: not store.trouble, 10, "the end of the trouble")
    assert [store.read(f"r{n}") == whole(f"r{n}") for n in range(8)] == [False] * 5 + [True] * 3
    store.close()


def test_a_run_that_began_on_disk_and_lost_records_ends_as_cut() -> None:
    line = Waiting()
    for record in whole("a"):
        line.add("a", record)
    line.encode(lambda error: None)
    line.remove(line.all()[:3])  # they are on disk
    assert line.shed(10.0) == 1 and line.shed(10.0) == 0
    (end,) = line.all()
    assert end.record == Ended(9.0, "interrupted", CUT) and end.seq == 11


def test_a_run_that_lost_records_while_it_goes_on_gets_no_gap() -> None:
    line = Waiting()
    for record in whole("a")[:4]:
        line.add("a", record)
    line.encode(lambda error: None)
    assert line.shed(10.0) == 1 and line.all() == []
    for record in whole("a")[4:]:
        line.add("a", record)
    line.encode(lambda error: None)
    assert line.shed(1e9) == 0 and line.all() == [], "its beginning is gone, so its end is of no use"
    line.add("b", created("b"))
    assert len(line.of("b")) == 1


def test_what_is_lost_because_the_app_ends_is_said(locked: sqlite3.Connection, tmp_path: Path) -> None:
    store = Store(tmp_path / "h.sqlite")
    store.add("a", created("a"))
    begin_s = time.monotonic()
    store.close()
    assert time.monotonic() - begin_s < 10
    (message,) = store.messages
    assert message.startswith("1 run could not be kept in the history") and "app ended" in message
    locked.close()


def test_errors_that_pass_are_told_from_damage() -> None:
    full, damaged = sqlite3.OperationalError("full"), sqlite3.DatabaseError("malformed")
    full.sqlite_errorcode, damaged.sqlite_errorcode = sqlite3.SQLITE_FULL, sqlite3.SQLITE_CORRUPT
    extended = sqlite3.OperationalError("disk I/O error")
    extended.sqlite_errorcode = 778  # SQLITE_IOERR_WRITE
    assert passes(full) and passes(extended) and not passes(damaged)
    assert passes(OSError(errno.ENOSPC, "")) and not passes(OSError(errno.EACCES, ""))
    assert not passes(sqlite3.DatabaseError("without a code")) and code_of(extended) == sqlite3.SQLITE_IOERR


@pytest.mark.parametrize(
    ("error", "why", "remedy"),
    [
        (OSError(errno.ENOSPC, ""), "its disk is full", "Free some space"),
        (OSError(errno.EDQUOT, ""), "its disk is full", "Free some space"),
        (OSError(errno.EACCES, ""), "permission denied", "Mend that."),
        (sqlite3.DatabaseError("malformed"), "malformed", "a new one is begun"),
    ],
)
def test_a_cause_says_what_to_do(error: Exception, why: str, remedy: str) -> None:
    said, advice = cause(error)
    assert said == why and remedy in advice


# --- who may read it ------------------------------------------------------------------------------


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def test_only_its_owner_may_read_a_history_and_older_ones_are_mended(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = Store(tmp_path / "h.sqlite")
        store.add("a", created("a"))
        store.flush()
        assert len(list(tmp_path.iterdir())) == 3 and modes(tmp_path) == {0o600}
        store.close()
        for name in ("h.sqlite.unreadable-1", "h.sqlite.backup-v1", "h.sqlite-wal"):
            (tmp_path / name).touch()
        for path in tmp_path.iterdir():
            path.chmod(0o644)
        Store(tmp_path / "h.sqlite").close()
        assert modes(tmp_path) == {0o600}
    finally:
        os.umask(before)


# --- retention ------------------------------------------------------------------------------------


def history(path: Path, ages_days: list[float]) -> sqlite3.Connection:
    store = Store(path)
    for n, age in enumerate(ages_days):
        for record in (created(f"r{n}", time.time() - age * 86_400), *whole(f"r{n}", 300)[1:]):
            store.add(f"r{n}", record)
    store.add("running", created("running", 1.0))
    store.flush()
    store.pin("r0", True)
    store.close()
    return sqlite3.connect(path, isolation_level=None)


def say(db: sqlite3.Connection, **columns: str) -> None:
    """Fill a column of these runs, as their owner does."""
    for run_id, column in columns.items():
        db.execute(f"UPDATE runs SET {column} = 'mine' WHERE id = ?", (run_id,))


def ids(db: sqlite3.Connection) -> list[str]:
    assert (
        db.execute("SELECT DISTINCT run_id FROM records ORDER BY 1").fetchall()
        == db.execute("SELECT id FROM runs ORDER BY 1").fetchall()
    ), "records without a run, or a run without records"
    return [run_id for (run_id,) in db.execute("SELECT id FROM runs ORDER BY rowid")]


def test_runs_that_are_too_old_are_deleted_but_not_pinned_named_or_running_ones(tmp_path: Path) -> None:
    with closing(history(tmp_path / "h.sqlite", [400, 400, 10, 366, 0, 400, 400])) as db:
        say(db, r5="name", r6="note")
        rule = Retention(max_age_s=365 * 86_400.0)
        assert prune(db, rule, time.time(), ages=False) == Deleted() and len(ids(db)) == 8
        assert prune(db, rule, time.time(), ages=True) == Deleted(old=2)
        assert ids(db) == ["r0", "r2", "r4", "r5", "r6", "running"]
        assert prune(db, rule, time.time(), ages=True) == Deleted()


def test_the_oldest_go_when_the_file_is_too_large(tmp_path: Path) -> None:
    with closing(history(tmp_path / "h.sqlite", [0.0] * 60)) as db:
        say(db, r1="name")
        most = used_bytes(db) // 2
        gone = 0
        while (found := prune(db, Retention(max_bytes=most), time.time(), ages=True)) != Deleted():
            gone += found.large
        left = ids(db)
        assert 16 <= gone <= 58 and left[:2] == ["r0", "r1"] and left[-1] == "running" and "r59" in left
        assert used_bytes(db) <= most
        assert (
            db.execute("PRAGMA auto_vacuum").fetchone() == (2,)
            and db.execute("PRAGMA freelist_count").fetchone()[0] < 3
        )


def test_named_runs_go_last_where_there_is_no_room(tmp_path: Path) -> None:
    with closing(history(tmp_path / "h.sqlite", [0.0] * 20)) as db:
        say(db, **{f"r{n}": "name" for n in range(1, 20)})
        while prune(db, Retention(max_bytes=1), time.time(), ages=True) != Deleted():
            pass
        assert ids(db) == ["r0", "running"], "a stranger's names must not fill the disk"


def test_ablations_go_by_age_and_size_but_none_that_goes_on(tmp_path: Path) -> None:
    days = {"a": 400, "b": 366, "c": 300, "d": 2, "e": 1}
    for name, age in days.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_bytes(bytes(100))
        os.utime(path, (time.time() - 86_400 * age,) * 2)

    def left(rule: Retention, ages: bool = True) -> tuple[int, str]:
        deleted = prune_ablations(tmp_path, rule, time.time(), ages)
        assert deleted == Deleted(ablations=deleted.ablations)
        return deleted.ablations, "".join(sorted(path.stem for path in tmp_path.iterdir()))

    year = Retention(max_age_s=365 * 86_400.0)
    assert left(year, ages=False) == (0, "abcde")
    with closing(Journal(tmp_path / "new.jsonl", HEADING)) as at_work:
        (tmp_path / "new.jsonl").replace(tmp_path / "a.jsonl")
        os.utime(tmp_path / "a.jsonl", (0, 0))
        assert left(year) == (1, "acde"), "the oldest goes on"
        assert at_work.trials == {}
    assert left(year) == (1, "cde")
    assert left(Retention(max_ablation_bytes=200)) == (1, "de") and left(Retention(max_ablation_bytes=200)) == (0, "de")
    assert prune_ablations(tmp_path / "none", year, time.time(), ages=True) == Deleted()


def test_the_store_deletes_and_says_so_once(tmp_path: Path) -> None:
    history(tmp_path / "h.sqlite", [0.0] * 40).close()
    (tmp_path / "ablations").mkdir()
    (tmp_path / "ablations" / "one.jsonl").write_bytes(bytes(100))
    store = Store(tmp_path / "h.sqlite", Retention(max_bytes=50_000, max_ablation_bytes=99))
    wait_for(lambda: store.messages and store._writer._prune_at_s > time.monotonic(), 10, "old runs to be deleted")
    (message,) = store.messages
    assert "of the oldest runs, to stay below 0 MiB, 1 ablation, too old" in message
    assert store.read("r0") != [] and store.read("r1") == [] and not list((tmp_path / "ablations").iterdir())
    store.pin("r0", False)
    with pytest.raises(KeyError):
        store.pin("nobody", True)
    store.close()


def test_ages_count_only_after_a_while_by_a_clock_that_did_not_jump(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history(tmp_path / "h.sqlite", [0, 10]).close()
    writer = history_writer.HistoryWriter(tmp_path / "h.sqlite", Waiting(), Retention(max_age_s=86_400.0))
    writer.attempt()
    begin_s, wall_s, passed, jumped = time.monotonic(), time.time(), [0.0], [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: begin_s + passed[0])
    monkeypatch.setattr(time, "time", lambda: wall_s + passed[0] + jumped[0])
    for seconds, jump, expected in ((1, 0, 3), (700, 86_400 * 999, 3), (5000, 0, 2)):
        passed[0], jumped[0] = seconds, jump
        writer.prune()
        with closing(sqlite3.connect(tmp_path / "h.sqlite")) as db:
            assert len(ids(db)) == expected, (seconds, jump)
    writer.close()


@pytest.mark.parametrize(("text", "days"), [("", 365), ("0", 0), ("30", 30), ("0.5", 0.5)])
def test_limits_come_from_the_environment(text: str, days: float) -> None:
    limits = LIMITS["public"]
    found = Retention.from_environment(limits, {"TOKENDYNO_HISTORY_DAYS": text, "TOKENDYNO_HISTORY_MIB": "1"})
    assert (found.days, found.max_bytes, found.max_ablation_bytes) == (days, 1 << 20, limits.ablation_bytes)
    assert Retention.from_environment(limits, {"TOKENDYNO_HISTORY_MIB": "0"}).max_bytes is None
    assert Retention.from_environment(limits, {}).max_bytes == limits.history_bytes


@pytest.mark.parametrize("text", ["-1", "soon", "nan", "inf", "1e300"])
def test_a_limit_that_is_no_number_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from backend.errors import InputError

    monkeypatch.setenv("TOKENDYNO_HISTORY_DAYS", text)
    with pytest.raises(InputError, match="TOKENDYNO_HISTORY_DAYS must be a number"):
        Bench(lambda plan: KINDS["subprocess"])


# --- a clock that jumps ---------------------------------------------------------------------------


@pytest.mark.parametrize("on_disk", [True, False])
def test_a_run_from_the_future_does_not_stay_the_newest(on_disk: bool, tmp_path: Path) -> None:
    store = Store(tmp_path / "h.sqlite" if on_disk else None)
    for run_id, at in (("future", time.time() + 9e6), ("now", time.time())):
        store.add(run_id, created(run_id, at))
    store.flush()
    assert store.newest(LOCAL) == "now"
    store.close()


def test_a_live_runs_time_does_not_follow_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunLog(Store(None)).create(created("a", time.time()))
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert 0 <= run.elapsed_s < 5


def test_messages_are_bounded_and_threads_end(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    store = Store(tmp_path / "h.sqlite")
    for n in range(100):
        store._writer.report(f"message {n}")
    assert len(store.messages) == history_writer.MAX_MESSAGES and store.messages[-1] == "message 99"
    assert [thread.name for thread in set(threading.enumerate()) - before]
    store.close()
    assert not set(threading.enumerate()) - before
