"""`tokendyno start`: where the start of an arm goes, in a worker of its own."""

import json
from pathlib import Path

import pytest

from tests.backend.views.test_start import arm_of, run_of
from tests.support.command_line import text_of
from tokendyno.backend.cli.main import main
from tokendyno.backend.cli.start import Row, _blocks, _document
from tokendyno.backend.executors import KINDS
from tokendyno.backend.views.start import Started, start_of


def row(label: str, token_s: float) -> Row:
    name = label[0]
    run = run_of(arm_of("A", token_s=token_s)) if name == "A" else run_of(arm_of("A"), arm_of("B", token_s=token_s))
    now = run.snapshot()
    found = start_of(now.arms[name], alone=False)
    assert found is not None
    return Row(label, run, Started(found, now.summary(name)))


def test_an_arm_is_not_compared_with_itself() -> None:
    cold, again, other = row("A, cold", 0.03), row("A, cached", 0.02), row("B", 0.02)
    assert "pays" not in text_of(_blocks([cold, again]))
    assert "B takes less a token and starts no later: it pays at once." in text_of(_blocks([cold, again, other]))


def test_an_arm_whose_model_was_kept_says_so_and_is_held_against_none() -> None:
    run = run_of(arm_of("A"), arm_of("B", {}, 0.02, reused=True))
    now = run.snapshot()
    found = start_of(now.arms["B"], alone=True)
    assert found is not None
    kept = Row("B", run, Started(found, now.summary("B")))
    text = text_of(_blocks([row("A", 0.03), kept]))
    assert "B: process, imports and load: kept from an earlier run." in text and "pays" not in text
    assert [arm.before for arm in _document([row("A", 0.03), kept]).arms] == ["", "loaded"]


def test_an_arm_without_choices_runs_beside_another_and_spans_add_up(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KINDS, "cold", KINDS["subprocess"])
    given = ["--model", "pocket", "--a", "cache=static", "--b", "", "--max-new-tokens", "4", "--json", "start.json"]
    assert main(["start", *given, "--history", str(room / "history")]) == 0
    found = json.loads((room / "start.json").read_text())
    assert [(arm["name"], arm["choices"]) for arm in found["arms"]] == [("A", {"cache": "static"}), ("B", {})]
    for arm in found["arms"]:
        assert sum(arm["spans_s"].values()) == pytest.approx(arm["total_s"])
        assert {"read", "prefill"} <= arm["spans_s"].keys() and arm["token_s"] > 0
