"""What viewers pull is answered without Gradio, in the form in which Gradio answers it; everything else goes on."""

import asyncio
import json
from typing import Any

import pytest

from backend.hosting.limits import LIMITS
from tests.support.event_loops import finished
from tests.ui.gate.test_gate import Site, inner
from ui.csp import PolicyMiddleware
from ui.gate.gate import Gate
from ui.gate.hosts import Hosts
from ui.gate.pulls import Pulls, pulls_of
from ui.gate.visitors import Visitors

SERVER = "/gradio_api/component_server"


def pull(question: Any) -> str:
    return json.dumps({"asked": question, "text": "word " * 1_000 * bool(question)})


@pytest.fixture
def site() -> Site:
    site = Site(Visitors(LIMITS["local"]))
    pulls = Pulls()
    pulls.functions = {7: pull}
    site.gate = PolicyMiddleware(Gate(inner, Hosts(machine=False), site.visitors, pulls=pulls), False)
    return site


@pytest.mark.parametrize(("question", "packed"), [({"run": "a"}, True), (None, False)])
def test_a_pull_is_answered_as_text_in_json_and_packed_where_it_is_long(
    site: Site, question: object, packed: bool
) -> None:
    sent = {"data": question, "component_id": 7, "fn_name": "pull", "session_hash": "s"}
    answer = site.ask("POST", SERVER, json=sent)
    assert answer.status_code == 200 and json.loads(answer.json())["asked"] == question
    assert answer.headers.get("content-encoding") == ("gzip" if packed else None)
    assert "content-security-policy" in answer.headers
    plain = site.ask("POST", SERVER, json=sent, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers and plain.json() == answer.json()


def test_a_pull_that_looks_for_what_is_not_there_is_answered() -> None:
    def looks(question: object) -> str:
        return str(next(iter(())))

    pulls = Pulls()
    pulls.functions = {7: looks}
    sent = {"data": 1, "component_id": 7, "fn_name": "pull", "session_hash": "s"}

    async def receive() -> Any:
        return {"type": "http.request", "body": json.dumps(sent).encode()}

    async def send(message: Any) -> None:
        raise AssertionError(message)

    scope = {"type": "http", "method": "POST", "path": SERVER, "headers": []}
    with pytest.raises(RuntimeError):  # the gate answers that; TimeoutError would be nobody's answer
        finished(asyncio.wait_for(pulls.answer(scope, receive, send), 30))


@pytest.mark.parametrize("changed", [{"component_id": 8}, {"fn_name": "push"}, {"component_id": "7"}])
def test_what_is_no_pull_goes_on_to_gradio(site: Site, changed: dict[str, object]) -> None:
    sent = {"data": 1, "component_id": 7, "fn_name": "pull", "session_hash": "s"} | changed
    told = site.ask("POST", SERVER, json=sent).json()
    assert json.loads(told["body"]) == sent | {"session_hash": "viewers"}
    assert site.ask("POST", "/gradio_api/run/predict", json=sent).json()["path"] == "/gradio_api/run/predict"


def test_the_pulls_of_the_page_are_found() -> None:
    import gradio as gr

    def wide(question: object, request: gr.Request) -> str:
        return ""

    wide.__name__ = "pull"
    with gr.Blocks() as blocks:
        mine = gr.HTML("", server_functions=[pull])
        gr.HTML("", server_functions=[wide])
        gr.HTML("")
    assert list(pulls_of(blocks)) == [mine._id]
