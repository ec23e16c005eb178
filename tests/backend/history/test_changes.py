"""Names, notes and deletion: one's own runs only, all or nothing, and with a way back."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.kept_runs import history_of, made, run_on
from tokendyno.backend.errors import InputError
from tokendyno.backend.history.pins import Pin
from tokendyno.backend.history.search import Search, read_search
from tokendyno.backend.hosting.visitor import LOCAL_USER, Visitor
from tokendyno.backend.runs import store
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.retention import UNDO_S, remove_marked
from tokendyno.backend.runs.store import Store

EVE = Visitor("guest:eve")
RUNS = [made(run_on("one")), made(run_on("two")), made(run_on("open"))[:-1]]


def test_a_deleted_run_is_gone_at_once_and_can_be_had_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    with history_of(path, RUNS) as kept:
        kept.changes.rename("one", "kept name", LOCAL_USER)
        kept.changes.delete(["one", "two"], LOCAL_USER)
        assert [row.id for row in kept.listing.find(Search(), LOCAL_USER).rows] == ["open"]
        store = Store(path)  # another process, and a restart
        assert store.read("one") == [] and RunLog(store).get("two") is None and store.newest("") == "open"
        assert [first.id for first in store.recent("pocket", 9)] == ["open"]
        store.close()
        kept.changes.undelete(["one"], LOCAL_USER)
        row = kept.listing.one("one", LOCAL_USER)
        assert row is not None and row.name == "kept name"
    store = Store(path)
    assert store.read("one") == RUNS[0] and store.read("two") == []
    store.close()


@pytest.mark.parametrize("moved_s", [UNDO_S + 60, -UNDO_S - 60])  # later, and after a clock was set back
def test_after_an_hour_a_deleted_run_is_no_longer_in_the_file(moved_s: float, tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    secret = made(run_on("one", prompt="a secret prompt")), made(run_on("two"))
    with history_of(path, secret) as kept:
        kept.changes.delete(["one"], LOCAL_USER)
    with closing(sqlite3.connect(path)) as db:
        assert remove_marked(db, time.time() + 60) == 0
        assert remove_marked(db, time.time() + moved_s) == 1
        assert db.execute("SELECT DISTINCT run_id FROM records").fetchall() == [("two",)]
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert b"a secret prompt" not in path.read_bytes()
    with history_of(path) as kept, pytest.raises(InputError, match="It may have been removed"):
        kept.changes.undelete(["one"], LOCAL_USER)


def test_what_cannot_be_changed_is_said_and_nothing_is(tmp_path: Path) -> None:
    with history_of(tmp_path / "h.sqlite", RUNS) as kept:
        changes = kept.changes
        refused: list[tuple[Callable[[], object], str]] = [
            (lambda: changes.delete(["one", "nine"], LOCAL_USER), "You have no run 'nine'. Nothing was changed."),
            (lambda: changes.delete(["one", "open"], LOCAL_USER), "Stop it first"),
            (lambda: changes.delete([], LOCAL_USER), "Name 1 to"),
            (lambda: changes.delete(["one", "\ud800"], LOCAL_USER), "You have no run '\\ud800'. Nothing was changed."),
            (lambda: changes.delete(["one"], EVE), "You have no run 'one'"),
            (lambda: changes.undelete(["one"], LOCAL_USER), "no deleted run"),
            (lambda: changes.rename("two", "x", EVE), "You have no run 'two'"),
            (lambda: changes.rename("two", "x" * 81, LOCAL_USER), "Shorten it"),
            (lambda: changes.note("two", "a\x1b[31m", LOCAL_USER), "control characters"),
            (lambda: changes.share("two", True, LOCAL_USER), "Send the run's link instead"),
        ]
        for act, part in refused:
            with pytest.raises(InputError) as raised:
                act()
            assert part in str(raised.value)
        rows = kept.listing.find(Search(), LOCAL_USER).rows
        assert {(row.id, row.name, row.note) for row in rows} == {(i, "", "") for i in ("one", "two", "open")}


def test_half_of_a_character_is_in_nothing_that_is_kept(tmp_path: Path) -> None:
    with history_of(tmp_path / "h.sqlite", RUNS) as kept:
        for asked in ({"q": "a\udcff"}, {"model": "\ud800"}, {"machine": "\ud800"}):
            assert kept.listing.find(read_search(asked), LOCAL_USER).rows == []
        assert kept.listing.one("\ud800", LOCAL_USER) is None and kept.listing.named("\ud800", LOCAL_USER) == []
        with pytest.raises(InputError, match="None of these runs is kept"):
            kept.beside([Pin("\ud800", "A"), Pin("\ud800", "B")])


def test_a_history_that_cannot_be_written_loses_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "CHANGE_WAIT_S", 0.1)
    path = tmp_path / "h.sqlite"
    with history_of(path, RUNS) as kept:
        kept.changes.rename("one", "before", LOCAL_USER)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(InputError, match="cannot be written now"):
                kept.changes.rename("one", "after", LOCAL_USER)
            other.execute("ROLLBACK")
        row = kept.listing.one("one", LOCAL_USER)
        assert row is not None and row.name == "before"
