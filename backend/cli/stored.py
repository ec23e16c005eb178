"""Which history a command keeps its run in, and where runs that are over are found: there, shipped, or in a file."""

import argparse
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from tokendyno.backend.cli.files import typed_path
from tokendyno.backend.cli.progress import say
from tokendyno.backend.errors import InputError, shown
from tokendyno.backend.history.rows import Listing
from tokendyno.backend.hosting.limits import LIMITS
from tokendyno.backend.hosting.visitor import LOCAL_USER
from tokendyno.backend.paths import default_history
from tokendyno.backend.recordings.format import ENDING, read_recording
from tokendyno.backend.recordings.recorded_runs import shipped_id, shipped_names, shipped_records
from tokendyno.backend.runs.history_file import check_path
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.records import Record
from tokendyno.backend.runs.run import Run, folded
from tokendyno.backend.runs.store import Store

MIN_ID = 4
"""Characters of a run's id that are enough to name it, where no other begins so."""

WHAT = f"a run's id or its beginning, the name of a recording that comes with tokendyno, or a {ENDING} file"
HISTORY_HELP = "the history of runs (TOKENDYNO_HISTORY; default: that of the page)"


def add_history(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--history", type=typed_path, default=default_file(), metavar="FILE", help=HISTORY_HELP)


def add_history_option(sub: argparse.ArgumentParser, hidden: bool = False) -> None:
    """The options of a command that runs something. `hidden`: the help does not list them."""
    group = sub.add_mutually_exclusive_group()
    group.add_argument("--history", type=typed_path, metavar="FILE", help=argparse.SUPPRESS if hidden else HISTORY_HELP)
    group.add_argument("--no-history", action="store_true", help=argparse.SUPPRESS if hidden else "do not keep the run")


def default_file() -> Path:
    """The history of the page, unless the environment names another one."""
    return Path(os.environ.get("TOKENDYNO_HISTORY") or default_history()).expanduser()


def history_of(options: argparse.Namespace) -> Path | None:
    """The file in which a command keeps its runs (None: nowhere). If that of the page cannot be written, it says so and
    runs all the same."""
    if options.no_history:
        return None
    if options.history is not None:
        return Path(options.history)
    path = default_file()
    try:
        check_path(path)
    except InputError as error:
        say(f"note: this run is not kept. {error}")
        return None
    return path


def find_records(what: str, history: Path) -> list[Record]:
    """The records of a run. InputError if there is none."""
    if what.endswith(ENDING) or os.sep in what:
        return read_recording(Path(what).expanduser())
    records = shipped_records(shipped_id(what)) or shipped_records(what) or _stored(what, history)
    if not records:
        raise InputError(
            f"There is no run {shown(what)!r} in {history}. Name {WHAT}. Recordings: "
            f"{', '.join(shipped_names()) or 'none'}."
        )
    return records


def find_run(what: str, history: Path) -> Run:
    """A run from its records. InputError if there is none, or it has not ended."""
    run = folded(find_records(what, history))
    if not run.ended:
        raise InputError("This run has not ended. Wait for its end, or stop it.")
    return run


@contextlib.contextmanager
def other_runs(history: Path) -> Iterator[RunLog]:
    """The runs of a history, among which may be readings by the same arms; none where there is no history."""
    with contextlib.closing(Store(history if history.is_file() else None)) as store:
        yield RunLog(store)


def _stored(run_id: str, history: Path) -> list[Record]:
    try:
        history.stat()
    except FileNotFoundError:
        return []
    except OSError:
        pass  # the store says why
    with contextlib.closing(Store(history)) as store:
        own = own_run(Listing(store, LIMITS["local"]), run_id)
        return store.read(own or run_id)


def own_run(listing: Listing, text: str, deleted: bool = False) -> str | None:
    """The id, which begins with `text`, of a run of one's own; None without one. InputError where several begin so.
    `deleted`: of one that can be had back."""
    ids = listing.named(text, LOCAL_USER, deleted) if len(text) >= MIN_ID else []
    if text in ids:
        return text
    if len(ids) > 1:
        listed = ", ".join(run_id[:12] for run_id in ids)
        raise InputError(f"Several runs begin with {shown(text)!r}: {listed}. Give more of the id.")
    return next(iter(ids), None)
