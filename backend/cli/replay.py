"""`tokendyno replay`: a run that is over, its texts as fast as they came; `import`: from a file into the history."""

import argparse
import contextlib
import time
from pathlib import Path

from tokendyno.backend.cli.options import Add, add_all
from tokendyno.backend.cli.progress import say
from tokendyno.backend.cli.run_table import run_blocks, title
from tokendyno.backend.cli.stored import WHAT, add_history, find_run, other_runs
from tokendyno.backend.cli.terminal import Color, Styled, show
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.limits import RECORDING_BYTES
from tokendyno.backend.recordings.recorded_runs import import_run
from tokendyno.backend.redact import without_controls
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.store import Store
from tokendyno.backend.units import plural

SPEEDS = (0.01, 1000.0)


def replay(options: argparse.Namespace) -> int:
    """Print the texts of a run as fast as they came, then its figures; of many requests and given texts these alone."""
    if not SPEEDS[0] <= options.speed <= SPEEDS[1]:
        raise InputError(
            f"--speed is {options.speed:g}; it must be from {SPEEDS[0]:g} to {SPEEDS[1]:g} (1 is as it was)."
        )
    run = find_run(options.run, options.history)
    if run.request.traffic is None and run.request.quality is None:
        _play(run, options.speed, options.color)
    with other_runs(options.history) as runs:
        show(run_blocks(run, options.all, runs.reading), options.color)
    return 0


def _play(run: Run, speed: float, color: Color) -> None:
    """Print each part of each arm's text when it came, `speed` times as fast."""
    show([title(run.snapshot())], color)
    for arm in run.arms.values():
        rate = f", {plural(len(arm.t_s), 'token')} in {arm.t_s[-1]:.3g} s" if arm.t_s else ""
        print()
        show([[Styled(f"Arm {arm.name}", "bold", rate)]], color)
        begin_s, printed = time.monotonic(), 0
        for at_s, characters in arm.pace:
            time.sleep(max(0.0, begin_s + at_s / speed - time.monotonic()))
            print(without_controls(arm.text[printed:characters]), end="", flush=True)
            printed = characters
        print(without_controls(arm.text[printed:]), flush=True)
    print()


def import_file(options: argparse.Namespace) -> int:
    """Take a run from a file into the history; prints its id."""
    with contextlib.closing(Store(options.history)) as store:
        print(import_run(Path(options.file).expanduser(), store))
        if store.trouble:
            raise InputError(store.trouble)
    say(f"Imported into {options.history}, and marked as imported.")
    return 0


def add_commands(add: Add) -> None:
    sub = add("replay", replay, "play a run that is over again: its texts as fast as they came", color=True)
    sub.add_argument("run", metavar="RUN", help=WHAT)
    sub.add_argument("--speed", type=float, default=1.0, metavar="X", help="so many times as fast")
    add_all(sub)
    add_history(sub)
    details = f"A file that is damaged, newer, or unpacks to more than {RECORDING_BYTES >> 20} MiB is refused."
    sub = add("import", import_file, "take a run from a file into the history, marked as imported", details)
    sub.add_argument("file", metavar="FILE", help="what `tokendyno export --run` wrote")
    add_history(sub)
