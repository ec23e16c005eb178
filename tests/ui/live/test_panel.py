"""Pulls: the browser's only access to a run."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.runs import arm_records, created, ended, tokens
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.records import ArmEvent
from tokendyno.backend.runs.store import Store
from tokendyno.ui.live import panel, sources
from tokendyno.ui.live.pace import PACE


@pytest.fixture
def runs() -> RunLog:
    log = RunLog(Store(None))
    log.create(created("run1"))
    for record in [*arm_records("A", 5, "<b>A</b>"), *arm_records("B", 3, "\U0001f98a é"), ended()]:
        log.append("run1", record)
    return log


def ask(runs: RunLog, **question: Any) -> Any:
    return json.loads(panel.answer(runs, {"run": "run1", "version": -1, "cur": [[0, 0, 0], [0, 0, 0]]} | question))


def test_a_pull_from_the_start_brings_everything(runs: RunLog) -> None:
    reply = ask(runs)
    assert reply["ended"] and reply["status"] == "done"
    assert [lane["n"] for lane in reply["lanes"]] == [5, 3]
    assert [lane["text"] for lane in reply["lanes"]] == ["<b>A</b>", "\U0001f98a é"]
    assert [arm["name"] for arm in reply["head"]["arms"]] == ["A", "B"]


def test_a_pull_from_a_cursor_brings_the_rest(runs: RunLog) -> None:
    version = ask(runs)["version"]
    reply = ask(runs, version=version, cur=[[3, 1, 4], [3, 2, 3]])
    assert reply["head"] is None
    assert [lane["t"] for lane in reply["lanes"]] == [[0.13, 0.14], []]
    assert reply["lanes"][0]["text"] == "A</b>"[1:]


def test_a_cursor_past_the_end_brings_nothing(runs: RunLog) -> None:
    reply = ask(runs, cur=[[10**15, 10**15, 10**15], [-5, -5, -5]])
    assert reply["lanes"][0]["t"] == [] and len(reply["lanes"][1]["t"]) == 3


@pytest.mark.parametrize("others", [0, 4])
def test_a_pull_that_may_wait_brings_the_next_tokens_and_four_wait_at_most(
    others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = RunLog(Store(None))
    run = log.create(created("run1"))
    log.append("run1", ArmEvent("A", 0, 1.0, tokens(0, 3, "abc")))
    waited: list[float] = []
    monkeypatch.setattr(PACE, "waited", waited.append)

    def more(seconds: float) -> float:
        log.append("run1", ArmEvent("A", 0, 1.1, tokens(3, 3, "def")))
        return 0.07

    monkeypatch.setattr(run, "wait", more)
    for _ in range(others):
        assert panel.WAITING.acquire(blocking=False)
    try:
        now, later = ask(log), ask(log, wait_ms=100)
    finally:
        for _ in range(others):
            panel.WAITING.release()
    assert now["lanes"][0]["n"] == 3
    assert (later["lanes"][0]["n"], waited) == ((3, []) if others else (6, [0.07]))
    assert panel.WAITING._value == 4, "each place was given back"


@pytest.mark.parametrize(
    "question",
    [
        None,
        [],
        {},
        {"run": ["run1"], "version": 0, "cur": []},
        {"run": "run1", "version": 0.5, "cur": []},
        {"run": "run1", "version": 0, "cur": [[1, 2]]},
        {"run": "run1", "version": 0, "cur": [[0, 0, 0]] * 9},
        {"run": "run1", "version": 0, "cur": [[0, 0, 1e400]]},
        {"run": "r" * 65, "version": 0, "cur": []},
        {"run": "run1", "version": 0, "cur": [], "more": 1},
        {"run": "run1", "version": 0, "cur": [], "wait_ms": 101},
    ],
)
def test_a_pull_that_cannot_be_read_is_refused_in_words(runs: RunLog, question: object) -> None:
    reply = json.loads(panel.answer(runs, question))
    assert reply.keys() == {"error"} and "cannot be read" in reply["error"]


@pytest.mark.parametrize("run", ["", "nosuch", "../run1", "run1'--", "<b>"])
def test_an_unknown_run_is_said_to_be_unknown(runs: RunLog, run: str) -> None:
    assert ask(runs, run=run) == {"error": "There is no such run here."}


def test_fewer_cursors_than_arms_start_the_others_at_the_beginning(runs: RunLog) -> None:
    assert [lane["n"] for lane in ask(runs, cur=[])["lanes"]] == [5, 3]


# --- what could turn untrusted text into markup ------------------------------------------------

SINKS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|createContextualFragment|\{\{|\bsrcdoc\b"
)
SOURCES = list(Path(sources.__file__).parent.glob("*.py"))  # in JavaScript the linter looks for them


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_file_of_the_page_writes_markup(path: Path) -> None:
    assert not SINKS.search(path.read_text(encoding="utf-8")), path
