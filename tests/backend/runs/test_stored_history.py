"""A history that tokendyno 0.1.0 wrote still opens, record by record, and gives the same figures.

`stored_history.jsonl`: the records of one `compare` on pocket, one JSON record a line, as they lay in SQLite.
"""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backend.hosting.visitor import LOCAL
from backend.runs.arm_series import roofline_at
from backend.runs.log import RunLog
from backend.runs.records import Created, Ended, Predicted, RooflinePoint, decode_record, encode_record
from backend.runs.store import Store

LINES = (Path(__file__).parent / "stored_history.jsonl").read_bytes().splitlines()

FORMAT_1 = """
CREATE TABLE runs (id TEXT PRIMARY KEY, created REAL NOT NULL, model TEXT NOT NULL, status TEXT NOT NULL,
                   pid INTEGER NOT NULL, pid_started REAL NOT NULL);
CREATE INDEX runs_created ON runs (created);
CREATE TABLE records (run_id TEXT NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL,
                      PRIMARY KEY (run_id, seq)) WITHOUT ROWID;
PRAGMA user_version = 1;
"""


def stored(path: Path, lines: Sequence[bytes] = LINES) -> str:
    """Write the history file in format 1; returns the id of its run."""
    first = json.loads(LINES[0])
    with closing(sqlite3.connect(path)) as db:
        db.executescript(FORMAT_1)
        db.execute("INSERT INTO runs VALUES (?, ?, 'pocket', 'done', 1, 1.0)", (first["id"], first["created"]))
        db.executemany("INSERT INTO records VALUES (?, ?, ?)", [(first["id"], n, line) for n, line in enumerate(lines)])
        db.commit()
    return str(first["id"])


@pytest.mark.parametrize(
    ("first", "owner"),
    [({"owner": "ada"}, "ada"), ({}, LOCAL), (None, LOCAL)],
    ids=["a login", "no login", "a damaged record"],
)
def test_in_format_1_a_run_belongs_to_whom_its_record_names(
    first: dict[str, str] | None, owner: str, tmp_path: Path
) -> None:
    line = b"{" if first is None else json.dumps(json.loads(LINES[0]) | first).encode()
    run_id = stored(tmp_path / "h.sqlite", [line, *LINES[1:]])
    store = Store(tmp_path / "h.sqlite")
    assert store.messages == [] and store.newest(owner) == run_id and store.newest("bob") is None
    store.close()


@pytest.mark.parametrize("line", LINES, ids=[str(n) for n in range(len(LINES))])
def test_a_record_keeps_every_name_and_value_on_the_wire(line: bytes) -> None:
    assert kept(json.loads(line), json.loads(encode_record(decode_record(line))))


def kept(old: Any, new: Any) -> bool:
    """Whether every name and value of a stored record is in the new one, which may know more."""
    match old:
        case dict():
            return isinstance(new, dict) and all(name in new and kept(value, new[name]) for name, value in old.items())
        case list():
            return len(old) == len(new) and all(map(kept, old, new))
        case _:
            return bool(old == new)


def test_every_kind_of_record_is_in_it() -> None:
    kinds = {json.loads(line)["record"] for line in LINES}
    events = {json.loads(line)["event"]["type"] for line in LINES if b'"record":"arm"' in line}
    assert kinds == {"created", "arm", "foretold", "ended"}
    assert {"progress", "loaded", "started", "tokens", "samples", "finished"} <= events


def test_the_file_opens_and_its_run_is_whole(tmp_path: Path) -> None:
    run_id = stored(tmp_path / "h.sqlite")
    store = Store(tmp_path / "h.sqlite")
    records = store.read(run_id)
    assert store.messages == [] and store.newest(LOCAL) == run_id and len(records) == len(LINES)
    assert isinstance(records[0], Created) and isinstance(records[-1], Ended)
    run = RunLog(store).get(run_id)
    store.close()
    assert run is not None and run.status == "done"
    for name in "AB":
        summary = run.summary(name)
        assert (summary.tokens, summary.runs) == (8, 2)
        assert summary.roofline_s is not None and summary.kv_bytes == summary.kv_predicted_bytes
        assert run.arms[name].predicted_memory["total"] > 0 and len(run.ledger(name)) == 14


def test_a_stored_roofline_is_read_under_its_old_names() -> None:
    (first, *_) = (record for line in LINES if isinstance(record := decode_record(line), Predicted))
    assert len(first.roofline) >= 2 and all(isinstance(point, RooflinePoint) for point in first.roofline)
    assert first.roofline_note and first.roofline_work and first.kv[0].full > 0
    assert roofline_at(first.roofline, first.roofline[0].length) == first.roofline[0].seconds
