"""What can be measured in many trials: an ablation, or a sweep. Both follow from the heading of their journal."""

from pathlib import Path

import msgspec

from tokendyno.backend.ablation.course import Course, Tasks
from tokendyno.backend.ablation.journal import Heading, heading_of
from tokendyno.backend.ablation.result import StepResult, results
from tokendyno.backend.ablation.steps import KINDS, Kind, plan_steps
from tokendyno.backend.ablation.sweep import PointResult, admit_points, plan_points, point_results
from tokendyno.backend.ablation.trials import Admitted, admit
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError

SWEEP = "sweep"
"""The kind in the heading of a sweep; its changes are what is varied, each with its values."""


class Ablation(Course):
    """What each of several changes is worth."""

    def __init__(self, bench: Bench, course_id: str, heading: Heading, path: Path | None) -> None:
        """InputError where nothing of it can run here, or its journal cannot be used."""
        kinds: list[Kind] = [kind for kind in KINDS if kind in heading.kinds]
        self.steps = plan_steps(heading.model, heading.base, heading.changes, kinds)
        self.admitted: Admitted = admit(bench, heading.model, self.steps, heading.workload)
        choices = {step.arm: step.choices for step in self.steps if step.arm not in self.admitted.refused}
        super().__init__(bench, course_id, heading, path, Tasks(choices, {}, choices))
        self._known: tuple[int, list[StepResult]] = (-1, [])

    def results(self) -> list[StepResult]:
        """Each step, from the trials that there are."""
        finished = self.finished
        if self._known[0] != finished:
            greedy = self.heading.workload.temperature == 0
            self._known = finished, results(self.steps, self.admitted, self.journal, greedy)
        return self._known[1]


class Sweep(Course):
    """One arm at every combination of some lengths, batch sizes and choices."""

    def __init__(self, bench: Bench, course_id: str, heading: Heading, path: Path | None) -> None:
        """InputError where no point of it can run here, or its journal cannot be used."""
        self.over = {name: values.split(",") for name, values in heading.changes}
        self.points = plan_points(heading.model, heading.base, self.over, heading.workload, heading.traffic)
        self.refused = admit_points(bench, heading.model, self.points)
        left = [point for point in self.points if point.name not in self.refused]
        tasks = Tasks(
            {point.name: point.choices for point in left},
            {point.name: point.workload for point in left},
            {point.arm: point.choices for point in left},
            {point.name: point.title for point in left},
            {point.name: point.traffic for point in left},
        )
        super().__init__(bench, course_id, heading, path, tasks)

    def results(self) -> list[PointResult]:
        """Each point, from the trials that there are."""
        return point_results(self.points, self.refused, self.journal)


def course_of(bench: Bench, course_id: str, heading: Heading, path: Path | None) -> "Ablation | Sweep":
    """The course that a heading describes. InputError where nothing of it can run here."""
    return (Sweep if heading.kinds == [SWEEP] else Ablation)(bench, course_id, heading, path)


def course_of_journal(bench: Bench, path: Path) -> "Ablation | Sweep":
    """What a journal holds, to be shown. InputError where it cannot be read, or was measured on another machine or
    with other versions, whose plans this machine cannot make."""
    heading = heading_of(path)
    if why := heading.stranger(heading.begun(bench.machine())):
        raise InputError(f"The journal {path.name} cannot be shown here: {why}. Write its report there.")
    course = course_of(bench, path.stem, heading, path)
    if not heading.rounds:  # of a command, which decides them each time: those that were measured
        rounds = max((trial.round + 1 for trial in course.journal.trials.values()), default=0)
        course.heading = msgspec.structs.replace(heading, rounds=rounds, positions=len(course.journal.costs))
    course.state = "done" if course.finished >= course.trials else "stopped"
    return course
