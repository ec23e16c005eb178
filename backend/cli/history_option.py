"""Where a command keeps its runs: in the same history as the page's, unless it is told otherwise."""

import argparse
import os
from pathlib import Path

from backend.cli.progress import say
from backend.errors import InputError
from backend.paths import default_history
from backend.runs.history_file import check_path


def add_history_option(sub: argparse.ArgumentParser, hidden: bool = False) -> None:
    """The options of a command that runs something; hidden: its help says nothing of them."""
    where = "keep the run in this history file (TOKENDYNO_HISTORY; default: that of the page)"
    which = sub.add_mutually_exclusive_group()
    which.add_argument("--history", type=Path, metavar="FILE", help=argparse.SUPPRESS if hidden else where)
    which.add_argument(
        "--no-history", action="store_true", help=argparse.SUPPRESS if hidden else "do not keep the run"
    )  # fmt: skip


def default_file() -> Path:
    """The history of the page, unless the environment names another one."""
    return Path(os.environ.get("TOKENDYNO_HISTORY") or default_history()).expanduser()


def history_of(options: argparse.Namespace) -> Path | None:
    """The file; None for none. A file that was not asked for by name and cannot be written is said and done without: it
    is no reason not to run."""
    if getattr(options, "no_history", False):
        return None
    if options.history is not None:
        return Path(options.history).expanduser()
    path = default_file()
    try:
        check_path(path)
    except InputError as error:
        say(f"note: this run is not kept. {error}")
        return None
    return path
