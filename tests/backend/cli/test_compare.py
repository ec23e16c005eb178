"""`compare` and `run` with real workers: the document, the table, the notes."""

import json
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.command_line import MODEL, SHORT, cli
from tests.support.ledger import unsound
from tokendyno.backend.cli.main import main
from tokendyno.backend.optimizations import axis_names
from tokendyno.backend.views.schema import Document

USERS_OWN = ("random.py", "queue.py", "tokendyno.py", "backend/__init__.py")
EXECUTED = "executed"


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Any], str, Path]]:
    """Dynamic against unwindowed across the window: document, standard error, folder with a corrupt history and with
    modules that have the names of others."""
    folder = tmp_path_factory.mktemp("compared")
    (folder / "history.sqlite").write_bytes(b"this is no database " * 100)
    (folder / "backend").mkdir()
    for name in USERS_OWN:
        (folder / name).write_text(f"open({str(folder / EXECUTED)!r}, 'a').write({name!r})\n")
    ran = cli(
        *shlex.split(
            "compare --a dtype=float32,attention=sdpa --b dtype=float32,cache=unwindowed --prompt-tokens 116 "
            "--max-new-tokens 24 --ignore-eos --repeats 1 --json - --history history.sqlite"
        ),
        cwd=folder,
    )
    assert ran.returncode == 0, ran.stderr
    yield json.loads(ran.stdout), ran.stderr, folder


def test_the_document_on_standard_output_has_every_key_of_the_promise(
    compared: tuple[dict[str, Any], str, Path],
) -> None:
    document, err, _ = compared
    assert {"schema", "model", "machine", "versions", "arms"} <= set(document)
    assert (document["schema"], document["model"], document["status"]) == (3, "pocket", "done")
    assert {"torch", "transformers", "python"} <= set(document["versions"])
    assert [arm["name"] for arm in document["arms"]] == ["A", "B"]
    for arm in document["arms"]:
        assert arm["load"]["stages_s"]["read"] > 0 and arm["load"]["peak_bytes"]["host"] > arm["weight_bytes"]
        for record in ("requested", "planned", "effective"):
            assert set(arm[record]) == set(axis_names())
        assert [row["axis"] for row in arm["evidence"]] == [*axis_names(), "tokens"]
        assert all({"axis", "requested", "planned", "effective", "proof"} <= set(row) for row in arm["evidence"])
        assert all(row["proof"] for row in arm["evidence"])
        assert {"load", "warmup", "run"} <= set(arm["phases_s"])
    assert "Traceback" not in err


def test_no_process_imports_from_the_folder_of_the_user(compared: tuple[dict[str, Any], str, Path]) -> None:
    assert not (compared[2] / EXECUTED).exists()


def test_the_document_is_one_of_the_schema(compared: tuple[dict[str, Any], str, Path]) -> None:
    again = msgspec.to_builtins(msgspec.convert(compared[0], Document))
    assert json.loads(json.dumps(again)) == compared[0]


def test_every_series_has_one_entry_for_each_generated_token(compared: tuple[dict[str, Any], str, Path]) -> None:
    for arm in compared[0]["arms"]:
        assert arm["prompt_tokens"] == 116
        series = [
            arm["latency_s"],
            arm["time_s"],
            arm["memory_bytes"],
            arm["token_ids"],
            *arm["kv_bytes"].values(),
            *arm["kv_bytes_predicted"].values(),
        ]
        assert {len(values) for values in series} == {24}
        assert all(latency > 0 for latency in arm["latency_s"])
        assert arm["time_s"] == sorted(arm["time_s"])
        assert arm["ttft_s"] == arm["latency_s"][0]
        assert sum(arm["latency_s"]) == pytest.approx(arm["time_s"][-1])
        assert min(arm["memory_bytes"]) > 50 << 20


def test_kv_bytes_are_as_predicted_and_the_window_is_a_plateau_in_one_arm_alone(
    compared: tuple[dict[str, Any], str, Path],
) -> None:
    dynamic, unwindowed = compared[0]["arms"]
    for arm in (dynamic, unwindowed):
        assert arm["kv_bytes"] == arm["kv_bytes_predicted"]
    assert MODEL.window is not None
    at = MODEL.window - 1 - 116
    sliding = dynamic["kv_bytes"]["sliding"]
    assert all(a < b for a, b in pairwise(sliding[: at + 1]))
    assert set(sliding[at:]) == {sliding[at]}
    for series in (unwindowed["kv_bytes"]["sliding"], unwindowed["kv_bytes"]["full"], dynamic["kv_bytes"]["full"]):
        assert all(a < b for a, b in pairwise(series))
    assert sliding[: at + 1] == unwindowed["kv_bytes"]["sliding"][: at + 1]


def test_the_two_caches_write_the_same_and_a_fallback_is_told(compared: tuple[dict[str, Any], str, Path]) -> None:
    document, err, _ = compared
    dynamic, unwindowed = document["arms"]
    assert dynamic["token_ids"] == unwindowed["token_ids"]
    assert dynamic["text"] == unwindowed["text"] != ""
    assert (dynamic["effective"]["cache"], unwindowed["effective"]["cache"]) == ("dynamic", "unwindowed")
    assert dynamic["requested"]["attention"] == "sdpa"
    assert dynamic["planned"]["attention"] == dynamic["effective"]["attention"] == "eager"
    assert "fallback (arm A, attention): PyTorch's scaled_dot_product_attention does not support" in err
    assert unsound(unwindowed["evidence"]) == []


def test_progress_is_on_standard_error(compared: tuple[dict[str, Any], str, Path]) -> None:
    err = compared[1]
    assert "A: start | B: " in err
    assert "A: done | B: done" in err
    assert re.search(r"A: run\b", err)  # whether and which tokens are told is left to the clock


def test_a_damaged_history_is_said_and_left_alone(compared: tuple[dict[str, Any], str, Path]) -> None:
    _, err, folder = compared
    trouble = "Runs are not being kept. The history history.sqlite cannot be written: the file is damaged."
    assert trouble in " ".join(err.split())
    assert (folder / "history.sqlite").read_bytes() == b"this is no database " * 100


@pytest.mark.slow
def test_the_table_the_file_and_what_batch_repeats_and_dtypes_do(
    room: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (room / "out.json").write_text("old")
    code = main(
        [
            *shlex.split(
                "compare --a dtype=float16 --b float32 --prompt-file p.txt --batch-size 3 --repeats 2 --json out.json"
            ),
            *SHORT,
        ]
    )
    out, err = capsys.readouterr()
    assert code == 0, err
    for part in (
        f"{MODEL.label} on ",
        "A: dtype=float16",
        "B: dtype=float32",
        "Time to first token",
        "mean over 2 runs",
        "KV cache",
        "after 2 pairs",
        "as predicted",
    ):
        assert part in out, out
    assert re.search(r"dtype +A +float16 +verified", out) and re.search(r" B +float32 +verified", out), out
    assert "note (arm A, dtype): This checkpoint is in bfloat16" in err
    document = json.loads((room / "out.json").read_text())
    half, full = document["arms"]
    assert (document["workload"]["batch_size"], document["workload"]["repeats"]) == (3, 2)
    for arm in document["arms"]:
        assert len(arm["token_ids"]) == 6
        assert arm["kv_bytes"] == arm["kv_bytes_predicted"]
        assert arm["summary"]["batch_tokens_per_s"] == pytest.approx(3 * arm["summary"]["tokens_per_s"])
    assert [2 * size for size in half["kv_bytes"]["full"]] == full["kv_bytes"]["full"]
    assert 1.9 < full["weight_bytes"] / half["weight_bytes"] <= 2
    assert sorted(path.name for path in room.iterdir() if "out" in path.name) == ["out.json"]
