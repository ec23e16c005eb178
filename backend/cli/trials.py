"""What `ablate`, `sweep` and `advise` share: trials, kept in a journal, until they are done or stopped."""

import argparse
import contextlib
import secrets
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from tokendyno.backend import hardware
from tokendyno.backend.ablation.course import POSITIONS, Course
from tokendyno.backend.ablation.journal import Journal
from tokendyno.backend.ablation.places import Place, SideBySide, Unit, gpu_places, ray_places
from tokendyno.backend.ablation.trials import Stopped, Task, TrialFailed, keep, perform, run_of
from tokendyno.backend.arms.bundles import gave_way
from tokendyno.backend.cli.commands import bench_of
from tokendyno.backend.cli.files import check_distinct, check_folder, check_writable, typed_path
from tokendyno.backend.cli.main import BAD_INPUT, FAILED, OK, STOPPED, CommandFailed
from tokendyno.backend.cli.options import add_number, add_workload, written_arms
from tokendyno.backend.cli.progress import follow, say
from tokendyno.backend.cli.stored import add_history_option
from tokendyno.backend.config import Workload
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors.trial_process import Done, TrialTask
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import resolve
from tokendyno.backend.runs.run import Run
from tokendyno.backend.units import plural

PROMPT = Workload(prompt_tokens=128, max_new_tokens=64)
"""What arms and points are tried with unless options say otherwise."""

MAX_ROUNDS = 50

COMMAND = "command-"
"""How the id begins by which the history lists the runs of one command as one."""


def add_trial_options(sub: argparse.ArgumentParser, what: str, compared: str) -> None:
    """The prompt, rounds and journal. `what` runs once a round; `compared`: what is compared on texts with what."""
    add_number(sub, "--rounds", 3, f"how often each {what} runs; every other round goes backwards", 1, MAX_ROUNDS)
    sub.add_argument(
        "--journal",
        type=typed_path,
        metavar="FILE",
        help="keep each finished trial there; the same command goes on where it was ended, with the same machine and "
        "versions",
    )
    add_places(sub)
    sub.add_argument("--quality", action="store_true", help=f"also compare {compared} on given texts")
    add_workload(sub)
    sub.set_defaults(repeats=1, max_new_tokens=64)
    add_history_option(sub)


def add_places(sub: argparse.ArgumentParser) -> None:
    add_number(sub, "--side-by-side", None, "run N trials at once, each on a GPU of its own (default: one)")
    sub.add_argument(
        "--ray",
        default="",
        metavar="ADDRESS",
        help="run trials as tasks of this Ray cluster, a GPU each, or on CPUs a node each",
    )


def command_id() -> str:
    return f"{COMMAND}{secrets.token_hex(8)}"


def check_options(options: argparse.Namespace, csv: str | None = None) -> None:
    """InputError where the CSV file cannot be written, two options name one file, or there is no models
    folder."""
    check_writable(csv, "--csv")
    check_distinct({"--json": options.json, "--csv": csv, "--journal": options.journal})
    check_folder(options.models_dir)


def trial_arm(options: argparse.Namespace, text: str, work: Workload) -> dict[str, str]:
    """The choices of an arm as it is written. InputError where it cannot be read."""
    (arm,) = written_arms(options, {"A": text}, work)
    for note in gave_way(arm, resolve(options.model, options.models_dir), hardware.detect(), work):
        say(f"{note.level} ({note.axis}): {note.reason}")
    return dict(arm.choices)


def places_of(options: argparse.Namespace, machine: Machine) -> Sequence[Place]:
    """Where trials run beside each other; empty: one after the other on this bench. InputError where that cannot be."""
    if options.ray and options.side_by_side is not None:
        raise InputError("Give --ray or --side-by-side, not both: Ray hands GPUs out by itself.")
    if options.ray:
        return ray_places(options.ray, machine.device)
    return gpu_places(options.side_by_side, machine) if options.side_by_side is not None else []


@contextlib.contextmanager
def trial_bench(options: argparse.Namespace) -> Iterator[Bench]:
    """A bench that is not started yet. InputError where texts are to be compared and the model predicts none."""
    with bench_of(options) as bench:
        if options.quality and (facts := bench.facts(options.model)).kind == "encoder":
            raise InputError(f"{facts.no_tokens}: it predicts no text. Leave out --quality.")
        yield bench


class Ended(NamedTuple):
    """How trials ended. `failure`: why they ended early; "" where they did not, or were stopped."""

    code: int
    failure: str = ""

    def exit_code(self) -> int:
        """Call it once everything is shown: CommandFailed says why trials ended early."""
        if self.failure:
            raise CommandFailed(self.failure, self.code)
        return self.code


def code_of(error: InputError) -> int:
    return FAILED if isinstance(error, TrialFailed) and not error.bad_input else BAD_INPUT


def measured(bench: Bench, options: argparse.Namespace, course: Course, together: bool = False) -> Ended:
    """Carry out what the journal lacks. CommandFailed without a trial. `together`: the trials of a round on one GPU."""
    journal = course.journal = Journal(options.journal, course.heading)
    try:
        bench.start()
        tasks = course.tasks(options.rounds, POSITIONS if options.quality else 0)
        _carry_out(bench, options, tasks, journal, together)
    except (Stopped, KeyboardInterrupt):
        count = len(journal.trials)
        say(f"stopped after {plural(count, 'trial')}. {_how_to_go_on(options)}")
        return Ended(STOPPED)
    except InputError as error:
        if not journal.trials:
            raise CommandFailed(str(error), code_of(error)) from error
        how = f" {_how_to_go_on(options)}" if isinstance(error, TrialFailed) else ""
        return Ended(code_of(error), f"{error}{how}")
    finally:
        journal.close()
    return Ended(OK)


def _carry_out(
    bench: Bench, options: argparse.Namespace, tasks: Sequence[Task], journal: Journal, together: bool
) -> None:
    """Carry trials out and say how each goes. Raises Stopped, and InputError where one failed."""
    places = places_of(options, bench.machine())
    if not places:
        perform(bench, tasks, journal, partial(watch, bench))
        return

    def finished(task: Task, done: Done, place: Place) -> None:
        run = run_of(bench, done)
        say(f"{task.what}: {run.status} ({place.name}, {done.node})")
        keep(task, run, journal, done.node)

    rounds = [[*group] for _, group in groupby(tasks, key=lambda task: task.round)] if together else []
    grouped = [group for group in rounds if group[0].round is not None]
    single = [[task] for task in tasks if not together or task.round is None]
    units = [Unit([(task, task.request) for task in group]) for group in [*grouped, *single]]
    SideBySide(places, trial_task_of(options, bench), finished, say).perform(units)


def watch(bench: Bench, run: Run, what: str) -> None:
    say(what)
    follow(bench, run)


def trial_task_of(options: argparse.Namespace, bench: Bench) -> TrialTask:
    folder = str(Path(options.models_dir).resolve()) if options.models_dir else None
    return TrialTask([], folder, bench.machine().device, hardware.versions())


def _how_to_go_on(options: argparse.Namespace) -> str:
    if options.journal is not None:
        return f"Finished trials are kept in {options.journal}: the same command goes on."
    return "Only what is shown here is left of finished trials; with --journal FILE the same command could go on."
