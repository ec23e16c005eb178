"""Trials in several places at once; their runs come into this history, and their figures into this journal."""

from collections.abc import Callable, Sequence
from itertools import groupby

from tokendyno.backend.ablation.journal import Journal
from tokendyno.backend.ablation.places import Place
from tokendyno.backend.ablation.side_by_side import SideBySide, Unit
from tokendyno.backend.ablation.trials import Task, keep
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.executors.errand import Done, Errand
from tokendyno.backend.runs.records import Created


def perform_elsewhere(
    bench: Bench,
    places: Sequence[Place],
    errand: Errand,
    tasks: Sequence[Task],
    journal: Journal,
    together: bool,
    say: Callable[[str], None],
) -> None:
    """Run all tasks. Raises TrialFailed where one failed, and InputError where one cannot run anywhere.

    errand    what all errands have in common
    together  the arms of a round are compared with each other, so they run on one GPU
    """

    def came(task: Task, done: Done, place: Place) -> None:
        first, *rest = done.records
        assert isinstance(first, Created)
        run = bench.runs.create(first)
        for record in rest:
            bench.runs.append(run.id, record)
        say(f"{task.what}: {run.status} ({place.name}, {done.node})")
        keep(task, run, journal, done.node)

    rounds = [[*found] for _, found in groupby(tasks, key=lambda task: task.round)] if together else []
    grouped = [found for found in rounds if found[0].round is not None]
    alone = [[task] for task in tasks if not together or task.round is None]
    units = [Unit([(task, task.request) for task in found]) for found in [*grouped, *alone]]
    SideBySide(places, errand, came, say).perform(units)
