"""`tokendyno quality` with real workers: the document, the table, the history, and what is refused."""

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
from tokendyno.backend.views.document import quality_document
from tokendyno.backend.views.schema import QualityDocument

TEXT = (
    "Once upon a time there was a little fox. The fox lived in a forest with his mother. One day the fox found a red "
    "ball. He played with the red ball all day long, and then he went home to his mother."
)


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str, Path]:
    """float32 against bf16 on a text of one's own: document, standard error, folder with the history."""
    folder = tmp_path_factory.mktemp("read")
    (folder / "fox.txt").write_text(TEXT)
    ran = cli_here(
        *shlex.split(
            "quality --a dtype=float32 --b dtype=bfloat16 --text fox.txt --only-given --positions 24 "
            "--json - --history history.sqlite"
        ),
        cwd=folder,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout), ran.stderr, folder


def test_the_document_has_every_key_of_the_promise(read: tuple[dict[str, Any], str, Path]) -> None:
    document, err, _ = read
    assert (document["kind"], document["schema"], document["status"]) == ("quality", 3, "done")
    assert 0 < document["kl_nats"] < 0.02 and document["cost"] in ("rounding", "small")
    assert 0.9 <= document["top1_agreement"] <= 1 and document["perplexity_ratio"] == pytest.approx(1, abs=0.05)
    assert [text["name"] for text in document["texts"]] == ["fox"] and document["all"]["positions"] == 24
    a, b = document["arms"]
    assert len(a["positions"][0]["nll_nats"]) == len(b["positions"][0]["kl_nats"]) == 24
    assert a["positions"][0]["kl_nats"] == [] and a["positions"][0]["token_ids"] == b["positions"][0]["token_ids"]
    apart = [x != y for x, y in zip(a["positions"][0]["top_ids"], b["positions"][0]["top_ids"], strict=True)]
    assert document["first_divergence"] == (apart.index(True) if any(apart) else None)
    proved = {row["axis"]: row["status"] for row in a["evidence"]}
    assert proved["dtype"] == "verified" and a["summary"]["latency_mean_s"] > 0
    assert "Traceback" not in err


def test_the_document_is_one_of_the_schema(read: tuple[dict[str, Any], str, Path]) -> None:
    again = msgspec.to_builtins(msgspec.convert(read[0], QualityDocument))
    assert json.loads(json.dumps(again)) == read[0]


def test_a_run_from_the_history_gives_the_same_document(read: tuple[dict[str, Any], str, Path]) -> None:
    document, _, folder = read
    store = Store(folder / "history.sqlite")
    run = RunLog(store).get(document["run"])
    store.close()
    assert run is not None and run.ended
    again = json.loads(msgspec.json.encode(quality_document(run)))
    assert {**again, "versions": {}} == {**document, "versions": {}}


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--positions", "3"], "--positions: must be a whole number from 16 to 4,096, not '3'"),
        (["--only-given"], "none was given. Add --text FILE"),
        (["--text", "none.txt"], "none.txt"),
        (["--model", "random:bert-base-uncased"], "is an encoder"),
        (["--context", "4090", "--positions", "20"], "4,096 positions"),
        (["--a", "batching=static"], "takes many requests"),
        (
            ["--b", "attention=flash_attention_3,cuda_graphs=manual"],
            "Arm B: FlashAttention 3 runs on NVIDIA GPUs only. Set attention=auto. CUDA graphs need a CUDA device.",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_a_sentence(
    options: list[str], part: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["quality", *options]) == 2
    assert part in capsys.readouterr().err
