"""What viewers pull is answered without Gradio, in the form in which Gradio answers it; everything else goes on."""

import json
from typing import Any

import gradio as gr
import pytest

from tests.ui.gate.test_gate import Site
from tokendyno.backend.hosting.limits import LIMITS
from tokendyno.ui.gate.visitors import Visitors

SERVER = "/gradio_api/component_server"


def pull(question: Any) -> str:
    return json.dumps({"asked": question})


def wide(question: object, request: gr.Request) -> str:
    return ""


wide.__name__ = "pull"


def blocks_of(*functions: Any) -> gr.Blocks:
    blocks = gr.Blocks()
    with blocks:
        for function in functions:
            gr.HTML("", server_functions=[function] if function else None)
    return blocks


def sent_to(blocks: gr.Blocks, question: object) -> dict[str, object]:
    return {"data": question, "component_id": next(iter(blocks.blocks)), "fn_name": "pull", "session_hash": "s"}


@pytest.fixture
def site() -> Site:
    return Site(Visitors(LIMITS["local"]), blocks=blocks_of(pull, wide, None))


@pytest.mark.parametrize("question", [{"run": "a"}, None])
def test_a_pull_is_answered_as_text_in_json(site: Site, question: object) -> None:
    answer = site.ask("POST", SERVER, json=sent_to(site.blocks, question))
    assert answer.status_code == 200 and json.loads(answer.json()) == {"asked": question}
    assert "content-security-policy" in answer.headers and answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "changed", [{"component_id": 99_999}, {"fn_name": "push"}, {"component_id": "0"}, {"component_id": [0]}]
)
def test_what_is_no_pull_goes_on_to_gradio(site: Site, changed: dict[str, object]) -> None:
    sent = sent_to(site.blocks, 1) | changed
    seen = site.ask("POST", SERVER, json=sent).json()
    assert json.loads(seen["body"]) == sent | {"session_hash": "viewers"}
    assert site.ask("POST", "/gradio_api/run/predict", json=sent).json()["path"] == "/gradio_api/run/predict"
