"""The history file: migrated; refused where it is none, is damaged, or a newer version wrote it."""

import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.backend.runs.test_store import created, tokens, whole
from tokendyno.backend.errors import InputError
from tokendyno.backend.runs import history_file
from tokendyno.backend.runs.history_file import MIGRATIONS, connect, open_file
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.records import Ended
from tokendyno.backend.runs.store import Store

NEWEST = history_file.newest()


def filled(path: Path) -> None:
    """A history of three runs, the last of a process that is gone."""
    store = Store(path)
    for run_id in "ab":
        store.add(run_id, *whole(run_id, 300))
    store.add("c", *whole("c", 300)[:-1])
    store.close()
    sql(path, "UPDATE runs SET pid = 4194305 WHERE id = 'c'")


def sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


def newer(path: Path) -> None:
    """Bring a history to the format of a newer version."""
    sql(path, "ALTER TABLE runs ADD COLUMN future TEXT", "CREATE TABLE future (x)", "PRAGMA user_version = 99")


@pytest.mark.parametrize("data", [b"not a database " * 500, bytes(8192)])
def test_a_damaged_file_is_said_and_left_alone(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    path.write_bytes(data)
    store = Store(path)
    store.add("new", *whole("new"))
    store.flush()
    sentence = "The history h.sqlite cannot be {}: the file is damaged. Put a backup in its place, or move it away"
    assert sentence.format("written") in store.trouble and store.read("new") == whole("new")
    with pytest.raises(InputError, match=sentence.format("read")):
        store.read("old")
    store.close()
    assert path.read_bytes() == data


MENDED: dict[str, Callable[[Path], object]] = {
    "empty": lambda p: p.write_bytes(b""),
    "record torn": lambda p: sql(p, "UPDATE records SET body = substr(body, 1, 20) WHERE run_id <> 'b' AND seq = 100"),
    "records missing": lambda p: sql(p, "DELETE FROM records WHERE run_id <> 'b' AND seq BETWEEN 10 AND 20"),
    "end missing": lambda p: sql(p, "DELETE FROM records WHERE run_id <> 'b' AND seq > 100"),
    "run without records": lambda p: sql(p, "DELETE FROM records WHERE run_id <> 'b'"),
    "created twice": lambda p: sql(p, "UPDATE records SET body = (SELECT body FROM records) WHERE seq = 5"),
}


@pytest.mark.parametrize("kind", MENDED)
def test_damage_of_a_part_costs_that_part_only(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    filled(path)
    MENDED[kind](path)
    store = Store(path)
    for run_id in "abc":
        run = RunLog(store).get(run_id)
        assert run is None or run.ended, (run_id, run.status)
    assert (RunLog(store).get("b") is None) == (kind == "empty")
    store.add("new", *whole("new"))
    assert store.read("new") == whole("new") and not store.trouble
    store.close()
    assert store.messages == []


def test_what_is_no_place_for_a_history_is_told_with_the_reason_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    sql(tmp_path / "foreign", "CREATE TABLE accounts (name)")
    for name, why in (
        ("folder", "it is not a regular file"),
        ("pipe", "it is not a regular file"),
        ("file/h.sqlite", "File exists"),
        ("foreign", "it is the database of another program"),
    ):
        with pytest.raises(InputError, match=rf"cannot be written \({why}\)\. Name another with --history"):
            Store(tmp_path / name)
    with closing(sqlite3.connect(tmp_path / "foreign")) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("accounts",)]


def test_a_new_history_is_private_gives_room_back_and_has_a_write_ahead_log(tmp_path: Path) -> None:
    path = tmp_path / "new" / "h.sqlite"
    before = os.umask(0)
    try:
        store = Store(path)
        store.add("a", created("a"))
        store.flush()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    store.close()
    with closing(connect(path)) as db:
        settings = [db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("auto_vacuum", "journal_mode")]
    assert settings == [2, "wal"]


@pytest.mark.parametrize("number", [0, history_file.OLDEST, history_file.newest()])
def test_a_file_of_an_older_format_is_backed_up_before_it_is_migrated(number: int, tmp_path: Path) -> None:
    """A new one and one of this format are not."""
    path = tmp_path / "h.sqlite"
    with closing(sqlite3.connect(path)) as db:
        for step in MIGRATIONS[: number - history_file.OLDEST + 1] if number else ():
            step(db)
        db.execute(f"PRAGMA user_version = {number}")
        db.commit()
    open_file(path)
    backups = list(tmp_path.glob("*backup*"))
    older = 0 < number < history_file.newest()
    assert [backup.name for backup in backups] == ([f"h.sqlite.backup-v{number}"] if older else [])
    assert all(stat.S_IMODE(backup.stat().st_mode) == 0o600 for backup in backups)


def test_a_migration_that_fails_leaves_the_file_as_it_was_beside_its_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.sqlite"
    filled(path)

    def broken(db: sqlite3.Connection) -> None:
        db.execute("DROP TABLE records")
        db.execute("SELECT * FROM nowhere")

    monkeypatch.setattr(history_file, "MIGRATIONS", [*MIGRATIONS, broken])
    store = Store(path)
    assert "cannot be written: no such table: nowhere" in store.trouble and store.messages == []
    assert store.read("a") == whole("a", 300), "it can still be read"
    store.close()
    for file in (path, tmp_path / f"h.sqlite.backup-v{NEWEST}"):
        with closing(sqlite3.connect(file)) as db:
            assert db.execute("PRAGMA user_version").fetchone() == (NEWEST,)
            assert db.execute("SELECT count(*) FROM records WHERE run_id = 'b'").fetchone() == (102,)


def test_a_file_of_a_newer_version_is_refused_with_what_to_do_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    filled(path)
    newer(path)
    before = path.read_bytes()
    for refuse in (Store, history_file.check_path):
        with pytest.raises(InputError) as refused:
            refuse(path)
        assert str(refused.value) == (
            "A newer version of tokendyno wrote the history h.sqlite (format 99; this one knows formats up to "
            f"{NEWEST}). It is left as it is. Update tokendyno, or name another file with --history "
            "(TOKENDYNO_HISTORY)."
        )
    assert path.read_bytes() == before and [file.name for file in tmp_path.iterdir() if file.suffix != ".sqlite"] == []


def test_a_newer_version_that_comes_while_the_app_runs_finds_nothing_written_after_it(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    store = Store(path)
    store.add("live", created("live"), tokens(0))
    store.flush()
    newer(path)
    store.add("live", tokens(3), Ended(1.0, "done"))
    store.flush()
    assert "Runs are not being kept. A newer version of tokendyno wrote the history h.sqlite" in store.trouble
    with pytest.raises(InputError, match="Update tokendyno"):
        store.pin("live", True)
    store.close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM records").fetchone() == (2,)
    assert store.messages == [
        "1 run could not be kept in the history, or only in part: tokendyno ended before it could be written."
    ]
