"""What strangers send to the page: bodies of any kind to every route that takes one, and texts of any kind shown by a
real browser. No script runs, no traceback and no secret leaves, and everything is answered in time."""

import http.client
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.hostile import corpus
from tests.support.ports import free_port
from tests.support.runs import arm_records, created, ended
from tokendyno.backend.config import ArmRequest, Request, Workload
from tokendyno.backend.evidence import Verdict
from tokendyno.backend.messages import Event, Failed, Progress, Started
from tokendyno.backend.paths import ROOT
from tokendyno.backend.runs.records import ArmEvent, ArmPlanned, Created
from tokendyno.backend.runs.store import Store

ROUTES = ("component_server", "run/predict", "queue/join", "upload", "call/x", "cancel", "heartbeat/x", "login")
LIMIT_S = 15
EXAMPLES = 60
RUNS, EACH = 6, 35
SINKS = "script, iframe, object, embed, base, img, [onerror], [onload], [ontoggle], a[href^=javascript]"


def drawn(count: int) -> list[str]:
    """That many different texts of the corpus, its seeds first."""
    found = dict.fromkeys(corpus.SEEDS)

    @seed(14)
    @settings(
        max_examples=4 * count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(corpus.texts)
    def one(text: str) -> None:
        found[text] = None

    one()
    # a record is JSON: it holds no half of a surrogate pair
    return [text.encode("utf-8", "replace").decode() for text in list(found)[:count]]


def run_of(run_id: str, text: str) -> list[Any]:
    """A run that has a text wherever a model, a name or an error puts one."""
    plain = created(run_id)
    verdicts = [Verdict("fallback", "cache", text, {"cache": "static"}, text, "static")]
    arms = [ArmPlanned(arm.name, {"cache": text}, {"cache": "dynamic"}, verdicts) for arm in plain.arms]
    request = Request(text, [ArmRequest(arm.name, {}) for arm in plain.arms], Workload(prompt=text))
    records: list[Any] = [Created(run_id, plain.created, request, arms, text, text, {text: text}, "cpu")]
    for name in ("A", "B"):
        records += arm_records(name, 5, f"{name} {text}", done=False)
        end: list[Event] = [
            Started(10, 1, 64, [text]),
            Progress("run", "step", 0.5, 0.5, text),
            Failed("run", text, text, text),
        ]
        records += [ArmEvent(name, 0, 1.0, event) for event in end]
    return [*records, ended("failed", text)]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An app of its own with a secret in its environment, and a history of hostile runs."""
    folder = tmp_path_factory.mktemp("hostile")
    store = Store(folder / "h.sqlite")
    texts = drawn(RUNS * EACH)
    for n in range(RUNS):
        for record in run_of(f"hostile{n}", " ".join(texts[n * EACH : (n + 1) * EACH])):
            store.add(f"hostile{n}", record)
    store.close()
    with closing(sqlite3.connect(folder / "h.sqlite")) as db:
        assert db.execute("SELECT count(*) FROM runs WHERE status = 'failed'").fetchone() == (RUNS,)
    port = free_port()
    command = [sys.executable, "app.py", "--port", str(port), "--history", str(folder / "h.sqlite")]
    env = {**os.environ, "HF_TOKEN": corpus.CANARY}
    with Path(folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True, env=env)
    assert process.stdout is not None
    assert "ready" in process.stdout.readline(), (folder / "log").read_text()
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    assert process.wait(30) == 0, "it did not survive"
    process.stdout.close()


@pytest.mark.slow
def test_any_body_is_answered_in_time_and_tells_nothing(app: str) -> None:
    netloc = urlsplit(app).netloc
    seen: dict[int, int] = {}

    @seed(14)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(corpus.bodies)
    def one(body: bytes) -> None:
        for route in ROUTES:
            begin_s = time.monotonic()
            with closing(http.client.HTTPConnection(netloc, timeout=LIMIT_S)) as line:
                line.request("POST", f"/gradio_api/{route}", body, {"Content-Type": "application/json"})
                reply = line.getresponse()
                told = reply.read(1 << 20).decode("utf-8", "replace")
            seen[reply.status] = seen.get(reply.status, 0) + 1
            assert time.monotonic() - begin_s < LIMIT_S
            assert "Traceback" not in told and 'File "' not in told and corpus.CANARY not in told, (
                route,
                body,
                told[:500],
            )
            assert str(ROOT) not in told, (route, body, told[:500])

    one()
    assert sum(seen.values()) >= EXAMPLES * len(ROUTES)


@pytest.mark.parametrize(
    "numbers", [pytest.param(range(1), marks=pytest.mark.slow), pytest.param(range(1, RUNS), marks=pytest.mark.full)]
)
def test_no_text_of_a_run_is_anything_but_text_in_a_browser(numbers: range, app: str, browser: Any) -> None:
    context = browser.new_context()
    page = context.new_page()
    troubles: list[str] = []

    def alerted(dialog: Any) -> None:
        troubles.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", alerted)
    page.on("request", lambda r: troubles.append(r.url) if not r.url.startswith((app, "data:", "blob:")) else None)
    for n in numbers:
        page.goto(f"{app}/?run=hostile{n}")
        page.wait_for_function(f"document.querySelector('.td-live')?.dataset.over === 'hostile{n}'", timeout=60_000)
        held = page.evaluate(f"document.querySelector('#live').querySelectorAll({SINKS!r}).length")
        assert held == 0 and troubles == [], (n, held, troubles)
        assert corpus.CANARY not in page.content()
    context.close()
