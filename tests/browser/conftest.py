"""A real app.py and a real Chromium, one of each for all browser tests."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import stored_runs
from tests.browser.chromium import chromium, what_is_missing
from tests.browser.driver import Driver
from tests.support.ablations import stored, stored_advice, stored_sweep
from tests.support.ports import free_port
from tokendyno.backend.paths import ROOT
from tokendyno.backend.runs.store import Store

UNBEGUN = "?run=unbegun"
"""Both arms in float32, B without windows."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Skipped without Chromium or playwright, except in CI, where that is a failure."""
    missing = what_is_missing()
    if missing:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(missing)
    with chromium() as started:
        _watch(started)
        yield started


FAILURES: list[str] = []
"""Answers of HTTP 500 and above in any page of any context that a test has opened."""


def _watch(browser: Any) -> None:
    """Note failures of the server in every context, whoever makes it."""
    make = browser.new_context

    def new_context(**options: Any) -> Any:
        context = make(**options)
        context.on("response", _note)
        return context

    browser.new_context = new_context


def _note(response: Any) -> None:
    if response.status >= 500:
        FAILURES.append(f"HTTP {response.status} of {response.url}")


@pytest.fixture(autouse=True)
def no_handler_fails() -> Iterator[list[str]]:
    """No test may see an answer of 500, in whatever page."""
    FAILURES.clear()
    yield FAILURES
    assert not FAILURES, FAILURES


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The history of the app at `address`."""
    return tmp_path_factory.mktemp("app") / "history.sqlite"


@pytest.fixture(scope="session")
def address(history: Path) -> Iterator[str]:
    """Address of an app whose history already holds the runs of `stored_runs`."""
    folder = history.parent
    store = Store(history)
    for run_id, records in {**stored_runs.RUNS, "started": stored_runs.started()}.items():
        for record in records:
            store.add(run_id, record)
    store.close()
    stored(folder)
    stored_sweep(folder)
    stored_advice(folder)
    port = free_port()
    command = [sys.executable, "app.py", "--port", str(port), "--history", str(history)]
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
    for failure in ("a page event failed", "coroutine raised", "could not be carried out"):
        assert failure not in logged, logged


class Pages:
    """Pages for the tests. They are reused: one that was open before loads in a third of the time.

    Each test gets pages without anything stored, at its own size; one with more options gets a context of its own.
    `troubles` are failures of a page or of the server, dialogs, and requests to another address.
    """

    def __init__(self, browser: Any, address: str) -> None:
        self._browser, self._address = browser, address
        self._free: list[Any] = []
        self._taken: list[tuple[Any, bool]] = []
        self.troubles: list[str] = []

    def open(
        self,
        query: str = UNBEGUN,
        width: int = 1366,
        height: int = 768,
        reduced_motion: str | None = None,
        **options: Any,
    ) -> Driver:
        """A page with the settings of a stored run and without charts, which take 3 s of CPU time; with the query ""
        that of the newest run, which another test may have started."""
        size: Any = {"width": width, "height": height}
        page = self._free.pop() if self._free and not options else self._make(viewport=size, **options)
        self._taken.append((page, bool(options)))
        page.set_viewport_size(size)
        page.emulate_media(reduced_motion=reduced_motion or "null")
        return Driver(page, self._address).open(query)

    def give_back(self, again: bool) -> None:
        """Return all pages that were taken; those of a failed test are not reused."""
        for page, own in self._taken:
            if again and not own:
                page.unroute_all()
                page.evaluate("localStorage.clear(); sessionStorage.clear()")
                page.goto("about:blank")
                self._free.append(page)
            else:
                if not again:
                    print(page.url, page.evaluate("document.body.innerText"), sep="\n")
                if page.locator("#stop:enabled").count():  # a failed test's run would fail those after it as well
                    page.click("#stop")
                    page.wait_for_function("!document.querySelector('#run').disabled", timeout=30_000)
                page.context.close()
        self._taken.clear()

    def _make(self, **options: Any) -> Any:
        page = self._browser.new_context(**options).new_page()
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("dialog", self._note_dialog)
        page.on("request", self._note_foreign_request)
        return page

    def _note_dialog(self, dialog: Any) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note_foreign_request(self, request: Any) -> None:
        if not re.match(rf"{self._address}/|data:|blob:|about:", request.url):
            self.troubles.append(f"asks {request.url}")


@pytest.fixture(scope="session")
def pages(browser: Any, address: str) -> Pages:
    return Pages(browser, address)


@pytest.fixture
def open_page(pages: Pages, request: pytest.FixtureRequest) -> Iterator[Callable[..., Driver]]:
    """Opens pages; none may fail, or send a request to another address."""
    pages.troubles.clear()
    failed = request.session.testsfailed
    yield pages.open
    pages.give_back(again=request.session.testsfailed == failed)
    assert not pages.troubles, pages.troubles
