"""What `ablate`, `sweep` and `advise` share: trials, kept in a journal, until they are done or stopped."""

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from tokendyno.backend import hardware
from tokendyno.backend.ablation.course import POSITIONS, Course
from tokendyno.backend.ablation.courses import kept_journal
from tokendyno.backend.ablation.journal import Heading, Journal
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


@contextlib.contextmanager
def journal_of(bench: Bench, path: Path | None, heading: Heading, course_id: str) -> Iterator[Journal]:
    """The journal of a command: beside the history, where the page finds it by the id that its runs name; or the file
    that is named, of which a copy is left there."""
    kept = _place_beside(bench, course_id)
    if path is None:
        journal = Journal(kept, heading)
        try:
            yield journal
        finally:
            journal.close()
            if kept is not None and not journal.results:
                kept.unlink(missing_ok=True)
        return
    with contextlib.closing(Journal(path, heading.undecided)) as journal:
        before = len(journal.results)
        try:
            yield journal
        finally:
            if kept is not None and len(journal.results) > before:
                with contextlib.closing(Journal(kept, heading)) as copy:
                    for result in journal.results:
                        copy.add(result)


def _place_beside(bench: Bench, course_id: str) -> Path | None:
    path = kept_journal(bench.store.path, course_id)
    try:
        if path is not None:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        say(f"note: the journal is not kept beside the history ({error.strerror}).")
        return None
    return path


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
    with journal_of(bench, options.journal, course.heading, course.id) as journal:
        course.journal = journal
        try:
            bench.start()
            tasks = course.tasks(options.rounds, POSITIONS if options.quality else 0)
            _carry_out(bench, options, tasks, journal, together)
        except (Stopped, KeyboardInterrupt):
            count = len(journal.trials)
            say(f"stopped after {plural(count, 'trial')}. {how_to_go_on(bench, options)}")
            return Ended(STOPPED)
        except InputError as error:
            if not journal.trials:
                raise CommandFailed(str(error), code_of(error)) from error
            how = f" {how_to_go_on(bench, options)}" if isinstance(error, TrialFailed) else ""
            return Ended(code_of(error), f"{error}{how}")
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


def how_to_go_on(bench: Bench, options: argparse.Namespace) -> str:
    if options.journal is not None:
        return f"Finished trials are kept in {options.journal}: the same command goes on."
    if bench.store.path is not None:
        return (
            "Finished trials are kept: open them in History on the page and press Go on. What is begun with --journal "
            "FILE goes on here, too, by the same command."
        )
    return "Only what is shown here is left of finished trials; with --journal FILE the same command could go on."
