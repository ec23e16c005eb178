"""What `ablate` and `sweep` share: rounds of trials, kept in a journal, until they are done or stopped."""

import argparse
import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from backend import hardware
from backend.ablation.courses import POSITIONS
from backend.ablation.elsewhere import perform_elsewhere
from backend.ablation.journal import Heading, Journal
from backend.ablation.places import Place, gpu_places
from backend.ablation.ray_places import ray_places
from backend.ablation.trials import Stopped, Task, TrialFailed, perform
from backend.arms.bundles import gave_way
from backend.cli.arms import written_arms
from backend.cli.files import check_folder, check_writable
from backend.cli.history_option import history_of
from backend.cli.progress import close, follow, say, say_notes
from backend.config import Workload
from backend.engine.bench import Bench
from backend.errors import InputError
from backend.executors import open_bench
from backend.executors.errand import Errand
from backend.hardware import Machine
from backend.models import resolve
from backend.quality import Quality
from backend.quality.presets import shipped_texts
from backend.runs.run import Run

MAX_ROUNDS = 50


def add_trial_options(sub: argparse.ArgumentParser, what: str) -> None:
    """Rounds and journal. `what`: what runs once a round."""
    sub.add_argument("--rounds", type=int, default=3, metavar="N", help=f"how often each {what} runs, in turn")
    sub.add_argument(
        "--journal", type=Path, metavar="FILE",
        help="keep each finished trial there; the same command goes on where it was ended",
    )  # fmt: skip
    sub.add_argument(
        "--side-by-side", type=int, metavar="N", help="run N trials at once, each on a GPU of its own (default: one)"
    )
    sub.add_argument(
        "--ray", default="", metavar="ADDRESS",
        help="run trials as tasks of this Ray cluster, a GPU each, or on CPUs a node each",
    )  # fmt: skip


def add_quality_option(sub: argparse.ArgumentParser, what: str) -> None:
    """Whether texts are read too. `what`: what is compared with what."""
    sub.add_argument("--quality", action="store_true", help=f"also compare {what} on given texts")


def given_texts() -> Quality:
    """What is read where quality is asked for."""
    return Quality(shipped_texts(), positions=POSITIONS)


def check_options(options: argparse.Namespace) -> None:
    """InputError where the document cannot be written, the folder is none, or nobody would wait for so many rounds."""
    check_writable(options.json)
    check_folder(options.models_dir)
    if not 1 <= options.rounds <= MAX_ROUNDS:
        raise InputError(f"--rounds is {options.rounds}; it must be from 1 to {MAX_ROUNDS}.")


def trial_arm(options: argparse.Namespace, text: str, work: Workload) -> dict[str, str]:
    """The choices of an arm as it is written; which wishes of a bundle gave way is said. InputError where it cannot be
    read."""
    (arm,) = written_arms(options, {"A": text}, work)
    for note in gave_way(arm, resolve(options.model, options.models_dir), hardware.detect(), work):
        say(f"{note.level} ({note.axis}): {note.reason}")
    return dict(arm.choices)


def places_of(options: argparse.Namespace, machine: Machine) -> Sequence[Place]:
    """Where trials run besides here; none: one after the other on this bench. InputError where that cannot be."""
    if options.ray and options.side_by_side is not None:
        raise InputError("Give --ray or --side-by-side, not both: Ray hands GPUs out by itself.")
    if options.ray:
        return ray_places(options.ray, machine.device)
    return gpu_places(options.side_by_side, machine) if options.side_by_side is not None else []


@contextlib.contextmanager
def bench_of(options: argparse.Namespace) -> Iterator[Bench]:
    """A bench that is not started yet, and is closed in any case."""
    bench = open_bench(history_of(options), options.models_dir)
    try:
        say_notes(bench)
        yield bench
    finally:
        close(bench)


def measured(
    bench: Bench, options: argparse.Namespace, heading: Heading, tasks: Callable[[Journal], Sequence[Task]],
    together: bool = False,
) -> tuple[Journal, bool]:  # fmt: skip
    """Carry out what the journal of that heading lacks. The journal, and whether that was stopped with Ctrl-C.
    `together`: the trials of a round on one GPU."""
    journal = Journal(options.journal, heading)
    try:
        bench.start()
        return journal, _stopped_in(bench, options, tasks(journal), journal, together)
    finally:
        journal.close()


def _stopped_in(
    bench: Bench, options: argparse.Namespace, tasks: Sequence[Task], journal: Journal, together: bool
) -> bool:
    """Carry trials out and say how each goes. True if that was stopped with Ctrl-C."""

    def watch(run: Run, what: str) -> None:
        say(what)
        follow(bench, run)

    places = places_of(options, bench.machine())
    try:
        if places:
            folder = str(Path(options.models_dir).resolve()) if options.models_dir else None
            errand = Errand([], folder, bench.machine().device, hardware.versions())
            perform_elsewhere(bench, places, errand, tasks, journal, together, say)
        else:
            perform(bench, tasks, journal, watch)
    except (Stopped, KeyboardInterrupt):
        return True
    except TrialFailed as error:
        raise InputError(f"{error} Finished trials are kept where --journal names a file.") from error
    return False
