"""What can be measured in many trials: an ablation, a sweep, or advice. Each follows from the heading of its
journal."""

from pathlib import Path

import msgspec

from tokendyno.backend.ablation.advise.course import Advice, question_of
from tokendyno.backend.ablation.advise.result import AdviceDocument, advised
from tokendyno.backend.ablation.advise.wishes import TITLES
from tokendyno.backend.ablation.course import Course
from tokendyno.backend.ablation.headline import change_title
from tokendyno.backend.ablation.journal import ADVICE, SWEEP, Heading, document_head, heading_of
from tokendyno.backend.ablation.result import AblationDocument, StepResult, results
from tokendyno.backend.ablation.steps import plan_steps
from tokendyno.backend.ablation.sweep import (
    Point,
    PointResult,
    SweepDocument,
    plan_points,
    point_results,
    require_readings,
    require_some,
    title_of,
    value_title,
)
from tokendyno.backend.ablation.trials import admit
from tokendyno.backend.config import ArmRequest, Request
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.visitor import Visitor
from tokendyno.backend.quality import Quality
from tokendyno.backend.quality.texts import YOURS, named_parts, shipped_texts
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.units import plural


class Ablation(Course):
    """What each of several changes is worth."""

    def __init__(self, bench: Bench, course_id: str, heading: Heading, path: Path | None) -> None:
        """InputError where the base is refused, or every change, or its journal cannot be used."""
        model, work = heading.model, heading.workload
        self.steps = plan_steps(model, heading.base, heading.changes, heading.kinds)
        arms = {step.arm: Point({}, step.choices, work) for step in self.steps}
        self.admitted = admit(bench, model, [*arms.values()])
        refused, base = self.admitted.refused, self.steps[0]
        if base.arm in refused:
            checked = bench.check(Request(model, [ArmRequest("A", base.choices)], work))["A"]
            raise InputError(f"The base cannot run: {checked.refusal()}")
        if len(refused) == len(arms) - 1:
            why = (f"{arm}: {reason}" for (level, _, reason), arm in self.admitted.said.items() if level == "blocked")
            raise InputError(f"No change can run here. {' '.join(why)}")
        points = [point for name, point in arms.items() if name not in refused]
        super().__init__(bench, course_id, heading, path, points)
        self._results: tuple[int, list[StepResult]] = (-1, [])

    def results(self) -> list[StepResult]:
        finished = self.finished
        if self._results[0] != finished:
            greedy = self.heading.workload.temperature == 0
            self._results = finished, results(self.steps, self.admitted, self.journal, greedy)
        return self._results[1]

    def document(self, rounds: int) -> AblationDocument:
        steps, heading = self.results(), self.heading
        head = document_head(heading.model, self._bench.facts(heading.model), self._bench.machine())
        complete = all(step.refused or step.trials >= rounds for step in steps)
        return AblationDocument(*head, heading.workload, rounds, complete, steps)


class Sweep(Course):
    """One arm at every combination of some lengths, batch sizes and choices. `every`: what cannot run here too."""

    def __init__(self, bench: Bench, course_id: str, heading: Heading, path: Path | None) -> None:
        """InputError where no point of it can run here, or its journal cannot be used."""
        self.over = {name: values.split(",") for name, values in heading.changes}
        self.every = plan_points(heading.model, heading.base, self.over, heading.workload, heading.traffic)
        self.refused = admit(bench, heading.model, self.every).refused
        require_some(self.every, self.refused)
        if heading.positions:
            require_readings(self.every, heading.traffic)
        points = [point for point in self.every if point.name not in self.refused]
        super().__init__(bench, course_id, heading, path, points)

    def results(self) -> list[PointResult]:
        return point_results(self.every, self.refused, self.journal)

    def document(self, rounds: int) -> SweepDocument:
        points, heading = self.results(), self.heading
        head = document_head(heading.model, self._bench.facts(heading.model), self._bench.machine())
        complete = all(point.refused or point.trials >= rounds for point in points)
        work, traffic = heading.workload, heading.traffic
        return SweepDocument(*head, heading.base, self.over, work, rounds, complete, points, traffic)


class AdviceCourse(Course):
    """What to use, sought within a budget."""

    def __init__(self, bench: Bench, course_id: str, heading: Heading, path: Path | None) -> None:
        """InputError where nothing can run here, or its journal cannot be used."""
        super().__init__(bench, course_id, heading, path, [])
        self._document: tuple[tuple[int, bool], AdviceDocument] | None = None
        self.advice = self._advice()

    def _advice(self) -> Advice:
        heading = self.heading
        own_texts = [text for name, text in heading.changes if name == "text"]
        texts = named_parts(YOURS, own_texts) or shipped_texts()
        quality = Quality(texts, positions=heading.positions)
        return Advice(self._bench, question_of(heading), self.journal, quality, self.id)

    @property
    def share(self) -> float:
        return min(1.0, self.advice.steps.spent_s / self.heading.budget_s) if self.heading.budget_s else 1.0

    @property
    def count(self) -> str:
        """Runs so far; how many there will be is not known."""
        return plural(self.finished, "run")

    @property
    def outcome(self) -> str:
        return f"{plural(self.finished, 'run')} in {self.advice.steps.spent_s:.0f} s."

    @property
    def complete(self) -> bool:
        return self.advice.ended(self.heading.budget_s)

    def left_s(self) -> float | None:
        return max(0.0, self.heading.budget_s - self.advice.steps.spent_s) if self.live else None

    def document(self) -> AdviceDocument:
        now = len(self.journal.results), self.live
        if self._document is None or self._document[0] != now:
            self._document = now, self.advice.document(self.heading.budget_s)
        return self._document[1]

    def _carry_out(self, visitor: Visitor) -> None:
        self.advice = self._advice()  # of the journal that is now written
        self.advice.perform(self.heading.budget_s, self._follow(visitor), visitor)


AnyCourse = Ablation | Sweep | AdviceCourse


def course_of(bench: Bench, course_id: str, heading: Heading, path: Path | None) -> AnyCourse:
    match heading.kinds:
        case [kind] if kind == SWEEP:
            return Sweep(bench, course_id, heading, path)
        case [kind] if kind == ADVICE:
            return AdviceCourse(bench, course_id, heading, path)
        case _:
            return Ablation(bench, course_id, heading, path)


def heading_title(heading: Heading, last: Snapshot | None = None) -> str:
    """What is measured, in a line. `last`: the last measurement of advice, which tells its answer."""
    match heading.kinds:
        case [kind] if kind == SWEEP:
            over = [
                f"{title_of(name)} {', '.join(value_title(name, value) for value in values.split(','))}"
                for name, values in heading.changes
            ]
            return f"Sweep: {'; '.join(over)}"
        case [kind] if kind == ADVICE:
            wish = question_of(heading).wish
            return f"Advice: {TITLES[wish]}" if last is None else f"Advice: for {TITLES[wish]}, {advised(wish, last)}"
        case _:
            changes = [change_title(f"{axis}={choice}") for axis, choice in heading.changes]
            return f"Ablation: {'; '.join(changes)}"


def course_of_journal(bench: Bench, path: Path) -> AnyCourse:
    """What a journal holds, to be shown. InputError where it cannot be read, or was measured on another machine or
    with other versions, whose plans this machine cannot make."""
    heading = heading_of(path)
    if why := heading.mismatch(heading.begun(bench.machine())):
        raise InputError(f"The journal {path.name} cannot be shown here: {why}. Write its report there.")
    course = course_of(bench, path.stem, heading, path)
    # a command decides rounds and budget each time: those that were measured
    if isinstance(course, AdviceCourse):
        budget_s = heading.budget_s or course.advice.steps.spent_s
        course.heading = msgspec.structs.replace(heading, budget_s=budget_s)
    elif not heading.rounds:
        rounds = max((trial.round + 1 for trial in course.journal.trials.values()), default=0)
        course.heading = msgspec.structs.replace(heading, rounds=rounds, positions=len(course.journal.costs))
    course.state = "done" if course.complete else "stopped"
    return course
