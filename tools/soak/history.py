"""Faults of the history during a run: said while they last, and the run is in the file afterwards as it was watched.

Where the file itself is gone, another one is used, and it is said that the run is not in it."""

import os
import resource
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from backend.messages import PhaseName, Progress
from backend.runs.records import ArmEvent, Record
from backend.runs.run import Run
from backend.runs.store import Store
from tools.soak.site import Site
from tools.soak.workers import WHOLE_RUN_S, armed, request_for

REAL_TIME = time.time
UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


class Fault(NamedTuple):
    """`begin` gets the history's path and returns what ends the fault; `said`: a word of the line that the page must
    show while it lasts, "" where it is over at once; `reported`: another file is used, and a message must tell that
    the run is not in it."""

    name: str
    begin: Callable[[Path], Callable[[], object]]
    said: str = ""
    reported: bool = False


def _full(path: Path) -> Callable[[], object]:
    """No file of this process may grow any more: to SQLite a disk without room."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, UNLIMITED)


def _locked(path: Path) -> Callable[[], object]:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA busy_timeout = 5000")
    db.execute("BEGIN IMMEDIATE")
    return db.close


def _damaged(path: Path) -> Callable[[], object]:
    with closing(sqlite3.connect(path)) as db, suppress(sqlite3.Error):
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.write(os.urandom(path.stat().st_size))
    return lambda: None


def _removed(path: Path) -> Callable[[], object]:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return lambda: None


def _folder_removed(path: Path) -> Callable[[], object]:
    shutil.rmtree(path.parent)
    return lambda: None


def _clock(path: Path) -> Callable[[], object]:
    """Ten years ahead, and back."""
    time.time = lambda: REAL_TIME() + 3.15e8

    def back() -> None:
        time.time = REAL_TIME

    return back


FAULTS = (
    Fault("disk full", _full, said="disk"),
    Fault("locked", _locked, said="locked"),
    Fault("damaged", _damaged, reported=True),
    Fault("removed", _removed, reported=True),
    Fault("folder removed", _folder_removed, reported=True),
    Fault("clock jumps", _clock),
)


def all_faults(phases: tuple[PhaseName, ...] = ("run",), until_s: float = float("inf")) -> list[str]:
    """Each fault in each phase of a run of its own; returns what was wrong. Stops at `until_s`."""
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "data" / "history.sqlite"
        path.parent.mkdir()
        with armed(path.parent.parent, history=path, spares=0) as site:
            warm = site.bench.wait(site.bench.submit(request_for("")), 120)
            wrong += [] if warm.status == "done" else [f"the first run: {warm.message}"]
            for phase, fault in [(phase, fault) for phase in phases for fault in FAULTS]:
                if time.monotonic() > until_s:
                    print(f"time is up before {fault.name} in {phase}", flush=True)
                    break
                found = one(site, fault, phase, path)
                print(f"{fault.name:<16} {phase:<9} {found or 'kept whole'}", flush=True)
                wrong += [f"{fault.name} in {phase}: {found}"] if found else []
            slowest = max(site.answers.seconds)
            print(f"{len(site.answers.seconds)} visits of the page meanwhile, {len(site.answers.failures)} failed, "
                  f"the slowest took {slowest:.2f} s")  # fmt: skip
            wrong += site.answers.failures
    return wrong


def one(site: Site, fault: Fault, phase: PhaseName, path: Path) -> str:
    """A run in a phase of which the history fails; returns what was wrong with it."""
    ends: list[Callable[[], object]] = []
    said: list[str] = []

    def watch(run_id: str, record: Record) -> None:
        begun = isinstance(record, ArmEvent) and isinstance(record.event, Progress) and record.event.phase == phase
        if begun and not ends:
            site.bench.store.flush()
            ends.append(fault.begin(path))

    before = list(site.bench.store.messages)
    if phase != "run":
        for slot in list(site.bench.pool.slots):  # a worker that is kept would skip phases
            site.bench.pool.drop(slot)
    site.watch = watch
    site.run_id = site.bench.submit(request_for(phase))
    run = site.bench.runs.get(site.run_id)
    assert run is not None
    try:
        until_s = time.monotonic() + WHOLE_RUN_S
        while time.monotonic() < until_s and not (run.ended and (said or not fault.said)):
            trouble = site.pull(run.id)["trouble"]
            if trouble and fault.said in trouble:
                said.append(trouble)
            time.sleep(0.1)
    finally:
        site.watch = lambda run_id, record: None
        for end in ends:
            end()
    if not ends:
        return "the phase was never reached"
    return _verdict(site, fault, path, run, bool(said), [m for m in site.bench.store.messages if m not in before])


def _verdict(site: Site, fault: Fault, path: Path, run: Run, said: bool, messages: list[str]) -> str:
    until_s = time.monotonic() + 30
    while site.bench.store.trouble and time.monotonic() < until_s:
        time.sleep(0.1)
    site.bench.store.flush()
    if run.status != "done":
        return f"the run {run.status}: {run.message}"
    if fault.said and not said:
        return "the page did not say so while it lasted"
    if site.bench.store.trouble:
        return f"it is still said: {site.bench.store.trouble}"
    if fault.reported:
        return "" if any("is not kept" in message for message in messages) else "nobody was told"
    again = Store(path)
    try:
        stored = again.read(run.id)
    finally:
        again.close()
    texts = [getattr(record.event, "text", "") for record in stored if isinstance(record, ArmEvent)]
    whole = "".join(text for text in texts if isinstance(text, str))
    kept = stored and getattr(stored[-1], "status", "") == "done" and run.arms["A"].text in whole
    return "" if kept else f"{len(stored)} records of it are in the file"
