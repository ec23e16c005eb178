"""The one function that the Batching panel's JavaScript calls: nothing of a question is trusted."""

import msgspec
import pytest

from tests.support.batches import batch_arm, batch_created, paged_events, static_events
from tests.support.runs import created, ended
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.store import Store
from tokendyno.ui.batching.panel import answer


@pytest.fixture
def runs() -> RunLog:
    log = RunLog(Store(None))
    log.create(created("plain"))
    log.create(batch_created("many"))
    for record in [*batch_arm("A", static_events()), *batch_arm("B", paged_events()), ended()]:
        log.append("many", record)
    return log


def test_a_pull_brings_what_lies_past_its_cursor(runs: RunLog) -> None:
    first = msgspec.json.decode(answer(runs, {"run": "many", "version": -1, "cur": [[0, 0, 0, 0]] * 2}))
    assert first["ended"] and [lane["n"] for lane in first["lanes"]] == [5, 4]
    assert first["lanes"][0]["at"] == [0.5, 1.5, 2.5] and first["head"]["arms"][1]["cache_bytes"] == 600
    rest = msgspec.json.decode(answer(runs, {"run": "many", "version": first["version"], "cur": [[5, 1, 0, 3]] * 2}))
    assert rest["head"] is None and [lane["b"] for lane in rest["lanes"]] == [[], []]


def test_a_run_of_one_prompt_and_a_cursor_of_another_kind_are_refused_in_a_sentence(runs: RunLog) -> None:
    for question, said in (
        ({"run": "many", "version": -1, "cur": [[0, 0, 0]]}, "cannot be read"),
        ({"run": "plain", "version": -1, "cur": []}, "The page Compare shows it"),
    ):
        assert said in msgspec.json.decode(answer(runs, question))["error"]
