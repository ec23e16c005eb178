"""What `ablate` and `sweep` share: rounds of trials, kept in a journal, until they are done or stopped."""

import argparse
from collections.abc import Callable
from pathlib import Path

from backend import hardware
from backend.ablation.trials import Follow, Stopped, TrialFailed
from backend.arms.bundles import gave_way
from backend.cli.arms import written_arms
from backend.cli.progress import follow, say
from backend.config import Workload
from backend.engine.bench import Bench
from backend.errors import InputError
from backend.models import resolve
from backend.quality import Quality
from backend.quality.presets import shipped_texts
from backend.runs.run import Run

MAX_ROUNDS = 50
POSITIONS = 96
"""Tokens to predict in each text, where quality is asked for."""


def add_trial_options(sub: argparse.ArgumentParser, what: str) -> None:
    """Rounds and journal. `what`: what runs once a round."""
    sub.add_argument("--rounds", type=int, default=3, metavar="N", help=f"how often each {what} runs, in turn")
    sub.add_argument(
        "--journal", type=Path, metavar="FILE",
        help="keep each finished trial there; the same command goes on where it was ended",
    )  # fmt: skip


def add_quality_option(sub: argparse.ArgumentParser, what: str) -> None:
    """Whether texts are read too. `what`: what is compared with what."""
    sub.add_argument("--quality", action="store_true", help=f"also compare {what} on given texts")


def given_texts() -> Quality:
    """What is read where quality is asked for."""
    return Quality(shipped_texts(), positions=POSITIONS)


def check_rounds(options: argparse.Namespace) -> None:
    """InputError if nobody would wait for so many."""
    if not 1 <= options.rounds <= MAX_ROUNDS:
        raise InputError(f"--rounds is {options.rounds}; it must be from 1 to {MAX_ROUNDS}.")


def trial_arm(options: argparse.Namespace, text: str, work: Workload) -> dict[str, str]:
    """The choices of an arm as it is written; which wishes of a bundle gave way is said. InputError where it cannot be
    read."""
    (arm,) = written_arms(options, {"A": text}, work)
    for note in gave_way(arm, resolve(options.model, options.models_dir), hardware.detect(), work):
        say(f"{note.level} ({note.axis}): {note.reason}")
    return dict(arm.choices)


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
