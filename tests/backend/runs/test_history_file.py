"""The history file itself: how it is opened, what is refused, and what is set aside."""

import errno
import itertools
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from backend.errors import InputError
from backend.runs import history_file
from backend.runs.history_file import connect, damage_of, identity, open_file, set_aside
from backend.runs.history_schema import MIGRATIONS
from backend.runs.records import Ended, encode_record
from backend.runs.store import Store
from tests.backend.runs.test_store import created, stored, tokens


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE accounts (name)")


def test_what_is_no_place_for_a_history_is_told_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "h.sqlite-wal").mkdir()
    foreign(tmp_path / "foreign")
    for name, why in (
        ("folder", "Is a directory"), ("pipe", "it is not a regular file"), ("h.sqlite", "h.sqlite-wal is a folder"),
        ("foreign", "it is the database of another program"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=rf"cannot be written \({why}\)\. Name another with --history"):
            open_file(tmp_path / name)
    with closing(sqlite3.connect(tmp_path / "foreign")) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("accounts",)], "it is left as it is"


def test_an_error_without_a_text_of_its_own_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for error, why in ((OSError("odd"), "odd"), (OSError(errno.EACCES, "Permission denied"), "Permission denied")):

        def fail(path: Path, error: OSError = error) -> None:
            raise error

        monkeypatch.setattr(history_file, "_touch", fail)
        with pytest.raises(InputError, match=rf"\({why}\)"):
            history_file.check_path(tmp_path / "h.sqlite")


def test_what_may_pass_is_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left")

    monkeypatch.setattr(history_file, "_touch", full)
    history_file.check_path(tmp_path / "h.sqlite")


def test_damage_is_told_and_what_cannot_be_told_now_is_none(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    assert damage_of(path) == "", "there is none"
    open_file(path)
    assert damage_of(path) == ""
    foreign(tmp_path / "foreign")
    assert damage_of(tmp_path / "foreign") == "it is the database of another program"
    path.write_bytes(b"no database at all " * 99)
    assert damage_of(path) == "file is not a database"


def test_a_file_is_known_by_its_place_on_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    assert identity(path) is None
    path.touch()
    before = identity(path)
    assert before == identity(path) and before is not None
    path.rename(tmp_path / "other")
    path.touch()
    assert identity(path) != before == identity(tmp_path / "other")


def test_a_new_history_lies_in_a_folder_of_its_owner_and_gives_room_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "h.sqlite"
    before = os.umask(0)
    try:
        assert open_file(path) == ""
    finally:
        os.umask(before)
    assert (path.parent.stat().st_mode & 0o7777, path.stat().st_mode & 0o7777) == (0o700, 0o600)
    with closing(connect(path)) as db:
        settings = [db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("auto_vacuum", "journal_mode")]
        assert settings == [2, "wal"], "incremental, and with a write-ahead log"
        settings = [db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "trusted_schema")]
        assert settings == [1, 0]


def test_what_others_can_read_is_mended_and_its_owners_bits_are_left(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    open_file(path)
    path.chmod(0o604)
    (tmp_path / "h.sqlite.backup-v1").touch(0o400)
    (tmp_path / "h.sqlite.unreadable-1").touch(0o440)
    open_file(path)
    modes = {found.name: found.stat().st_mode & 0o777 for found in tmp_path.iterdir()}
    assert (modes["h.sqlite"], modes["h.sqlite.backup-v1"], modes["h.sqlite.unreadable-1"]) == (0o600, 0o400, 0o600)


@pytest.mark.parametrize("version", range(len(MIGRATIONS) + 1))
def test_a_file_of_an_older_format_is_backed_up_before_it_is_migrated(version: int, tmp_path: Path) -> None:
    """A new one and one of this format are not."""
    path = tmp_path / "h.sqlite"
    with closing(sqlite3.connect(path)) as db:
        for step in MIGRATIONS[:version]:
            step(db)
        db.execute(f"PRAGMA user_version = {version}")
        db.commit()
    assert open_file(path) == ""
    backups = [found.name for found in tmp_path.glob("*backup*")]
    assert backups == ([f"h.sqlite.backup-v{version}"] if 0 < version < len(MIGRATIONS) else [])


def test_a_step_that_another_process_took_meanwhile_is_not_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.sqlite"
    use_wal = history_file._use_wal

    def raced(db: sqlite3.Connection) -> None:
        use_wal(db)
        monkeypatch.setattr(history_file, "_use_wal", use_wal)
        history_file._prepare(path)

    monkeypatch.setattr(history_file, "check_schema", lambda db: 0)
    monkeypatch.setattr(history_file, "_use_wal", raced)
    assert open_file(path) == ""
    with closing(connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)


def test_a_run_that_had_only_begun_ends_where_it_began(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    store = Store(path)
    store.add("a", created("a"))
    store.add("b", created("b"), tokens(3))
    store.add("c", created("c"), tokens(0))
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE runs SET pid = 4194305")
        db.execute("UPDATE records SET body = x'ff' WHERE run_id = 'c' AND seq = 1")
    open_file(path)
    ends = {run_id: stored(path, run_id)[-1] for run_id in "ab"}
    assert {run_id: (end.status, end.at_s) for run_id, end in ends.items() if isinstance(end, Ended)} == {
        "a": ("interrupted", 0.0), "b": ("interrupted", 3.0),
    }  # fmt: skip
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT DISTINCT status FROM runs").fetchall() == [("interrupted",)]
        assert db.execute("SELECT count(*) FROM records WHERE run_id = 'c'").fetchone() == (2,), "it is told when read"


@pytest.mark.parametrize(
    ("code", "late_s", "tries"), [("BUSY", 0.0, 3), ("BUSY", 1e9, 1), ("IOERR", 0.0, 1)], ids=["waits", "late", "other"]
)
def test_only_a_busy_file_is_waited_for_and_not_for_ever(
    code: str, late_s: float, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    class Busy:
        def execute(self, sql: str) -> None:
            calls.append(sql)
            if len(calls) < 3:
                error = sqlite3.OperationalError(code)
                error.sqlite_errorcode = getattr(sqlite3, f"SQLITE_{code}")
                raise error

    times = itertools.chain([0.0], itertools.repeat(late_s))
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    if tries == 3:
        history_file._use_wal(Busy())  # type: ignore[arg-type]
    else:
        with pytest.raises(sqlite3.OperationalError):
            history_file._use_wal(Busy())  # type: ignore[arg-type]
    assert len(calls) == tries


@pytest.mark.parametrize("wait_s", [None, 0.05])
def test_a_connection_waits_for_a_lock_as_long_as_it_is_told(wait_s: float | None, tmp_path: Path) -> None:
    open_file(tmp_path / "h.sqlite")
    with closing(connect(tmp_path / "h.sqlite", wait_s)) as db:
        waits_ms = db.execute("PRAGMA busy_timeout").fetchone()[0]
    assert waits_ms == (2_000 if wait_s is None else 50)


def test_a_connection_serves_any_thread_and_reads_damaged_text(tmp_path: Path) -> None:
    from threading import Thread

    open_file(tmp_path / "h.sqlite")
    with closing(connect(tmp_path / "h.sqlite")) as db:
        found: list[tuple[str]] = []
        reader = Thread(target=lambda: found.extend(db.execute("SELECT CAST(x'61ff' AS TEXT)").fetchall()))
        reader.start()
        reader.join()
    assert found == [("a\ufffd",)]


def test_the_log_of_a_file_that_is_set_aside_goes_with_it(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).write_text(suffix)
    aside = set_aside(path)
    assert {found.name.removeprefix(aside.name): found.read_text() for found in tmp_path.iterdir()} == {
        suffix: suffix for suffix in ("", "-wal", "-shm", "-journal")
    }


@pytest.mark.parametrize("spoil", [lambda path: None, lambda path: path.write_bytes(b"no database at all " * 99)])
def test_a_history_that_cannot_be_read_is_told_with_its_new_name(
    spoil: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / "h.sqlite"
    open_file(path)
    spoil(path)
    message = open_file(path)
    aside = [found.name for found in tmp_path.glob("*unreadable*")]
    assert message == (
        f"The history file h.sqlite could not be read (file is not a database). It was kept as {aside[0]}, and a new "
        "one was begun. If you have a backup, put it in its place."
        if aside
        else ""
    )
    assert damage_of(path) == ""


def test_a_number_that_nothing_can_follow_does_not_keep_a_run_going(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    store = Store(path)
    store.add("a", created("a"), tokens(0))
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE runs SET pid = 4194305")
        db.execute("INSERT INTO records VALUES ('a', 9223372036854775807, ?)", (encode_record(tokens(3)),))
    open_file(path)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT status FROM runs").fetchone() == ("interrupted",)
