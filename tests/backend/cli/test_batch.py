"""`tokendyno batch` with real workers: the document, the table, the history, and what is refused."""

import json
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.command_line import cli_here
from tokendyno.backend.cli.main import main
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.store import Store
from tokendyno.backend.views.document import batch_document
from tokendyno.backend.views.schema import BatchDocument

REQUESTS, ROWS = 5, 2
ARMS = ("--a", "dtype=float32,batching=static", "--b", "dtype=float32,batching=continuous,page_size=16")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str, Path]:
    """Static against continuous: document, standard error, folder with the history."""
    folder = tmp_path_factory.mktemp("served")
    ran = cli_here(
        "batch",
        *ARMS,
        *shlex.split(
            f"--requests {REQUESTS} --seed 1 --concurrent {ROWS} --output-lengths 2-9 --ttft-limit 60 "
            "--repeats 2 --price-per-hour 2.5 --json - --history history.sqlite"
        ),
        cwd=folder,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout), ran.stderr, folder


def test_the_document_has_every_key_of_the_promise(served: tuple[dict[str, Any], str, Path]) -> None:
    document, err, _ = served
    assert (document["kind"], document["schema"], document["status"]) == ("batch", 3, "done")
    assert document["same_tokens"] == REQUESTS
    for arm in document["arms"]:
        assert arm["useful_tokens_s"] > 0 and len(arm["runs"]) == 2
        assert len(arm["requests"]) == REQUESTS
        for result, request in zip(arm["requests"], document["traffic"]["requests"], strict=True):
            assert result["tokens"] == len(result["token_ids"]) == len(result["token_s"]) == request["max_new_tokens"]
            assert result["arrival_s"] <= result["start_s"] < result["first_token_s"] <= result["end_s"]
            assert (result["prompt_tokens"], result["ended"]) == (request["prompt_tokens"], "length")
        assert sum(bool(result["waited_for"]) for result in arm["requests"]) == REQUESTS - ROWS
        assert len(arm["steps"]["end_s"]) == arm["summary"]["steps"]
        assert arm["summary"]["good"] == REQUESTS
    static, continuous = document["arms"]
    assert static["pages"] is None and sum(static["steps"]["idle"]) > 0
    pages = continuous["pages"]
    assert pages["cache_bytes"] == pages["predicted_bytes"]
    assert [max(held) for held in pages["held"]] and len(pages["held"][0]) == len(pages["free_bytes"])
    card, comparison = document["verdict"], document["comparison"]
    assert comparison["pairs"] == len(card["pairs"]) == 2 and card["ratio"] == comparison["ratio"]
    assert card["cost"].startswith("A million useful tokens cost ")
    assert "Traceback" not in err


def test_the_document_is_one_of_the_schema(served: tuple[dict[str, Any], str, Path]) -> None:
    again = msgspec.to_builtins(msgspec.convert(served[0], BatchDocument))
    assert json.loads(json.dumps(again)) == served[0]


def test_a_run_from_the_history_gives_the_same_document(served: tuple[dict[str, Any], str, Path]) -> None:
    document, _, folder = served
    store = Store(folder / "history.sqlite")
    run = RunLog(store).get(document["run"])
    store.close()
    assert run is not None and run.ended
    again = json.loads(msgspec.json.encode(batch_document(run)))
    assert {**again, "versions": {}} == {**document, "versions": {}}
    past = run.past_batch(0, [(0, 0, 0, 0)] * 2)
    assert past.ended and past.snapshot is not None
    assert [len(columns.end_s) for columns in past.columns] == [arm["summary"]["steps"] for arm in document["arms"]]
    rest = run.past_batch(past.version, [(2, 0, 3, 4)] * 2)
    assert rest.snapshot is None
    assert [(column.first, column.first_move, column.ended) for column in rest.columns] == [
        (2, min(3, past.columns[i].end_move), past.columns[i].ended[4:]) for i, column in enumerate(rest.columns)
    ]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--requests", "0"], "--requests: must be a whole number from 1 to 2,000, not '0'"),
        (["--prompt-lengths", "9-x"], "'9-x' is no range of tokens"),
        (["--traffic", "bursts"], "burst"),
        (["--trace", "none.jsonl", "--rate", "3"], "--rate has nothing to change"),
        (["--trace", "none.jsonl", "--prompt-lengths", "16-64"], "--prompt-lengths has nothing to change"),
        (["--concurrent", "0"], "--concurrent: must be a whole number from 1 to 256"),
        (["--ttft-limit", "-1"], "must be a positive number of seconds"),
        (["--pages", "1", "--b", "batching=continuous,page_size=16"], "but there are only 1"),
        (["--prompt-lengths", "4090-4096"], "has 4,096 positions"),
        (["--repeats", "2", "--seconds", "9"], "--seconds is how long"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_a_sentence(
    options: list[str], part: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["batch", *options]) == 2
    assert part in capsys.readouterr().err
