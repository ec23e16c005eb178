"""Which files are histories, of this version, a newer one or none."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import msgspec
import pytest

from backend.runs.history_schema import MAX_FORMAT, MIGRATIONS, Foreign, Newer, check_schema, is_newer
from backend.runs.records import encode_record
from tests.backend.runs.test_store import created


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        yield db


def brought_to(db: sqlite3.Connection, version: int) -> None:
    for step in MIGRATIONS[:version]:
        step(db)
    db.execute(f"PRAGMA user_version = {version}")


@pytest.mark.parametrize("version", range(len(MIGRATIONS) + 1))
def test_every_format_is_known_by_its_number_and_its_tables(version: int, db: sqlite3.Connection) -> None:
    brought_to(db, version)
    assert check_schema(db) == version and not db.in_transaction
    db.execute("CREATE TABLE more (x)")
    with pytest.raises(Foreign if not version else sqlite3.DatabaseError):
        check_schema(db)
    assert not db.in_transaction


@pytest.mark.parametrize(
    ("number", "newer"),
    [(0, False), (len(MIGRATIONS), False), (len(MIGRATIONS) + 1, True), (MAX_FORMAT, True), (MAX_FORMAT + 1, False)],
)
def test_a_number_is_that_of_a_newer_version_up_to_what_is_plausible(
    number: int, newer: bool, db: sqlite3.Connection
) -> None:
    assert is_newer(number) is newer
    brought_to(db, len(MIGRATIONS))
    db.execute(f"PRAGMA user_version = {number}")
    if number == len(MIGRATIONS):
        assert check_schema(db) == number
    else:
        with pytest.raises(Newer if newer else sqlite3.DatabaseError, match=f"format {number}"):
            check_schema(db)


@pytest.mark.parametrize("table", ["runs", "records"])
def test_one_table_of_a_history_tells_a_damaged_one_from_a_file_of_others(table: str, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE theirs (x)")
    with pytest.raises(Foreign):
        check_schema(db)
    db.execute(f"CREATE TABLE {table} (x)")
    with pytest.raises(sqlite3.DatabaseError, match="tables are not those of format 0"):
        check_schema(db)


def test_owners_and_searched_words_come_from_first_records_and_damaged_ones_stay_empty(db: sqlite3.Connection) -> None:
    brought_to(db, 1)
    mine = msgspec.structs.replace(created("mine"), owner="ada", model_label="A Model")
    for run_id, seq, body in (
        ("mine", 0, encode_record(mine)),
        ("torn", 0, b"\\xff"),
        ("torn", 1, encode_record(mine)),
    ):
        db.execute("INSERT OR IGNORE INTO runs VALUES (?, 1.0, 'm', 'done', 1, 1.0)", (run_id,))
        db.execute("INSERT INTO records VALUES (?, ?, ?)", (run_id, seq, body))
    for step in MIGRATIONS[1:]:
        step(db)
    rows = db.execute("SELECT id, owner, shared, pinned, label, kind, work, verdict FROM runs ORDER BY id").fetchall()
    assert rows == [
        ("mine", "ada", 0, 0, "A Model", "run", "256 new tokens", None), ("torn", "", 0, 0, "", "", "", None),
    ]  # fmt: skip
    assert "256 new tokens" in db.execute("SELECT words FROM runs WHERE id = 'mine'").fetchone()[0]
