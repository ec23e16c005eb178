"""`tokendyno ablate` with real workers: the document, going on after a kill, and what is refused."""

import json
from pathlib import Path

import msgspec
import pytest

from backend.ablation.result import AblationDocument
from backend.cli.main import main
from tests.support.command_line import cli

COMMAND = (
    "ablate", "--base", "dtype=float32", "--add", "cache=static", "--steps", "alone", "--rounds", "2",
    "--max-new-tokens", "8", "--journal", "journal.jsonl",
)  # fmt: skip


@pytest.mark.full
def test_an_ablation_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    ran = cli(*COMMAND, "--json", "-", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    document = msgspec.convert(found, AblationDocument)
    assert json.loads(json.dumps(msgspec.to_builtins(document))) == found and document.complete
    base, static = document.steps
    assert (base.trials, static.trials, static.same_text) == (2, 2, True)
    assert static.comparison is not None and static.comparison.pairs == 2
    assert static.peak_memory_bytes and static.doubtful == {}
    journal = tmp_path / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    assert len(lines) == 5
    journal.write_bytes(b"".join(lines[:4]) + lines[4][:20])
    again = cli(*COMMAND, "--json", "-", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("round ") == 1, "one trial was lost, and one is run"
    assert journal.read_bytes().splitlines(keepends=True)[:4] == lines[:4]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--add", "cache"], "'cache' is no change"),
        (["--add", "cache=static", "--rounds", "0"], "--rounds is 0"),
        (["--add", "cache=offloaded"], "No change can run here"),
        (["--base", "attention=flash_attention_2", "--add", "cache=static"], "The base cannot run"),
        (["--add", "cache=static", "--steps", "stairs"], "stair"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_bad_input_is_a_sentence(given: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ablate", *given]) == 2
    assert said in capsys.readouterr().err
