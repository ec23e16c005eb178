"""Untrusted text stays text, and untrusted requests are refused without leaking anything."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.conftest import NAMED
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


@pytest.mark.slow
def test_hostile_input_is_answered_as_text(open_page: Open) -> None:
    user = open_page()
    for payload in HOSTILE:
        before = user.message()
        user.type("prompt", payload)
        user.type("model", payload)
        user.page.click("#run")
        message = "document.querySelector('#message .td-line-text').textContent"
        user.wait(f"{message}.length > 10 && {message} !== {json.dumps(before)}")
        assert user.page.locator("#message .td-line-text > *").count() == 0
        assert user.value("prompt") == payload


@pytest.mark.full
def test_a_model_whose_name_is_markup_runs_and_is_named(open_page: Open) -> None:
    user = open_page()
    user.type("model", NAMED)
    user.type("prompt", " ".join(HOSTILE[:2]))
    user.type("max-new-tokens", "5")
    run_id = user.run()
    user.wait_over(run_id)
    assert user.text(".td-status") == "Done", user.text("#live")
    assert NAMED in user.text(".td-title") and user.page.evaluate(MARKUP) == 0


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


@pytest.mark.parametrize(
    "data",
    [None, [], {}, "x", {"run": {"$ne": 1}, "version": 0, "cur": []}, {"run": "two", "version": 0, "cur": [[1]]}],
)
def test_raw_pulls_are_refused(address: str, data: object) -> None:
    (panel,) = [c["id"] for c in config(address)["components"] if c["props"].get("elem_id") == "live"]
    status, body = post(
        address, "component_server", {"data": data, "component_id": panel, "fn_name": "pull", "session_hash": "raw"}
    )
    assert status == 200 and json.loads(json.loads(body)).keys() == {"error"}


@pytest.mark.parametrize("name", ["build", "constructor", "__init__", "postprocess", "get_config"])
def test_no_other_function_of_the_panel_can_be_called(address: str, name: str) -> None:
    (panel,) = [c["id"] for c in config(address)["components"] if c["props"].get("elem_id") == "live"]
    body = {"data": {}, "component_id": panel, "fn_name": name, "session_hash": "raw"}
    status, _ = post(address, "component_server", body)
    assert status == 404


def test_raw_events_with_garbage_tell_nothing(address: str) -> None:
    for dependency in config(address)["dependencies"]:
        count = len(dependency["inputs"])
        for value in (None, {"a": 1}, [["x"]], "x" * 1000, -1):
            body = {"fn_index": dependency["id"], "data": [value] * count, "session_hash": "raw"}
            _, answer = post(address, "run/predict", body)
            assert "Traceback" not in answer and 'File "' not in answer, (dependency["api_name"], answer[:300])


def test_the_page_forbids_other_addresses(address: str) -> None:
    with urllib.request.urlopen(address, timeout=20) as reply:
        policy = reply.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy and "object-src 'none'" in policy and "http" not in policy


def test_the_app_takes_no_uploads_and_shows_no_monitor(address: str) -> None:
    for path in ("monitoring", "monitoring/summary"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{address}/{path}", timeout=20)
        with refused.value:
            assert refused.value.code in (403, 404)
    found = config(address)
    public = {d["api_name"] for d in found["dependencies"] if d["api_visibility"] != "private"}
    assert not found.get("show_error") and public == {"check", "run", "status", "result", "stop", "fit"}
