"""Chromium as the tests and benches use it."""

import importlib.util
import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ARGUMENTS = [
    *shlex.split(
        "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync"
    )
]


def found() -> str | None:
    """Path of an installed Chromium (`CHROMIUM` wins), or None."""
    names = (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if name and (path := shutil.which(name))), None)


def what_is_missing() -> str:
    """Why no browser can be started, and what to do; empty when one can."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed: pip install -e '.[test]'"
    if found() is None:
        return "Chromium is not installed: apt-get install chromium, or set CHROMIUM to its path"
    return ""


@contextmanager
def chromium() -> Iterator[Any]:
    """A started browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=found(), args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()
