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


class Pages:
    """Pages for the tests, used again: one that was open before opens anew in a third of the time.

    Each test gets pages without anything stored, at its own size; one with more options gets a context of its own.
    `troubles` are failures of a page, dialogs, and requests to another address.
    """

    def __init__(self, browser: Any, address: str) -> None:
        self._browser, self._address = browser, address
        self._free: list[Any] = []
        self._taken: list[tuple[Any, bool]] = []
        self.troubles: list[str] = []

    def open(self, query: str = "", width: int = 1366, height: int = 768, **options: Any) -> Driver:
        size: Any = {"width": width, "height": height}
        page = self._free.pop() if self._free and not options else self._make(viewport=size, **options)
        self._taken.append((page, bool(options)))
        page.set_viewport_size(size)
        return Driver(page, self._address).open(query)

    def give_back(self, again: bool) -> None:
        """All pages that were taken; those of a test that failed are not used again."""
        for page, own in self._taken:
            if again and not own:
                page.unroute_all()
                page.evaluate("localStorage.clear(); sessionStorage.clear()")
                page.goto("about:blank")
                self._free.append(page)
            else:
                page.context.close()
        self._taken.clear()

    def _make(self, **options: Any) -> Any:
        page = self._browser.new_context(**options).new_page()
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("dialog", self._note_dialog)
        page.on("request", self._note_stranger)
        return page

    def _note_dialog(self, dialog: Any) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note_stranger(self, request: Any) -> None:
        if not re.match(rf"{self._address}/|data:|blob:|about:", request.url):
            self.troubles.append(f"asks {request.url}")


@pytest.fixture(scope="session")
def pages(browser: Any, address: str) -> Pages:
    return Pages(browser, address)


@pytest.fixture
def open_page(pages: Pages, request: pytest.FixtureRequest) -> Iterator[Callable[..., Driver]]:
    """Opens pages; none may fail, or speak to another address."""
    pages.troubles.clear()
    failed = request.session.testsfailed
    yield pages.open
    pages.give_back(again=request.session.testsfailed == failed)
    assert not pages.troubles, pages.troubles
