"""The history as the page and the command line use it."""

import logging
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Literal

from tokendyno.backend.errors import InputError, shown
from tokendyno.backend.history.pins import Pin, SideBySide, beside
from tokendyno.backend.history.rows import Listing
from tokendyno.backend.hosting.limits import Limits
from tokendyno.backend.hosting.visitor import Visitor
from tokendyno.backend.redact import redact
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.quality import FindReading, gate_of
from tokendyno.backend.runs.records import Status
from tokendyno.backend.runs.row import searched
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.store import Store
from tokendyno.backend.views.verdict import verdict_of


class History:
    """Lists runs, changes what is kept of them, and puts arms side by side. Any thread may use it.

    team   whether owners may share runs with everybody who is logged in
    """

    def __init__(self, store: Store, runs: RunLog, limits: Limits) -> None:
        self._runs = runs
        self.kept, self.team = store.path is not None, limits.mode == "team"
        self.listing = Listing(store, limits)
        self.changes = Changes(store, runs, limits)

    def beside(self, pins: Sequence[Pin], titles: bool = False) -> SideBySide:
        """Pinned arms side by side (`backend/history/pins.py`)."""
        return beside(pins, self._runs, titles)


# --- changes -------------------------------------------------------------------------------------

# A deleted run is gone for everybody at once. For an hour it can be had back; then it is removed from the file
# (`backend/runs/retention.py`). Each change is one transaction, so that a kill leaves either all of it or nothing.


MAX_NAME, MAX_NOTE = 80, 2_000
MAX_AT_ONCE = 200
"""Runs that one change may name."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Changes:
    """Changes rows of the history file. Any thread may call it. InputError: what cannot be changed, and nothing was."""

    def __init__(self, store: Store, runs: RunLog, limits: Limits) -> None:
        self._store, self._runs, self._team = store, runs, limits.mode == "team"

    def rename(self, run_id: str, name: str, visitor: Visitor) -> str:
        """Give a run a name; "" takes it away. Returns the name as it is kept."""
        name = " ".join(_clean("name", name, MAX_NAME).split())
        self._describe(run_id, visitor, "name", name)
        return name

    def note(self, run_id: str, note: str, visitor: Visitor) -> str:
        """Write a note on a run; "" takes it away. Returns the note as it is kept."""
        note = _clean("note", note, MAX_NOTE).strip()
        self._describe(run_id, visitor, "note", note)
        return note

    def share(self, run_id: str, shared: bool, visitor: Visitor) -> None:
        """Let everybody who is logged in find a run, or no longer."""
        if not self._team:
            raise InputError("Runs are shared where a team logs in (--mode team). Send the run's link instead.")
        with self._change() as db:
            self._own(db, [run_id], visitor)
            db.execute("UPDATE runs SET shared = ? WHERE id = ?", (shared, run_id))

    def delete(self, run_ids: Sequence[str], visitor: Visitor) -> None:
        """Delete runs that have ended: all of them or none."""
        with self._change() as db:
            for run_id, status in self._own(db, run_ids, visitor).items():
                if status == "running":
                    raise InputError(f"Run {run_id[:8]} is still under way. Stop it first, or wait until it has ended.")
            db.executemany("UPDATE runs SET deleted_at = ? WHERE id = ?", [(time.time(), run_id) for run_id in run_ids])
        for run_id in run_ids:
            self._runs.forget(run_id)

    def undelete(self, run_ids: Sequence[str], visitor: Visitor) -> None:
        """Have deleted runs back: all of them or none."""
        with self._change() as db:
            self._own(db, run_ids, visitor, deleted=True)
            db.executemany("UPDATE runs SET deleted_at = NULL WHERE id = ?", [(run_id,) for run_id in run_ids])

    # --- helpers ----------------------------------------------------------------------------------

    def _describe(self, run_id: str, visitor: Visitor, column: Literal["name", "note"], text: str) -> None:
        """Set the name or the note, and what they are found by."""
        with self._change() as db:
            self._own(db, [run_id], visitor)
            db.execute(f"UPDATE runs SET {column} = ? WHERE id = ?", (text, run_id))
            (row,) = db.execute("SELECT name, note, verdict FROM runs WHERE id = ?", (run_id,)).fetchall()
            db.execute("UPDATE runs SET said = ? WHERE id = ?", (searched(*(str(part or "") for part in row)), run_id))

    def _own(
        self, db: sqlite3.Connection, run_ids: Sequence[str], visitor: Visitor, deleted: bool = False
    ) -> dict[str, str]:
        """The status of each run, all of which are the visitor's own. InputError otherwise, which says no more of
        somebody else's run than of one that does not exist."""
        if not 0 < len(run_ids) <= MAX_AT_ONCE:
            raise InputError(f"Name 1 to {MAX_AT_ONCE} runs at once.")
        statuses = dict[str, str]()
        for run_id in run_ids:
            row = None
            with suppress(UnicodeEncodeError):  # half of a character: no id has it
                row = db.execute(
                    "SELECT status FROM runs WHERE id = ? AND owner = ? AND (deleted_at IS NOT NULL) = ?",
                    (run_id, visitor.owner, deleted),
                ).fetchone()
            if row is None:
                what = "deleted run" if deleted else "run"
                gone = " It may have been removed: that is an hour after it was deleted." if deleted else ""
                raise InputError(f"You have no {what} {shown(run_id)!r}.{gone} Nothing was changed.")
            statuses[run_id] = str(row[0])
        return statuses

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        if self._store.path is None:
            raise InputError("Runs are kept in memory only here, so that there is nothing to change.")
        try:
            with self._store.change() as db:
                yield db
        except (sqlite3.Error, OSError) as error:
            raise InputError(f"The history cannot be written now ({error}). Nothing was changed: try again.") from error


def _clean(what: str, text: str, most: int) -> str:
    if len(text) > most:
        raise InputError(f"The {what} has {len(text):,} characters; it may have {most:,}. Shorten it.")
    if _CONTROL.search(text):
        raise InputError(f"The {what} contains control characters. Remove them.")
    return text


# --- what a run came to in one line, for its row ---------------------------------------------------

log = logging.getLogger("tokendyno")

MAX_LINE = 400
"""Characters."""


def line_of(run: Snapshot, find: FindReading, status: Status | None = None) -> str:
    """The verdict, else how the run ended; never raises: a stored run may hold anything."""
    ended_run = run if status is None else replace(run, status=status)
    try:
        sentence = verdict_of(ended_run, gate_of(ended_run, find)).sentence
    except Exception:
        log.exception("run %s has no line in the history", run.created.id)
        sentence = ""
    return redact(sentence or run.message)[:MAX_LINE]
