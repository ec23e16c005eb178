"""Whose a browser tab is: another visitor's word for it leads nowhere, and what nobody fetches is forgotten."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import gradio as gr
import pytest
from starlette.exceptions import HTTPException

from tests.support.event_loops import finished
from tests.ui.gate.test_gate import IS_JSON, JOIN, Site
from tokendyno.backend.hosting.limits import LIMITS, Limits
from tokendyno.backend.hosting.visitor import Visitor
from tokendyno.ui.gate.gate import Turns
from tokendyno.ui.gate.sessions import LEFT_S, Sessions
from tokendyno.ui.gate.visitors import Visitors

PREDICT, SERVER = "/gradio_api/run/predict", "/gradio_api/component_server"


def seen(site: Site, word: str) -> list[list[str]]:
    """By which names Gradio knows the session of this word, on each way to it, for two visitors."""

    async def visit() -> list[list[str]]:
        found = []
        for _ in range(2):
            async with site.client() as client:
                await client.get("/")
                asked = [
                    (await client.post(path, json={"session_hash": word, "event_id": "e", "oauth_token": "t"})).json()
                    for path in (JOIN, PREDICT, SERVER)
                ]
                pulled = asked.pop()["body"]
                assert pulled == '{"session_hash":"viewers"}', "what all see is kept once"
                stream = (await client.get("/gradio_api/queue/data", params={"session_hash": word})).json()
                beat = (await client.get(f"/gradio_api/heartbeat/{word}")).json()
                assert not any("event_id" in each["body"] or "oauth" in each["body"] for each in asked)
                found += [
                    [each["body"].partition('":"')[2].partition('"')[0] for each in asked]
                    + [stream["query"].partition("=")[2], beat["path"].rpartition("/")[2]]
                ]
        return found

    return finished(visit())


def test_with_anothers_word_one_gets_a_session_of_ones_own() -> None:
    """Gradio asks nobody whose a session is: with its word a stranger read the answers, and ended the events."""
    mine, theirs = seen(Site(Visitors(LIMITS["public"])), "abc123")
    assert len(set(mine)) == len(set(theirs)) == 1
    assert mine[0] != theirs[0] and "abc123" not in (mine[0], theirs[0]) and len(mine[0]) == 32


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b'{"session_hash": "a", "data": [1]}', {"Content-Type": "application/json; charset=utf-8"}, 200),
        (b'{"data": []}', IS_JSON, 200),
        (b'{"session_hash": "a"}', {"Content-Type": "text/plain"}, 415),
        (b'{"session_hash": "a"}', {"Content-Type": "multipart/form-data; boundary=x"}, 415),
        (b'{"session_hash": ["a"]}', IS_JSON, 400),
        (b'[{"session_hash": "a"}]', IS_JSON, 400),
        (b'{"session_hash": "a"', IS_JSON, 400),
        (b'{"session_hash": "\xff"}', IS_JSON, 400),
        (b'{"session_hash": "' + b"a" * 65 + b'"}', IS_JSON, 400),
        (b'{"data": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", IS_JSON, 400),
    ],
)
def test_a_body_is_read_before_anybody_else_reads_it(body: bytes, headers: Mapping[str, str], status: int) -> None:
    site = Site(Visitors(LIMITS["local"]))
    answer = site.ask("POST", PREDICT, content=body, headers=headers)
    assert answer.status_code == status, answer.text
    if status != 200:
        assert answer.json()["detail"].endswith(".")


def test_of_two_sessions_in_a_body_there_is_one_behind_the_gate() -> None:
    site = Site(Visitors(LIMITS["local"]))
    told = site.ask("POST", JOIN, content=b'{"session_hash":"a","session_hash":"b"}', headers=IS_JSON).json()["body"]
    assert (
        told.count("session_hash") == 1
        and site.ask("GET", "/gradio_api/queue/data?session_hash=b").json()["query"].removeprefix("session_hash=")
        in told
    )


@pytest.mark.parametrize("query", ["", "?session_hash=a&session_hash=b", "?other=a", "?session_hash="])
def test_a_stream_names_one_session(query: str) -> None:
    assert Site(Visitors(LIMITS["local"])).ask("GET", f"/gradio_api/queue/data{query}").status_code == 400


def test_a_stream_is_there_once_something_was_asked_for() -> None:
    site = Site(Visitors(LIMITS["local"]))
    stream = "/gradio_api/queue/data?session_hash=a"
    assert "never began" in site.ask("GET", stream).json()["detail"]
    site.ask("POST", JOIN, json={"session_hash": "a"})
    assert site.ask("GET", stream).status_code == 200


def test_what_nobody_fetches_is_forgotten_that_of_the_busiest_address_first(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = gr.Blocks()
    unread = blocks._queue.pending_event_ids_session
    sessions = Sessions(Limits("public", sessions=10, address_events=6), blocks)
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def join(address: str, word: str) -> str:
        name = sessions.name(Visitor("guest:x", address), word)
        sessions.keep(address, name)
        unread.setdefault(name, set()).add(f"event {len(unread)}")  # as Gradio does
        return name

    first = [join("flood", str(number)) for number in range(6)]
    with pytest.raises(HTTPException, match="Too many requests from this address"):
        join("flood", "more")
    other = join("other", "tab")
    assert set(unread) == {*first, other}, "others are still served"
    for name in first:
        unread[name].clear()
    for number in range(6):
        join("flood", f"again {number}")
    assert other in unread and len(unread) == 10, "the oldest of the flood went"
    now[0] += LEFT_S + 1
    join("flood", "later")
    assert sum(map(len, unread.values())) == 2, "nobody waits for the others any more"


def test_requests_of_one_address_wait_for_each_other_and_not_those_of_others() -> None:
    turns, at_work, most = Turns(2), {"a": 0, "b": 0, "": 0}, {"a": 0, "b": 0, "": 0}

    async def one(address: str) -> None:
        async with turns.turn(address):
            at_work[address] += 1
            most[address] = max(most[address], at_work[address])
            await asyncio.sleep(0.001)
            at_work[address] -= 1

    async def many() -> Any:
        return await asyncio.gather(*[one(address) for address in ["a"] * 9 + ["b"] * 3 + [""] * 5])

    finished(many())
    assert most == {"a": 2, "b": 2, "": 5} and not turns._by_address
