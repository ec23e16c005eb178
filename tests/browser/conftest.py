"""A real app.py and a real Chromium, one of each for all browser tests."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backend.store import Store
from tests.bench.watched import free_port
from tests.browser import stored
from tests.browser.chromium import chromium, found
from tests.browser.driver import Driver

ROOT = Path(__file__).resolve().parents[2]
NAMED = "<img src=x onerror=alert(1)>"
"""Name of a models folder that is markup."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Skipped without Chromium, except in CI, where that is a failure."""
    if found() is None:
        if os.environ.get("CI") == "true":
            pytest.fail("Chromium is missing: apt-get install chromium, or set CHROMIUM to its path")
        pytest.skip("Chromium is not installed (set CHROMIUM to its path)")
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of an app whose history holds the runs of `stored` already."""
    folder = tmp_path_factory.mktemp("app")
    history, models = folder / "history.sqlite", folder / "models"
    models.mkdir()
    shutil.copytree(ROOT / "presets" / "models" / "pocket", models / NAMED)
    store = Store(history)
    for run_id, records in stored.RUNS.items():
        for record in records:
            store.add(run_id, record)
    store.close()
    port = free_port()
    command = [sys.executable, "app.py", "--port", str(port), "--history", str(history), "--models-dir", str(models)]
    with (folder / "log").open("w") as log:
        app = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True)
    assert app.stdout is not None
    line = app.stdout.readline()
    assert "ready" in line, (line, (folder / "log").read_text())
    yield f"http://127.0.0.1:{port}"
    app.terminate()
    assert app.wait(30) == 0
    app.stdout.close()
    logged = (folder / "log").read_text()
    assert "a page event failed" not in logged and "coroutine raised" not in logged, logged


@pytest.fixture
def open_page(browser: Any, address: str) -> Iterator[Callable[..., Driver]]:
    """Opens pages, each in a context of its own; no page may fail, or speak to another address."""
    contexts, troubles = [], []

    def note_dialog(dialog: Any) -> None:
        troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def note_stranger(request: Any) -> None:
        if not re.match(rf"{address}/|data:|blob:", request.url):
            troubles.append(f"asks {request.url}")

    def watch(page: Any) -> None:
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("dialog", note_dialog)
        page.on("request", note_stranger)

    def make(query: str = "", width: int = 1366, height: int = 768, **options: Any) -> Driver:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        watch(page)
        return Driver(page, address).open(query)

    yield make
    for context in contexts:
        context.close()
    assert not troubles, troubles
