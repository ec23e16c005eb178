"""`tokendyno replay`: a run that is over once more, its texts as fast as they came; `import`: from a file into the
history."""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from backend.cli.progress import say
from backend.cli.run_table import title
from backend.cli.stored import WHAT, add_history, find_run, other_runs, run_text
from backend.errors import InputError
from backend.recordings.shelf import import_run
from backend.redact import plain
from backend.runs.arm_series import ArmSeries
from backend.runs.run import Run
from backend.runs.store import Store
from backend.terminal import screen_of

SPEEDS = (0.01, 1000.0)


def replay(options: argparse.Namespace) -> int:
    """Print the texts of a run at the speed at which they came, then its figures. Of many requests and of texts that
    were read there is no one text to play, so these have their figures alone."""
    if not SPEEDS[0] <= options.speed <= SPEEDS[1]:
        raise InputError(
            f"--speed is {options.speed:g}; it must be from {SPEEDS[0]:g} to {SPEEDS[1]:g} (1 is as it was)."
        )
    run = find_run(options.run, options.history)
    if run.request.traffic is None and run.request.quality is None:
        play(run, options.speed)
    with other_runs(options.history) as runs:
        print(run_text(run, screen_of(sys.stdout, options.color), options.all, runs.reading))
    return 0


def play(
    run: Run, speed: float, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Print each arm's text: every part of it when it came after the start of its run, `speed` times as fast.

    What was late does not delay the rest: each part has its own time.
    """
    screen = screen_of(sys.stdout)
    print("\n".join(title(run.snapshot(), screen)))
    for arm in run.arms.values():
        rate = _rate(arm)
        print(f"\n{screen.paint(f'Arm {arm.name}', 'bold')}{f', {rate}' if rate else ''}", flush=True)
        begin_s, told = now(), 0
        for at_s, characters in arm.pace:
            sleep(max(0.0, begin_s + at_s / speed - now()))
            print(plain(arm.text[told:characters]), end="", flush=True)
            told = characters
        print(plain(arm.text[told:]), flush=True)
    print()


def _rate(arm: ArmSeries) -> str:
    """Tokens, and how long they took."""
    return f"{len(arm.t_s):,} tokens in {arm.t_s[-1]:.3g} s" if arm.t_s else ""


def import_file(options: argparse.Namespace) -> int:
    """Take a run from a file into the history; prints its id."""
    store = Store(options.history)
    try:
        print(import_run(Path(options.file).expanduser(), store))
        if store.trouble:
            raise InputError(store.trouble)
    finally:
        store.close()
    say(f"Imported into {options.history}, and marked as imported.")
    return 0


def add_replay(add: Callable[..., argparse.ArgumentParser]) -> list[argparse.ArgumentParser]:
    """The commands and their options."""
    sub = add("replay", replay, "play a run that is over again: its texts as fast as they came")
    sub.add_argument("run", metavar="RUN", help=WHAT)
    sub.add_argument("--speed", type=float, default=1.0, metavar="X", help="so many times as fast")
    sub.add_argument("--all", action="store_true", help="every figure, the whole texts, every row of the ledgers")
    add_history(sub)
    taken = add("import", import_file, "take a run from a file into the history, marked as imported")
    taken.add_argument("file", metavar="FILE", help="what `tokendyno export --run` wrote")
    add_history(taken, "the history into which it is taken")
    return [sub]
