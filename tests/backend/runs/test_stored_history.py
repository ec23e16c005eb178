"""A history that an earlier tokendyno wrote still opens, record by record, and gives the same figures.

`stored_history.jsonl`: the records of one `compare` on pocket, one JSON record a line, as they lay in SQLite.
`fixtures/history-v6.sqlite`: a whole file of five runs, as the command line left it on 2026-11-27; it is never changed.
"""

import json
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tokendyno.backend.history.history import History
from tokendyno.backend.history.search import read_search
from tokendyno.backend.hosting.limits import LIMITS
from tokendyno.backend.hosting.visitor import LOCAL, LOCAL_USER
from tokendyno.backend.paths import IMPORTED_FROM
from tokendyno.backend.runs import history_file
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.records import Created, Ended, Predicted, RooflinePoint, decode_record, encode_record
from tokendyno.backend.runs.store import Store

LINES = (Path(__file__).parent / "stored_history.jsonl").read_bytes().splitlines()


def stored(path: Path, lines: Sequence[bytes] = LINES) -> str:
    """Write the history file in the oldest format; returns the id of its run."""
    first = json.loads(LINES[0])
    with closing(sqlite3.connect(path)) as db:
        history_file.MIGRATIONS[0](db)
        db.execute(f"PRAGMA user_version = {history_file.OLDEST}")
        row = (first["id"], first["created"], LOCAL)
        db.execute(
            "INSERT INTO runs (id, created, model, status, pid, pid_started, owner) "
            "VALUES (?, ?, 'pocket', 'done', 1, 1.0, ?)",
            row,
        )
        db.executemany("INSERT INTO records VALUES (?, ?, ?)", [(first["id"], n, line) for n, line in enumerate(lines)])
        db.commit()
    return str(first["id"])


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
        summary = run.snapshot().summaries[name]
        assert (summary.tokens, summary.runs) == (8, 2)
        assert summary.roofline_s is not None and summary.kv_bytes == summary.kv_predicted_bytes
        assert run.arms[name].predicted.memory["total"] > 0 and len(run.snapshot().ledgers[name]) == 15


def test_a_stored_roofline_is_read_under_its_old_names() -> None:
    (first, *_) = (record for line in LINES if isinstance(record := decode_record(line), Predicted))
    assert len(first.roofline) >= 2 and all(isinstance(point, RooflinePoint) for point in first.roofline)
    assert first.roofline_note and first.roofline_work and first.kv[0].full > 0


def test_a_whole_file_of_format_6_is_listed_searched_folded_renamed_and_deleted_from(tmp_path: Path) -> None:
    shutil.copy(IMPORTED_FROM / "tests" / "fixtures" / "history-v6.sqlite", path := tmp_path / "h.sqlite")
    store = Store(path)
    runs = RunLog(store)
    history = History(store, runs, LIMITS["local"])

    def listed(**search: str) -> list[str]:
        return [row.id[:4] for row in history.listing.find(read_search(search), LOCAL_USER).rows]

    assert store.messages == [] and listed() == ["8f0c", "ae6e", "1272", "418c", "b6ff"]
    assert listed(q="as it comes") == ["b6ff"] and listed(axis="cache=static") == ["1272", "418c"]
    assert listed(q="useful tokens") == ["ae6e"] and listed(model="gpt2") == []
    by_id = {
        row.id[:4]: (row.kind, row.status, row.name) for row in history.listing.find(read_search({}), LOCAL_USER).rows
    }
    assert by_id["b6ff"] == ("run", "done", "the first") and by_id["ae6e"] == ("batch", "done", "")
    assert store.query("SELECT substr(id, 1, 4) FROM runs WHERE pinned", ()) == [("b6ff",)]

    ids = {run_id[:4]: str(run_id) for (run_id,) in store.query("SELECT id FROM runs", ())}
    folded = {short: run for short, run_id in ids.items() if (run := runs.get(run_id))}
    assert {short: [len(arm.ids) for arm in run.arms.values()] for short, run in folded.items()} == {
        "b6ff": [12],
        "418c": [8],
        "1272": [8, 8],
        "ae6e": [0, 0],
        "8f0c": [17],
    }
    assert [folded[short].status for short in ("b6ff", "8f0c")] == ["done", "interrupted"]
    assert folded["418c"].arms["A"].text.startswith(", there was a lonely boy")
    compared = folded["1272"].snapshot()
    assert all(summary.latency_mean_s for summary in compared.summaries.values()) and len(compared.ledgers["B"]) == 25
    assert [summary.served for summary in folded["ae6e"].snapshot().batch_summaries.values()] == [3, 3]

    history.changes.rename(ids["418c"], "a boy", LOCAL_USER)
    history.changes.delete([ids["1272"]], LOCAL_USER)
    assert listed(q="boy") == ["418c"] and listed() == ["8f0c", "ae6e", "418c", "b6ff"]
    store.close()
