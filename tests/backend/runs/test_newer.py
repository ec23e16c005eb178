"""A history of a newer version stays as it is; the user is told, and runs wait for a place where they can be kept."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from backend.errors import InputError
from backend.history.history import History
from backend.hosting.limits import LIMITS
from backend.hosting.visitor import LOCAL_USER
from backend.runs.history_schema import MIGRATIONS, Newer
from backend.runs.log import RunLog
from backend.runs.newer import refuse_newer
from backend.runs.records import Ended
from backend.runs.store import Store
from tests.backend.runs.test_history_damage import filled, sql
from tests.backend.runs.test_store import created, tokens
from tests.support.processes import wait_for

NEW_TABLES = ("ALTER TABLE runs ADD COLUMN future TEXT", "CREATE TABLE future (x)", "PRAGMA user_version = 99")
SAID = (
    "Runs are not being kept: the history h.sqlite cannot be written, a newer version of tokendyno wrote it ({}format "
    f"99; this one knows formats up to {len(MIGRATIONS)}), and it is left as it is. Update tokendyno, or name another "
    "file with --history (TOKENDYNO_HISTORY)."
)


def newer(path: Path, version: str = "") -> None:
    """A history of three runs that a newer version has brought to its own format."""
    filled(path)
    first = msgspec.structs.replace(created("late"), created=9e9, versions={"tokendyno": version})
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE runs SET created = 9e9 WHERE id = 'b'")
        db.execute("UPDATE records SET body = ? WHERE run_id = 'b' AND seq = 0", (msgspec.json.encode(first),))
        db.commit()
    sql(path, *NEW_TABLES)
    path.chmod(0o644)


def state(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Every file: its content, its mode, and when it was changed."""
    return {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mode, path.stat().st_mtime_ns)
        for path in folder.iterdir()
    }


def one_run(store: Store) -> None:
    store.add("new", created("new"), tokens(0))
    store.add("new", Ended(1.0, "done"))
    store.flush()


@pytest.mark.parametrize(("version", "told"), [("9.1.0", "9.1.0, "), ("", ""), ("<b>", ""), ("9" * 99, "")])
def test_it_is_left_untouched_and_told_while_runs_wait_in_memory(version: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    newer(path, version)
    before = state(tmp_path)
    store = Store(path)
    assert store.messages == [] and store.trouble == SAID.format(told)
    one_run(store)
    assert store.read("new") == [created("new"), tokens(0), Ended(1.0, "done")] and store.newest("") == "new"
    assert "3 records of 1 run wait in memory" in store.trouble
    with pytest.raises(InputError, match=r"cannot be read: a newer version of tokendyno wrote it .* Update tokendyno"):
        store.read("a")
    with pytest.raises(InputError, match=r"a newer version of tokendyno wrote it.*Nothing was changed"):
        History(store, RunLog(store), LIMITS["local"]).changes.rename("a", "mine", LOCAL_USER)
    store.close()
    assert state(tmp_path) == before
    assert [message.split(":")[0] for message in store.messages] == [
        "1 run could not be kept in the history, or only in part"
    ]


def test_a_file_that_an_older_version_set_aside_is_mentioned_until_it_is_taken_back(tmp_path: Path) -> None:
    path, aside = tmp_path / "h.sqlite", tmp_path / "h.sqlite.unreadable-20261130-120000"
    filled(aside)
    filled(tmp_path / "h.sqlite.unreadable-20261201-120000")
    sql(tmp_path / "h.sqlite.unreadable-20261201-120000", *NEW_TABLES)
    (tmp_path / "h.sqlite.unreadable-20261202-120000").write_bytes(aside.read_bytes()[:20_000])
    Store(tmp_path / "h.sqlite.unreadable-20261203-120000").close()
    before = state(tmp_path)
    said = (
        "h.sqlite.unreadable-20261130-120000 holds 3 runs: an older version of tokendyno could not read it, and this "
        "one can. Open it with --history, or, to go on with it, end tokendyno and let it and h.sqlite swap names."
    )
    for _ in range(2):
        store = Store(path)
        assert store.messages == [said]
        store.close()
    after = state(tmp_path)
    assert {name: after[name][0] for name in before} == {name: found[0] for name, found in before.items()}
    path.rename(tmp_path / "later")
    aside.rename(path)
    store = Store(path)
    assert store.messages == [] and len(store.read("a")) == 102
    store.close()


def test_once_it_is_moved_away_what_waits_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    newer(path)
    store = Store(path)
    one_run(store)
    path.rename(tmp_path / "theirs")
    wait_for(lambda: not store.trouble, 20, "the new file")
    assert store.read("new")[-1] == Ended(1.0, "done")
    store.close()
    again = Store(path)
    assert again.read("new")[0] == created("new") and again.messages == [] and again.trouble == ""
    again.close()


def test_a_newer_version_that_comes_while_the_app_runs_finds_nothing_written_after_it(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    store = Store(path)
    store.add("live", created("live"), tokens(0))
    store.flush()
    sql(path, *NEW_TABLES)  # in the log of the file: its first bytes are still those of this version
    store.add("live", tokens(3))
    store.flush()
    assert "a newer version of tokendyno wrote it (format 99" in store.trouble
    store.add("live", Ended(1.0, "done"))
    store.flush()
    assert not list(tmp_path.glob("*.unreadable-*")), "nothing is set aside"
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM records").fetchone() == (2,)
    path.rename(tmp_path / "theirs")
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    wait_for(lambda: not store.trouble, 20, "the new file")
    assert store.read("live") == [created("live"), tokens(0), tokens(3), Ended(1.0, "done")], "whole in the new file"
    store.close()


def test_a_change_in_an_open_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    filled(path)
    store = Store(path)
    sql(path, "PRAGMA user_version = 99")
    with pytest.raises(Newer), store.change() as db:
        db.execute("DELETE FROM runs")
    store.close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM runs").fetchone() == (3,)


def test_databases_of_others_and_other_files_are_none(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    sql(path, "CREATE TABLE bookmarks (url)", "PRAGMA user_version = 99")
    refuse_newer(path)
    with pytest.raises(InputError, match="it is the database of another program"):
        Store(path)
    for data in (b"", b"SQLite format 3\0", b"x" * 100, b"SQLite format 3\0" + bytes(47) + b"\x63" + bytes(50)):
        path.write_bytes(data)
        refuse_newer(path)
    refuse_newer(tmp_path / "none")
