"""Runs that are over: found by id in the history or among those that come with tokendyno, or read from a file; and as
text for a terminal."""

import argparse
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from backend.cli.batch_table import batch_table
from backend.cli.history_option import default_file
from backend.cli.quality_table import quality_table
from backend.cli.run_table import no_reading, table
from backend.errors import InputError, shown
from backend.recordings.files import ENDING, read_recording
from backend.recordings.shelf import shipped_id, shipped_names, shipped_records
from backend.runs.gate import FindReading
from backend.runs.log import RunLog
from backend.runs.records import Record
from backend.runs.run import Run, folded
from backend.runs.store import Store
from backend.terminal import Screen

WHAT = f"the id of a run, the name of a recording that comes with tokendyno, or a {ENDING} file"


def add_history(sub: argparse.ArgumentParser, what: str = "the history in which runs are looked up") -> None:
    """The option that names a history."""
    sub.add_argument("--history", type=Path, default=default_file(), metavar="FILE",
                     help=f"{what} (TOKENDYNO_HISTORY)")  # fmt: skip


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
    """The same, folded. InputError if it has not ended."""
    run = folded(find_records(what, history))
    if not run.ended:
        raise InputError("This run has not ended. Wait for its end, or stop it.")
    return run


@contextlib.contextmanager
def other_runs(history: Path) -> Iterator[RunLog]:
    """The runs of a history, among which texts may have been read by the arms of another; none where there is no
    history."""
    store = Store(history if history.is_file() else None)
    try:
        yield RunLog(store)
    finally:
        store.close()


def run_text(run: Run, screen: Screen, everything: bool = False, find: FindReading = no_reading) -> str:
    """The figures of a run of any kind. `everything`, `find`: as in `run_table.table`."""
    now = run.snapshot()
    if now.request.quality is not None:
        return quality_table(now, screen, everything)
    if now.request.traffic is not None:
        return batch_table(now, screen, everything)
    return table(run, screen, everything, find)


def _stored(run_id: str, history: Path) -> list[Record]:
    try:
        history.stat()
    except FileNotFoundError:
        return []
    except OSError:
        pass  # the store says why
    store = Store(history)
    try:
        store.refuse_set_aside()
        return store.read(run_id)
    finally:
        store.close()
