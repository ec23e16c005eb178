"""What `ablate` and `sweep` share: rounds of trials, kept in a journal, until they are done or stopped."""

import argparse
from collections.abc import Callable
from pathlib import Path

from backend.ablation.trials import Follow, Stopped, TrialFailed
from backend.cli.progress import follow, say
from backend.engine.bench import Bench
from backend.errors import InputError
from backend.runs.run import Run

MAX_ROUNDS = 50


def add_trial_options(sub: argparse.ArgumentParser, what: str) -> None:
    """Rounds and journal. `what`: what runs once a round."""
    sub.add_argument("--rounds", type=int, default=3, metavar="N", help=f"how often each {what} runs, in turn")
    sub.add_argument(
        "--journal", type=Path, metavar="FILE",
        help="keep each finished trial there; the same command goes on where it was ended",
    )  # fmt: skip


def check_rounds(options: argparse.Namespace) -> None:
    """InputError if nobody would wait for so many."""
    if not 1 <= options.rounds <= MAX_ROUNDS:
        raise InputError(f"--rounds is {options.rounds}; it must be from 1 to {MAX_ROUNDS}.")


def stopped_in(bench: Bench, act: Callable[[Follow], None]) -> bool:
    """Carry trials out and say how each goes. True if that was stopped with Ctrl-C."""

    def watch(run: Run, what: str) -> None:
        say(what)
        follow(bench, run)

    try:
        act(watch)
    except Stopped:
        return True
    except TrialFailed as error:
        raise InputError(f"{error} Finished trials are kept where --journal names a file.") from error
    return False
