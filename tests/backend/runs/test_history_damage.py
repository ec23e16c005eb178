"""A history file that was damaged in any way: opened at once, never raised, never thrown away, and written again."""

import os
import random
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from backend.errors import InputError
from backend.hosting.visitor import LOCAL
from backend.runs.log import RunLog
from backend.runs.records import Ended
from backend.runs.store import Store
from tests.backend.runs.test_store import created, tokens

RUNS = ("a", "b", "c")


def filled(path: Path) -> None:
    """A history of three runs of 100 records, the last of a process that is gone."""
    store = Store(path)
    for run_id in RUNS:
        store.add(run_id, created(run_id))
        for first in range(0, 300, 3):
            store.add(run_id, tokens(first))
        if run_id != "c":
            store.add(run_id, Ended(9.0, "done"))
    store.close()
    sql(path, "UPDATE runs SET pid = 4194305 WHERE id = 'c'")


def sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


def trigger(what: str) -> str:
    return f"CREATE TRIGGER t AFTER INSERT ON records BEGIN {what}; END"


def body(value: str, where: str) -> str:
    return f"UPDATE records SET body = {value} WHERE {where}"


def replaced(path: Path, by: Callable[[], None]) -> None:
    path.unlink()
    by()


def patch(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def noise(count: int) -> bytes:
    return random.Random(5).randbytes(count)


LEAVE_A_LOG = """
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("UPDATE runs SET model = 9")
db.commit()
os._exit(0)
"""


def with_wal(path: Path) -> None:
    """Leave a write-ahead log behind, as a process does that is killed."""
    subprocess.run([sys.executable, "-c", LEAVE_A_LOG, str(path)], check=True)
    assert companion(path, "-wal").stat().st_size


def companion(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def half_wal(path: Path) -> None:
    with_wal(path)
    os.truncate(companion(path, "-wal"), companion(path, "-wal").stat().st_size // 2)


def wal_of_another(path: Path) -> None:
    other = path.with_name("other.sqlite")
    filled(other)
    with_wal(other)
    shutil.move(companion(other, "-wal"), companion(path, "-wal"))


SET_ASIDE: dict[str, Callable[[Path], object]] = {
    "cut to half": lambda p: os.truncate(p, p.stat().st_size // 2),
    "cut within its header": lambda p: os.truncate(p, 60),
    "cut after its first page": lambda p: os.truncate(p, 4096),
    "cut by one page": lambda p: os.truncate(p, p.stat().st_size - 4096),
    "header zeroed": lambda p: patch(p, 0, bytes(100)),
    "zeroed throughout": lambda p: p.write_bytes(bytes(p.stat().st_size)),
    "first page garbage": lambda p: patch(p, 100, noise(3996)),
    "second half garbage": lambda p: patch(p, p.stat().st_size // 2, noise(p.stat().st_size // 2)),
    "garbage throughout": lambda p: p.write_bytes(noise(50_000)),
    "a text": lambda p: p.write_text("not a database " * 500),
    "a picture": lambda p: p.write_bytes(b"\x89PNG\r\n\x1a\n" + noise(5000)),
    "format that no version has": lambda p: sql(p, "PRAGMA user_version = 16777222"),
    "negative format": lambda p: sql(p, "PRAGMA user_version = -3"),
    "format forgotten": lambda p: sql(p, "PRAGMA user_version = 0"),
    "table dropped": lambda p: sql(p, "DROP TABLE records"),
    "column dropped": lambda p: sql(p, "ALTER TABLE runs DROP COLUMN model"),
    "column renamed": lambda p: sql(p, "ALTER TABLE records RENAME COLUMN body TO text"),
    "view for a table": lambda p: sql(p, "DROP TABLE records", "CREATE VIEW records AS SELECT 1 run_id, 2 seq, 3 body"),
    "trigger that refuses": lambda p: sql(p, trigger("SELECT RAISE(FAIL, 'no')")),
    "trigger that deletes": lambda p: sql(p, trigger("DELETE FROM records")),
    "page size changed": lambda p: patch(p, 16, b"\x02\x00"),
    "format of a later SQLite": lambda p: patch(p, 18, b"\x63\x63"),
}  # fmt: skip
"""Damage of the whole file: it is kept under another name."""

MENDED: dict[str, Callable[[Path], object]] = {
    "one byte": lambda p: p.write_bytes(b"S"),
    "empty": lambda p: p.write_bytes(b""),
    "missing": lambda p: p.unlink(),
    "not in WAL mode": lambda p: sql(p, "PRAGMA journal_mode = DELETE"),
    "garbage as its log": lambda p: companion(p, "-wal").write_bytes(noise(20_000)),
    "log cut to half": half_wal,
    "log of another history": wal_of_another,
    "garbage as its index": lambda p: companion(p, "-shm").write_bytes(noise(32_768)),
    "garbage as its journal": lambda p: companion(p, "-journal").write_bytes(noise(9000)),
    "read-only": lambda p: p.chmod(0o400),
    "record torn": lambda p: sql(p, body("substr(body, 1, 20)", "run_id IN ('a', 'c') AND seq = 100")),
    "first record torn": lambda p: sql(p, body("'{'", "run_id IN ('a', 'c') AND seq = 0")),
    "record of another kind": lambda p: sql(p, body("""'{"record":"x"}'""", "seq = 50")),
    "record a number": lambda p: sql(p, body("7", "seq = 100")),
    "record no UTF-8": lambda p: sql(p, body("CAST(x'ff00fe' AS TEXT)", "seq = 100")),
    "record of 150 MB": lambda p: sql(p, body("zeroblob(150000000)", "run_id = 'a' AND seq = 50")),
    "record nested without end": lambda p: sql(p, body(f"'{'[' * 100_000}'", "seq = 50")),
    "records missing": lambda p: sql(p, "DELETE FROM records WHERE seq BETWEEN 10 AND 20"),
    "run without records": lambda p: sql(p, "DELETE FROM records WHERE run_id IN ('a', 'c')"),
    "records without run": lambda p: sql(p, "DELETE FROM runs"),
    "run of unknown arms": lambda p: sql(p, body("""replace(body, '"arm":"A"', '"arm":"Z"')""", "seq = 7")),
    "created twice": lambda p: sql(p, body("(SELECT body FROM records WHERE seq = 0)", "seq = 5")),
    "process id a text": lambda p: sql(p, "UPDATE runs SET pid = 'x', pid_started = 'y'"),
    "process id too large": lambda p: sql(p, "UPDATE runs SET pid = 9223372036854775807 WHERE id = 'c'"),
    "date a text": lambda p: sql(p, "UPDATE runs SET created = 'yesterday'"),
    "dates from the future": lambda p: sql(p, "UPDATE runs SET created = 9e12"),
    "dates without end": lambda p: sql(p, "UPDATE runs SET created = 9e999"),
    "status unknown": lambda p: sql(p, "UPDATE runs SET status = 'dreaming'"),
}  # fmt: skip
"""What only this or that run suffers from, or nobody."""

REFUSED: dict[str, Callable[[Path], object]] = {
    "a folder": lambda p: replaced(p, lambda: p.mkdir()),
    "a pipe": lambda p: replaced(p, lambda: os.mkfifo(p)),
    "a device": lambda p: replaced(p, lambda: p.symlink_to("/dev/full")),
    "a link to itself": lambda p: replaced(p, lambda: p.symlink_to(p)),
    "its log a folder": lambda p: companion(p, "-wal").mkdir(),
    "database of another program": lambda p: replaced(p, lambda: sql(p, "CREATE TABLE bookmarks (url)")),
}  # fmt: skip
"""What is no history at all: left alone, and another path is asked for."""


def usable(path: Path, limit_s: float = 10) -> Store:
    """Open it, keep a run in it, read everything in it, close it; within a limit."""
    begin_s = time.monotonic()
    store = Store(path)
    log = RunLog(store)
    log.create(created("new", time.time()))
    log.append("new", tokens(0))
    log.append("new", Ended(1.0, "done"))
    store.flush()
    for run_id in RUNS:
        run = RunLog(store).get(run_id)
        assert run is None or run.ended, (run_id, run.status)
    assert store.newest(LOCAL) == "new" and store.trouble == ""
    store.close()
    assert time.monotonic() - begin_s < limit_s
    again = Store(path)
    assert again.read("new")[1:] == [tokens(0), Ended(1.0, "done")]
    again.close()
    return store


@pytest.mark.parametrize("kind", SET_ASIDE)
def test_a_damaged_file_is_kept_aside_whole_and_a_new_one_begun(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    filled(path)
    SET_ASIDE[kind](path)
    spoiled = path.read_bytes()
    store = usable(path)
    (aside,) = (p for p in tmp_path.glob("h.sqlite.unreadable-*") if p.name.count("-") == 2)
    assert aside.read_bytes() == spoiled
    assert [aside.name in message for message in store.messages] == [True]


@pytest.mark.parametrize("kind", MENDED)
def test_damage_of_a_part_costs_that_part_only(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    filled(path)
    MENDED[kind](path)
    store = usable(path)
    assert store.messages == [] and not list(tmp_path.glob("h.sqlite.unreadable-*"))
    run = RunLog(store).get("b")
    assert (run is None) == (kind in ("empty", "missing", "one byte")), kind


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_history_is_left_alone(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    filled(path)
    REFUSED[kind](path)
    before = sorted(p.name for p in tmp_path.iterdir())
    with pytest.raises(InputError, match="--history"):
        Store(path)
    assert sorted(p.name for p in tmp_path.iterdir() if not p.name.endswith("-shm")) == before


def test_a_torn_record_ends_its_run_there_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    filled(path)
    sql(path, "UPDATE records SET body = substr(body, 1, 20) WHERE run_id = 'a' AND seq = 60")
    store = Store(path)
    run = RunLog(store).get("a")
    assert run is not None and run.status == "interrupted" and "could not be read" in run.message
    assert len(run.arms["A"].ids) == 59 * 3
    other = RunLog(store).get("b")
    assert other is not None and other.status == "done" and len(other.arms["A"].ids) == 300
    store.close()


@pytest.mark.parametrize("what", ["removed", "replaced", "garbage", "folder removed", "dropped table"])
def test_damage_while_the_app_runs_loses_no_running_run(what: str, tmp_path: Path) -> None:
    path = tmp_path / "sub" / "h.sqlite"
    store = Store(path)
    store.add("live", created("live"))
    for first in range(0, 30, 3):
        store.add("live", tokens(first))
    store.flush()
    match what:
        case "removed":
            path.unlink()
        case "replaced":
            path.rename(tmp_path / "moved")
            sql(path, "CREATE TABLE mine (x)", "DROP TABLE mine")
        case "garbage":
            with closing(sqlite3.connect(path)) as db:
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            patch(path, 0, noise(path.stat().st_size))
        case "folder removed":
            shutil.rmtree(path.parent)
        case "dropped table":
            sql(path, "DROP TABLE records")
    store.add("live", tokens(30))
    store.add("live", Ended(5.0, "done"))
    for _ in range(20):
        store.flush()
        if not store.trouble:
            break
    expected = [created("live"), *(tokens(first) for first in range(0, 33, 3)), Ended(5.0, "done")]
    assert store.read("live") == expected and store.messages, store.trouble
    store.close()
    again = Store(path)
    assert again.read("live") == expected and again.messages == []
    again.close()


def test_a_socket_in_its_place_is_refused_at_once(tmp_path: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as one:
        one.bind(str(tmp_path / "s"))
        with pytest.raises(InputError, match="regular file"):
            Store(tmp_path / "s")
