"""`tokendyno start`: where the start of an arm goes, in a worker of its own."""

import json
from pathlib import Path

import pytest

from tests.backend.views.test_start import arm_of, run_of
from tests.support.command_line import cli_here, text_of
from tokendyno.backend.cli import start as command
from tokendyno.backend.cli.main import CommandFailed, main
from tokendyno.backend.cli.start import Row, _blocks, _document
from tokendyno.backend.config import Request
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.executors import KINDS
from tokendyno.backend.views.start import Started, start_of


def row(label: str, token_s: float) -> Row:
    name = label[0]
    run = run_of(arm_of("A", token_s=token_s)) if name == "A" else run_of(arm_of("A"), arm_of("B", token_s=token_s))
    snapshot = run.snapshot()
    start = start_of(snapshot.arms[name], alone=False)
    assert start is not None
    return Row(label, run, Started(start, snapshot.summaries[name]))


def test_an_arm_is_not_compared_with_itself() -> None:
    cold, again, other = row("A, cold", 0.03), row("A, cached", 0.02), row("B", 0.02)
    assert "pays" not in text_of(_blocks([cold, again]))
    assert "B took less a token and started no later: so it pays at once." in text_of(_blocks([cold, again, other]))


def test_an_arm_whose_model_was_kept_says_so_and_is_held_against_none() -> None:
    run = run_of(arm_of("A"), arm_of("B", {}, 0.02, reused=True))
    snapshot = run.snapshot()
    start = start_of(snapshot.arms["B"], alone=True)
    assert start is not None
    reused = Row("B", run, Started(start, snapshot.summaries["B"]))
    text = text_of(_blocks([row("A", 0.03), reused]))
    assert "B: process, imports and load: kept from an earlier run." in text and "pays" not in text
    assert [arm.before for arm in _document([row("A", 0.03), reused]).arms] == ["", "loaded"]


@pytest.mark.parametrize(
    ("end", "code", "sentence"),
    [(KeyboardInterrupt(), 130, ""), (CommandFailed("The worker died.", 3), 3, "tokendyno: The worker died.\n")],
    ids=["stopped", "failed"],
)
def test_what_was_measured_before_an_arm_failed_or_was_stopped_is_shown_and_written(
    end: BaseException, code: int, sentence: str, room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(bench: Bench, label: str, name: str, request: Request) -> Row:
        if name == "B":
            raise end
        return row(label, 0.03)

    monkeypatch.setattr(command, "_row", measured)
    monkeypatch.setattr(Bench, "start", lambda bench: None)
    ran = cli_here("start", "--b", "dtype=float32", "--no-history", "--json", "start.json", cwd=room)
    assert ran.returncode == code and "To the first token" in ran.stdout and ran.stderr.endswith(sentence)
    assert [arm["name"] for arm in json.loads((room / "start.json").read_text())["arms"]] == ["A"]


def test_an_arm_that_cannot_run_is_refused_before_the_other_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Bench, "start", lambda bench: pytest.fail("an arm was about to run"))
    assert main(["start", "--b", "loop=own", "--no-history"]) == 2
    assert "Set cache=static." in capsys.readouterr().err


def test_an_arm_without_choices_runs_beside_another_and_spans_add_up(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KINDS, "cold", KINDS["subprocess"])
    options = ["--model", "pocket", "--a", "cache=static", "--b", "", "--max-new-tokens", "4", "--json", "start.json"]
    assert main(["start", *options, "--history", str(room / "history")]) == 0
    document = json.loads((room / "start.json").read_text())
    assert [(arm["name"], arm["choices"]) for arm in document["arms"]] == [("A", {"cache": "static"}), ("B", {})]
    for arm in document["arms"]:
        assert sum(arm["spans_s"].values()) == pytest.approx(arm["total_s"])
        assert {"read", "prefill"} <= arm["spans_s"].keys() and arm["token_s"] > 0
