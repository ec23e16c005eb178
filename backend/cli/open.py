"""The command `open`: the page of an installed tokendyno, in a browser."""

import argparse
import os
import sys
import webbrowser
from typing import Any

import app


def add_open(add: Any) -> None:
    """Its options are those of `python app.py`, and one more."""
    sub: argparse.ArgumentParser = add("open", open_page, "serve the page and open it in a browser, until Ctrl-C")
    app.add_options(sub, os.environ)
    sub.add_argument("--no-browser", action="store_true", help="only serve the page, and print its address")


def open_page(options: argparse.Namespace) -> int:
    """Serve until interrupted."""
    settings = app.options_of(options, os.environ)
    return app.serve(settings) if options.no_browser else app.serve(settings, show)


def show(address: str) -> None:
    """Open a browser with a window: without a display it would be one that takes over this terminal."""
    if sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(address)
