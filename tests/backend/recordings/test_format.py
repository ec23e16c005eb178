"""A recording holds a run as it is, and a file that is none, torn, newer or hostile gets one sentence."""

import lzma
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tests.support.runs import arm_records, created, ended
from tokendyno.backend.errors import InputError
from tokendyno.backend.recordings import recorded_runs
from tokendyno.backend.recordings.format import (
    MAX_DICTIONARY_BYTES,
    MAX_UNPACKED_BYTES,
    NAME,
    pack,
    read_recording,
    unpack,
    write_recording,
)
from tokendyno.backend.recordings.recorded_runs import (
    import_records,
    import_run,
    shipped_id,
    shipped_names,
    shipped_records,
)
from tokendyno.backend.runs import history_file
from tokendyno.backend.runs import store as store_module
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.records import Created, Record
from tokendyno.backend.runs.run import folded
from tokendyno.backend.runs.store import Store
from tokendyno.backend.views.sentences import origin_sentence

RUN: list[Record] = [created(owner="ada"), *arm_records("A", 60), *arm_records("B", 60), ended()]
WHOLE = pack(RUN)
GREEDY = [{"id": lzma.FILTER_LZMA2, "dict_size": 2 * MAX_DICTIONARY_BYTES}]


def packed(body: bytes, line: bytes = NAME + b"1\n") -> bytes:
    return line + lzma.compress(body)


def one_run(*records: Record) -> bytes:
    return packed(msgspec.msgpack.encode(records))


def without_plan() -> list[Record]:
    """A run whose ledger speaks of axes that were not planned."""
    first = created(arms="A")
    arms = [msgspec.structs.replace(first.arms[0], planned={})]
    return [msgspec.structs.replace(first, arms=arms), *arm_records("A", 4), ended()]


def test_a_run_comes_back_as_it_was_without_its_owner() -> None:
    first, *rest = unpack(WHOLE)
    assert isinstance(first, Created) and isinstance(RUN[0], Created)
    assert first == msgspec.structs.replace(RUN[0], owner="")
    assert rest == RUN[1:]


def test_512_tokens_of_two_arms_are_far_below_the_limit() -> None:
    draw = random.Random(0)  # times as a clock gives them: no two alike
    many: list[Record] = [created(), *arm_records("A", 64), *arm_records("B", 64), ended()]
    for i, record in enumerate(many):
        event = getattr(record, "event", None)
        if event is not None and type(event).__name__ == "Tokens":
            n, noise = 512, [draw.random() for _ in range(512)]
            long = msgspec.structs.replace(
                event,
                t_s=sorted(noise),
                latency_s=noise,
                kv_sliding=[i * 1024 for i in range(n)],
                kv_full=[i * 4096 for i in range(n)],
                memory_bytes=[draw.randrange(2**30) for _ in range(n)],
                ids=[draw.randrange(200_000) for _ in range(n)],
                text="".join(draw.choices("abcdefgh ", k=4 * n)),
            )
            many[i] = msgspec.structs.replace(record, event=long)
    assert len(pack(many)) < 60_000


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "column Save as"),
        (b"SQLite format 3\0" + WHOLE, "not a recording"),
        (NAME + b"2\n", "newer version"),
        (NAME + b"9" * 5000 + b"\n", "not a recording"),
        (WHOLE[:-20], "its end is missing"),
        (WHOLE[: len(NAME) + 2], "its end is missing"),
        (WHOLE + b"more", "something follows"),
        (WHOLE[:60] + bytes(40) + WHOLE[100:], "cannot be read"),
        (packed(bytes(MAX_UNPACKED_BYTES + 1)), "unpacks to more than"),
        (NAME + b"1\n" + lzma.compress(b"x", filters=GREEDY), "cannot be read"),
        (packed(b"\x91" * 5000), "does not know"),
        (packed(b"\xdd\xff\xff\xff\xff"), "does not know"),
        (packed(msgspec.msgpack.encode([{"record": "of the future"}])), "does not know"),
        (packed(msgspec.msgpack.encode([])), "not hold a whole run"),
        (packed(msgspec.msgpack.encode(RUN[1:])), "not hold a whole run"),
        (packed(msgspec.msgpack.encode([RUN[0], RUN[4], RUN[4], ended()])), "do not follow"),
        (one_run(msgspec.structs.replace(created(arms="A"), created=1e300), ended()), "do not follow"),
        (one_run(*without_plan()), "do not follow"),
    ],
)
def test_a_file_that_is_no_recording_gets_one_sentence(tmp_path: Path, data: bytes, said: str) -> None:
    file = tmp_path / "x.dyno"
    file.write_bytes(data)
    with pytest.raises(InputError, match=said) as raised:
        read_recording(file)
    assert str(raised.value).startswith(str(file)[:20]) and len(str(raised.value)) < 400


def test_a_run_that_goes_on_is_not_exported_and_a_file_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "run.dyno"
    file.write_bytes(b"before")
    with pytest.raises(InputError, match="has not ended"):
        write_recording(file, RUN[:-1])
    assert file.read_bytes() == b"before"
    write_recording(file, RUN)
    assert file.read_bytes() == WHOLE and list(tmp_path.iterdir()) == [file]
    with pytest.raises(InputError, match="cannot be written"):
        write_recording(tmp_path / "none" / "run.dyno", RUN)


def test_an_imported_run_is_the_importers_marked_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "run.dyno"
    write_recording(file, RUN)
    store = Store(tmp_path / "history.sqlite")
    run_id = import_run(file, store, "grace")
    run = RunLog(store).get(run_id)
    assert run is not None and run.id == run_id != "run1" and run.ended
    assert (run.created.owner, run.created.origin) == ("grace", "imported")
    assert origin_sentence(run.created).startswith("Recorded on ")
    assert run.arms["A"].ids == list(range(60)) and store.newest("grace") == run_id
    file.write_bytes(WHOLE[:-20])
    with pytest.raises(InputError):
        import_run(file, store, "grace")
    assert store.newest("grace") == run_id
    store.close()


def test_an_import_into_a_history_that_is_locked_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_file, "WAIT_S", 0.05)
    monkeypatch.setattr(store_module, "CHANGE_WAIT_S", 0.05)
    store = Store(tmp_path / "history.sqlite")
    with closing(sqlite3.connect(tmp_path / "history.sqlite")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match="locked"):
            import_records(RUN, store, "grace")
    store.close()


def test_shipped_runs_open_by_their_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_runs, "SHIPPED", tmp_path)
    write_recording(tmp_path / "one.dyno", RUN)
    (tmp_path / "torn.dyno").write_bytes(WHOLE[:-20])
    log = RunLog(Store(None), shipped_records)
    run = log.get(shipped_id("one"))
    assert run is not None and run.created.origin == "shipped" and shipped_names() == ["one", "torn"]
    assert [log.get(name) for name in (shipped_id("torn"), shipped_id("../one"), shipped_id("none"), "one")] == [
        None
    ] * 4


# --- recordings of schema 2 ------------------------------------------------------------------------

FOLDER = Path(__file__).parents[2] / "fixtures" / "recordings"
FILES = sorted(FOLDER.glob("*.dyno"))


def test_all_of_them_are_here() -> None:
    assert len(FILES) == 13


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_recording_of_schema_2_opens(file: Path) -> None:
    now = folded(read_recording(file)).snapshot()
    assert now.status == "done"
    for name, arm in now.arms.items():
        rows = {row.finding.axis: row.status for row in now.ledgers[name]}
        assert len(rows) > 15 and "tokens" in rows and "failed" not in rows.values()
        assert arm.finished is not None and arm.finished.wall_s > 0
