"""Untrusted text stays text, and untrusted requests are refused without leaking anything."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from tests.browser.driver import LIVE, Driver
from tests.browser.stored_runs import EVIL, HOSTILE

Open = Callable[..., Driver]
SINKS = "script, iframe, img, [onerror], [onmouseover], [onload], a[href^=javascript]"
MARKUP = f"{LIVE}.closest('#live').querySelectorAll({SINKS!r}).length"


def test_a_hostile_run_is_shown_as_text(open_page: Open) -> None:
    user = open_page("?run=evil")
    user.wait_over("evil")
    user.wait("document.querySelector('.td-plot').data.some(t => t.meta?.arm && t.x.length)")
    assert user.page.evaluate(MARKUP) == 0
    assert user.value("model") == EVIL
    for selector in (".td-title", ".td-note", "#live .td-failure", ".td-ledger", ".td-remarks"):
        assert HOSTILE[1] in user.text(selector), selector
    assert user.page.locator(".td-body").first.text_content().replace("≠", "") == f"A {EVIL}"
    assert user.text(".td-text-comparison").startswith("The texts first differ at character 1, marked ≠.")
    assert user.page.locator(".td-difference").count() == 2


def test_a_hostile_permalink_is_said_as_text(open_page: Open) -> None:
    user = open_page("?run=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    user.page.get_by_text("There is no run").wait_for()
    assert user.page.locator("#message .td-line-text > *").count() == 0


def post(address: str, path: str, body: object) -> tuple[int, str]:
    kind = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}/gradio_api/{path}", json.dumps(body).encode(), kind)
    try:
        with urllib.request.urlopen(request, timeout=20) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def config(address: str) -> Any:
    with urllib.request.urlopen(f"{address}/config", timeout=20) as reply:
        return json.load(reply)


def test_no_other_function_of_the_panel_can_be_called(address: str) -> None:
    (panel,) = [c["id"] for c in config(address)["components"] if c["props"].get("elem_id") == "live"]
    for name in ("build", "constructor", "__init__", "postprocess", "get_config"):
        body = {"data": {}, "component_id": panel, "fn_name": name, "session_hash": "raw"}
        assert post(address, "component_server", body)[0] == 404, name


def test_raw_events_with_garbage_tell_nothing(address: str) -> None:
    for dependency in config(address)["dependencies"]:
        count = len(dependency["inputs"])
        for value in (None, {"a": 1}, [["x"]], "x" * 1000, -1):
            body = {"fn_index": dependency["id"], "data": [value] * count, "session_hash": "raw"}
            _, answer = post(address, "run/predict", body)
            assert "Traceback" not in answer and 'File "' not in answer, (dependency["api_name"], answer[:300])
