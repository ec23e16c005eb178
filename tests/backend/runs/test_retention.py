"""What goes and what stays, at the edges of its limits."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.backend.ablation.test_journal import HEADING
from tests.backend.runs.test_store import created, whole
from tests.support.processes import wait_for
from tokendyno.backend.ablation.journal import Journal
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.limits import LIMITS
from tokendyno.backend.runs.retention import (
    AT_ONCE,
    Deleted,
    Retention,
    prune,
    prune_ablations,
    remove_marked,
    used_bytes,
)
from tokendyno.backend.runs.store import Store

NOW_S = 2_000_000_000.0


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Runs 0 to 19, begun a second apart from 1,000 s ago on, and one that goes on."""
    store = Store(tmp_path / "h.sqlite")
    for n in range(20):
        store.add(f"r{n:02}", created(f"r{n:02}", NOW_S - 1_000 + n), *whole("x")[1:])
    store.add("running", created("running", 1.0))
    store.close()
    with closing(sqlite3.connect(tmp_path / "h.sqlite", isolation_level=None)) as db:
        yield db


def left(db: sqlite3.Connection) -> int:
    runs: int = db.execute("SELECT count(*) FROM runs").fetchone()[0]
    assert db.execute("SELECT count(DISTINCT run_id) FROM records").fetchone() == (runs,)
    return runs


def test_a_run_is_too_old_from_the_moment_after_its_time_on(db: sqlite3.Connection) -> None:
    assert prune(db, Retention(max_age_s=1_000.0), NOW_S) == Deleted()
    assert prune(db, Retention(max_age_s=999.0), NOW_S) == Deleted(old=1)
    assert prune(db, Retention(max_age_s=1.0), NOW_S) == Deleted(old=AT_ONCE) == Deleted(old=16)
    assert prune(db, Retention(max_age_s=1.0), NOW_S) == Deleted(old=3) and left(db) == 1


def test_a_file_of_exactly_the_limit_is_not_too_large(db: sqlite3.Connection) -> None:
    size = used_bytes(db)
    assert prune(db, Retention(max_bytes=size), NOW_S) == Deleted()
    assert prune(db, Retention(max_bytes=size - 1), NOW_S) == Deleted(large=16)
    assert prune(db, Retention(), NOW_S) == Deleted()


def test_pinned_and_running_runs_never_go_and_named_ones_last_and_not_for_their_age(db: sqlite3.Connection) -> None:
    db.execute("UPDATE runs SET pinned = 1 WHERE id = 'r00'")
    db.execute("UPDATE runs SET name = 'mine' WHERE id = 'r01'")
    db.execute("UPDATE runs SET note = 'mine' WHERE id = 'r02'")

    def ids(rule: Retention) -> list[str]:
        while prune(db, rule, NOW_S) != Deleted():
            pass
        return [run_id for (run_id,) in db.execute("SELECT id FROM runs ORDER BY id")]

    assert ids(Retention(max_age_s=1.0)) == ["r00", "r01", "r02", "running"]
    assert ids(Retention(max_bytes=1)) == ["r00", "running"], "a stranger's names must not fill the disk"


@pytest.mark.parametrize(
    ("deleted", "sentence"),
    [
        (Deleted(1, 0, 0), "1 run older than 1 day."),
        (Deleted(0, 2_000, 1), "2,000 of the oldest runs, to stay below 5 MiB, 1 ablation, too old or the oldest of"),
    ],
)
def test_what_was_deleted_is_said_with_the_limit(deleted: Deleted, sentence: str) -> None:
    said = Retention(86_400.0, 5 << 20).sentence(deleted)
    assert said.startswith(f"Deleted from the history since the start: {sentence}")


def test_the_store_deletes_runs_and_ablations_that_are_too_large_and_says_so_once(tmp_path: Path) -> None:
    (tmp_path / "ablations").mkdir()
    (tmp_path / "ablations" / "one.jsonl").write_bytes(bytes(100))
    store = Store(tmp_path / "h.sqlite", Retention(max_bytes=1, max_ablation_bytes=99))
    for n in range(20):
        store.add(f"r{n}", created(f"r{n}"), *whole("x")[1:])
    wait_for(lambda: store.messages and "1 ablation" in store.messages[0], 10, "old runs to be deleted")
    (message,) = store.messages
    assert "20 of the oldest runs, to stay below 0 MiB, 1 ablation" in message
    assert store.read("r0") == [] and not list((tmp_path / "ablations").iterdir())
    store.close()


@pytest.mark.parametrize("way", [1, -1], ids=["passed", "set back"])
def test_a_deleted_run_can_be_had_back_for_an_hour(way: int, db: sqlite3.Connection) -> None:
    """By a clock that may have jumped either way since."""
    db.execute("UPDATE runs SET deleted_at = ? WHERE id < 'r18'", (NOW_S,))
    assert remove_marked(db, NOW_S + way * 3_600) == 0
    assert remove_marked(db, NOW_S + way * 3_601) == 18 and left(db) == 3
    assert db.execute("PRAGMA secure_delete").fetchone() == (0,)


def test_what_fails_in_the_middle_leaves_runs_whole_and_the_file_open_for_others(db: sqlite3.Connection) -> None:
    db.execute("CREATE TRIGGER no BEFORE DELETE ON runs WHEN old.id = 'r03' BEGIN SELECT raise(FAIL, 'no'); END")
    with pytest.raises(sqlite3.IntegrityError):
        prune(db, Retention(max_bytes=1), NOW_S)
    assert not db.in_transaction and left(db) == 21
    db.execute("UPDATE runs SET deleted_at = 1 WHERE id = 'r03'")
    with pytest.raises(sqlite3.IntegrityError):
        remove_marked(db, NOW_S)
    assert not db.in_transaction and db.execute("PRAGMA secure_delete").fetchone() == (0,)


def test_room_that_was_freed_is_given_back(db: sqlite3.Connection) -> None:
    before = db.execute("PRAGMA page_count").fetchone()[0]
    prune(db, Retention(max_bytes=1), NOW_S)
    assert db.execute("PRAGMA page_count").fetchone()[0] < before - 3


def journals(folder: Path, *sizes: int) -> Retention:
    """Journals of so many bytes, last written a second apart from 100 s ago on."""
    for n, size in enumerate(sizes):
        (folder / f"{n}.jsonl").write_bytes(bytes(size))
        os.utime(folder / f"{n}.jsonl", (NOW_S - 100 + n,) * 2)
    return Retention(max_age_s=99.0, max_ablation_bytes=sum(sizes))


def test_an_ablation_goes_the_moment_after_its_time_and_not_at_the_limit_of_all(tmp_path: Path) -> None:
    rule = journals(tmp_path, 10, 20, 30)
    assert prune_ablations(tmp_path, rule, NOW_S - 1) == Deleted()
    assert prune_ablations(tmp_path, rule, NOW_S) == Deleted(ablations=1)
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["1", "2"]
    assert prune_ablations(tmp_path, Retention(max_ablation_bytes=50), NOW_S) == Deleted()
    assert prune_ablations(tmp_path, Retention(max_ablation_bytes=49), NOW_S) == Deleted(ablations=1)
    assert [path.stem for path in tmp_path.iterdir()] == ["2"]
    assert prune_ablations(tmp_path, Retention(), NOW_S + 1e9) == Deleted(), "no limit"


def test_an_ablation_that_goes_on_is_kept(tmp_path: Path) -> None:
    with closing(Journal(tmp_path / "new.jsonl", HEADING)):
        os.utime(tmp_path / "new.jsonl", (0, 0))
        assert prune_ablations(tmp_path, Retention(max_age_s=1.0), NOW_S) == Deleted()
    assert prune_ablations(tmp_path, Retention(max_age_s=1.0), NOW_S) == Deleted(ablations=1)


@pytest.mark.parametrize(
    ("days", "mib", "expected"),
    [
        ("0", "0", (None, None)),
        ("1", "2", (86_400.0, 2 << 20)),
        ("0.5", "0.5", (43_200.0, 1 << 19)),
        (" 7 ", "999999999", (604_800.0, 999_999_999 << 20)),
    ],
)
def test_limits_are_days_and_mib_and_nothing_lifts_one_but_0(
    days: str, mib: str, expected: tuple[float | None, int | None]
) -> None:
    env = {"TOKENDYNO_HISTORY_DAYS": days, "TOKENDYNO_HISTORY_MIB": mib}
    retention = Retention.from_environment(LIMITS["public"], env)
    assert (retention.max_age_s, retention.max_bytes) == expected
    assert retention.days == (expected[0] or 0) / 86_400
    assert Retention.from_environment(LIMITS["public"], {}).max_bytes == LIMITS["public"].history_bytes


@pytest.mark.parametrize("text", ["1e9", "-0.1", "a lot", "nan"])
def test_a_limit_beyond_all_reason_is_refused_with_one_that_works(text: str) -> None:
    with pytest.raises(InputError, match=r"TOKENDYNO_HISTORY_MIB must be a number from 0 .* Set it to \d+, say"):
        Retention.from_environment(LIMITS["public"], {"TOKENDYNO_HISTORY_MIB": text})
