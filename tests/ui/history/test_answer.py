"""What the History page may ask, and that each visitor gets his own runs whatever he asks."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.kept_runs import history_of, made, run_on
from tokendyno.backend.executors import open_bench
from tokendyno.backend.hosting.limits import LIMITS
from tokendyno.backend.hosting.visitor import Visitor
from tokendyno.ui.history.answer import UNREADABLE, answer

Ask = Callable[..., Any]
RUNS = [made(run_on(name, owner=owner, at_s=time.time())) for name, owner in (("mine", "ada"), ("theirs", "bob"))]


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    with history_of(tmp_path / "h.sqlite", RUNS):
        pass
    bench = open_bench(tmp_path / "h.sqlite", None, LIMITS["team"])
    yield lambda question, who="ada": json.loads(answer(bench, question, Visitor(who)))
    bench.close()


def listed(reply: Any) -> list[str]:
    return [row["id"] for row in reply["found"]["rows"]]


def test_a_visitor_finds_names_shares_and_deletes_his_own_runs_only(ask: Ask) -> None:
    find = {"ask": "find", "fields": {}, "page": "1", "zone": 60}
    assert listed(ask(find)) == ["mine"] and listed(ask(find, "guest:x")) == []
    change = {"ask": "change", "run": "mine"}
    for what in ("name", "note", "share", "delete"):
        assert "You have no run 'mine'" in ask({**change, "what": what, "text": "x"}, "bob")["error"]
    assert ask({**change, "what": "name", "text": "First"})["row"]["name"] == "First"
    assert ask({**change, "what": "share"})["row"]["shared"] is True
    (row,) = (one for one in ask(find, "bob")["found"]["rows"] if one["id"] == "mine")
    assert (row["owner"], row["mine"]) == ("ada", False)
    assert ask({**change, "what": "delete"}) == {"row": None} and listed(ask(find, "bob")) == ["theirs"]
    assert ask({**change, "what": "undelete"})["row"]["name"] == "First"
    assert [arm["pin"] for arm in ask({"ask": "beside", "pins": "mine.A,theirs.B"})["arms"]] == ["mine.A", "theirs.B"]


def test_a_history_that_is_damaged_meanwhile_is_no_empty_one(ask: Ask, tmp_path: Path) -> None:
    find = {"ask": "find", "fields": {}}
    assert listed(ask(find)) == ["mine"] and ask(find)["notes"] == ""
    (tmp_path / "h.sqlite").write_bytes(b"no database " * 500)
    assert "The history h.sqlite cannot be read: the file is damaged. Put a backup in its place" in ask(find)["error"]


@pytest.mark.parametrize(
    ("question", "part"),
    [
        (None, UNREADABLE),
        ({"ask": "find"}, UNREADABLE),
        ({"ask": "drop", "fields": {}}, UNREADABLE),
        ({"ask": "find", "fields": {}, "more": 1}, UNREADABLE),
        ({"ask": "find", "fields": {"q": "x" * 9_999}}, UNREADABLE),
        ({"ask": "find", "fields": {}, "page": "0"}, "There is no page '0'"),
        ({"ask": "find", "fields": {}, "page": "9" * 30}, "There is no page"),
        ({"ask": "find", "fields": {"axis": "<img>"}}, "Unknown axis"),
        ({"ask": "find", "fields": {}, "zone": 1e9}, "time zone"),
        ({"ask": "beside", "pins": "mine.A"}, "Pin 2 to 5"),
        ({"ask": "beside", "pins": "' OR 1=1;.A"}, "no pin"),
        ({"ask": "change", "what": "delete", "run": "' OR 1=1"}, "You have no run"),
        ({"ask": "change", "what": "note", "run": "mine", "text": "x" * 3_000}, "Shorten"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused_in_a_sentence(question: Any, part: str, ask: Ask) -> None:
    reply = ask(question)
    assert set(reply) == {"error"} and part in reply["error"]
    assert listed(ask({"ask": "find", "fields": {}})) == ["mine"]
