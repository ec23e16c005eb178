"""Makes the recordings that come with tokendyno: `python -m tools.record [NAME...]`, all without a name.

Each is one run of the command line, as anybody could type it, from `tools/recordings.toml`. It is checked before it is
kept: the run is complete, no row of a ledger has failed or fallen back without being expected to, machine, versions and
date are in it, and it is small.
"""

import argparse
import os
import shlex
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import msgspec

from tokendyno.backend import hardware
from tokendyno.backend.errors import InputError, unknown
from tokendyno.backend.files.toml import read_toml
from tokendyno.backend.paths import ROOT
from tokendyno.backend.recordings.format import ENDING, read_recording, write_recording
from tokendyno.backend.recordings.recorded_runs import SHIPPED
from tokendyno.backend.runs.records import Record
from tokendyno.backend.runs.run import folded
from tokendyno.backend.runs.store import Store

FILE = ROOT / "tools" / "recordings.toml"
MAX_BYTES = 300_000
TRUSTED = ("verified", "off", "not_applicable")


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How one recording is made.

    command  what is typed after `tokendyno`
    device   "cuda" or "cpu"
    amber    axes whose rows may be partial, without effect or a fallback, since that is what the recording shows
    """

    name: str
    device: str
    command: str
    amber: list[str] = []


class Recipes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    recording: list[Recipe]


def recipes() -> dict[str, Recipe]:
    """Every recording by name, in the order in which they are made."""
    return {recipe.name: recipe for recipe in read_toml(FILE, Recipes).recording}


def make(recipe: Recipe, folder: Path, limit_s: float) -> str:
    """Make, check and keep one recording; returns a line that says what it holds. InputError if it must not be kept."""
    with tempfile.TemporaryDirectory() as scratch:
        history = Path(scratch) / "history.sqlite"
        command = [sys.executable, "-m", "tokendyno", *shlex.split(recipe.command), "--history", str(history)]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit_s)
        if ended.returncode:
            raise InputError(f"exit code {ended.returncode}: {(ended.stderr or ended.stdout)[-1500:]}")
        records = _newest(history)
        draft = Path(scratch) / f"draft{ENDING}"
        size = write_recording(draft, records)
        content = check(draft, recipe)
        folder.mkdir(parents=True, exist_ok=True)
        write_recording(folder / f"{recipe.name}{ENDING}", records)
    return f"{recipe.name}: {size:,} bytes, {content}"


def check(path: Path, recipe: Recipe) -> str:
    """What a file holds, in a line. InputError if it must not be shipped."""
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise InputError(f"{size:,} bytes, over the limit of {MAX_BYTES:,}")
    run = folded(read_recording(path)).snapshot()
    created = run.created
    if run.status != "done":
        raise InputError(f"the run is {run.status}: {run.message}")
    if created.device != recipe.device:
        raise InputError(f"it ran on {created.device}, not on {recipe.device}")
    if not created.versions.get("torch") or not created.machine:
        raise InputError("it does not name its versions and machine")
    for name in run.arms:
        for row in run.ledgers[name]:
            if row.status not in TRUSTED and row.finding.axis not in recipe.amber:
                raise InputError(f"arm {name}, {row.finding.axis}: {row.status}: {row.finding.proof} {row.fell_back}")
    speeds = [f"{name} {arm.t_s[-1]:.3g} s for {len(arm.t_s):,} tokens" for name, arm in run.arms.items() if arm.t_s]
    date = time.strftime("%Y-%m-%d", time.gmtime(created.created))
    return ", ".join([*speeds, date, f"torch {created.versions['torch']}"])


def _newest(history: Path) -> list[Record]:
    with closing(sqlite3.connect(history)) as db:
        (run_id,) = db.execute("SELECT id FROM runs ORDER BY created DESC LIMIT 1").fetchone()
    with closing(Store(history)) as store:
        return store.read(run_id)


def main() -> int:
    """Make what was named; returns 1 if one could not be made."""
    parser = argparse.ArgumentParser(prog="python -m tools.record", description="Make the recordings.")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--to", type=Path, default=SHIPPED, metavar="FOLDER")
    parser.add_argument("--seconds", type=float, default=900.0, metavar="N", help="for each, at most")
    parser.add_argument("--list", action="store_true")
    options, known, failed = parser.parse_args(), recipes(), False
    if options.list:
        print("\n".join(f"{recipe.name} ({recipe.device}): tokendyno {recipe.command}" for recipe in known.values()))
        return 0
    for name in options.names:
        if name not in known:
            raise SystemExit(str(unknown("recording", name, known)))
    device = hardware.detect().device
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    here = [recipe for recipe in known.values() if recipe.device == device]
    for recipe in [known[name] for name in options.names] or here:
        begin_s = time.monotonic()
        try:
            line = make(recipe, options.to, options.seconds)
        except (InputError, subprocess.TimeoutExpired) as error:
            failed = True
            line = f"{recipe.name}: NOT KEPT, {error}"
        print(f"{line} ({time.monotonic() - begin_s:.0f} s)", flush=True)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
