"""The ablations and sweeps of all visitors: begun, stopped, gone on with, and found again by their id, after a restart
too."""

import re
import secrets
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from tokendyno.backend.ablation.advise.course import heading_of_advice
from tokendyno.backend.ablation.advise.steps import GUESS_S
from tokendyno.backend.ablation.advise.wishes import Question
from tokendyno.backend.ablation.course import POSITIONS
from tokendyno.backend.ablation.journal import ADVICE, SWEEP, Heading, Journal, heading_of, in_use
from tokendyno.backend.ablation.kinds import AnyCourse, course_of, heading_title
from tokendyno.backend.ablation.steps import KINDS
from tokendyno.backend.ablation.sweep import traffic_of
from tokendyno.backend.config import Request
from tokendyno.backend.engine.allowed import check_runs
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.history.rows import Row
from tokendyno.backend.hosting.visitor import Visitor
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.paths import ablation_folder
from tokendyno.backend.quality import QualityText
from tokendyno.backend.redact import without_controls
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.snapshot import Snapshot

ROUNDS = 3
"""How often each arm or point runs."""

ELSEWHERE = "A command measures this now. It is ended where it was begun."

ID = re.compile(r"[A-Za-z0-9_-]{8,64}")
MAX_KEPT = 32
"""Courses that stay in memory; others are read from their journals."""


def new_id() -> str:
    return secrets.token_hex(12)


def kept_journal(history: Path | None, course_id: str) -> Path | None:
    """Where the journal of a course lies beside a history; None where it cannot be one's, or nothing is kept."""
    return ablation_folder(history) / f"{course_id}.jsonl" if history is not None and ID.fullmatch(course_id) else None


def kept_heading(history: Path | None, course_id: str) -> Heading | None:
    """What was measured under an id; None where no journal of it can be read."""
    path = kept_journal(history, course_id)
    with suppress(InputError):
        return heading_of(path) if path is not None and path.is_file() else None
    return None


def titled(history: Path | None, row: Row, runs: RunLog | None = None) -> Row:
    """A row of the history. Where it stands for many runs it says what they measure; with `runs`, what is advised."""
    heading = kept_heading(history, row.trial) if row.trials else None
    if heading is None:
        return row
    last = _last_of_advice(history, row.trial, heading, runs) if runs is not None else None
    return msgspec.structs.replace(row, line=heading_title(heading, last))


def whole_of(history: Path | None, trial: str) -> str:
    """The title of what a run is one trial of; "" where it is a run of its own."""
    heading = kept_heading(history, trial)
    title = heading_title(heading) if heading is not None else "an ablation, a sweep or advice"
    return without_controls(title) if trial else ""


def trial_note(history: Path | None, trial: str) -> str:
    """That a run is one trial, and how all of them are seen; "" where it is a run of its own."""
    if not trial:
        return ""
    note = f"This run is one of several trials ({whole_of(history, trial)})."
    kept = kept_heading(history, trial) is not None
    return f"{note} All of them: `tokendyno report {trial} --html FILE`." if kept else note


def _last_of_advice(history: Path | None, course_id: str, heading: Heading, runs: RunLog) -> Snapshot | None:
    """The run in which advice measured its leading arm again; None where it has not, or the run is not kept."""
    with suppress(InputError):
        if heading.kinds == [ADVICE] and (path := kept_journal(history, course_id)) is not None:
            confirmed = Journal(path, heading, only_read=True).confirmed
            run = runs.get(confirmed.run) if confirmed is not None else None
            return run.snapshot() if run is not None else None
    return None


class Courses:
    """The courses of one bench. Journals lie beside its history; without one they are kept in memory only."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._known: dict[str, AnyCourse] = {}
        self._lock = threading.Lock()

    def begin(self, request: Request, visitor: Visitor) -> AnyCourse:
        """Ablate what two arms differ in. InputError says what is wrong and what to do."""
        a, b = (arm.choices for arm in request.arms)
        changes = changes_of(a, b)
        decoder = self._bench.facts(request.model).kind == "decoder"
        return self._begin(request, a, changes, [*KINDS], POSITIONS if decoder else 0, visitor)

    def begin_sweep(
        self, request: Request, over: Mapping[str, Sequence[str]], quality: bool, visitor: Visitor
    ) -> AnyCourse:
        """Sweep the only arm of a request. InputError says what is wrong and what to do."""
        (arm,) = request.arms
        changes = [(name, ",".join(values)) for name, values in over.items()]
        if quality and (facts := self._bench.facts(request.model)).kind == "encoder":
            raise InputError(f"{facts.no_tokens}: it predicts no text. Turn quality off.")
        traffic = traffic_of({**over, **arm.choices})
        positions = POSITIONS if quality else 0
        return self._begin(request, arm.choices, changes, [SWEEP], positions, visitor, traffic)

    def begin_advice(
        self, question: Question, budget_s: float, visitor: Visitor, own_texts: Sequence[QualityText] = ()
    ) -> AnyCourse:
        """Seek advice about a model. `own_texts`: texts in place of those of tokendyno. InputError says what is wrong
        and what to do."""
        check_runs(self._bench.limits)
        most = self._bench.limits.trials
        if most is not None and budget_s > most * GUESS_S:
            raise InputError(f"Advice may take {most * GUESS_S:g} s here. Choose a smaller budget.")
        return self._take_up(heading_of_advice(question, own_texts, visitor.owner, budget_s), visitor)

    def _begin(
        self,
        request: Request,
        base: Mapping[str, str],
        changes: list[tuple[str, str]],
        kinds: list[str],
        positions: int,
        visitor: Visitor,
        traffic: str = "",
    ) -> AnyCourse:
        check_runs(self._bench.limits)
        heading = Heading(
            request.model,
            dict(base),
            changes,
            kinds,
            replace(request.workload, repeats=1),  # rounds repeat a trial
            rounds=ROUNDS,
            positions=positions,
            owner=visitor.owner,
            traffic=traffic,
        )
        return self._take_up(heading, visitor)

    def _take_up(self, heading: Heading, visitor: Visitor) -> AnyCourse:
        most = self._bench.limits.trials
        with self._lock:
            self._require_idle(visitor)
            course_id = new_id()
            path = self._path(course_id)
            course = course_of(self._bench, course_id, heading.begun(self._bench.machine()), path)
            if most is not None and course.trials > most:
                if path is not None:
                    path.unlink(missing_ok=True)
                raise InputError(f"This takes {course.trials} runs, over the limit of {most} here. Remove some of it.")
            self._keep(course)
            course.begin(visitor)
        return course

    def again(self, course_id: str, visitor: Visitor) -> AnyCourse:
        """Go on with a course of this visitor that was stopped or failed. InputError where there is none."""
        course = self.get(course_id)
        with self._lock:
            if course is None or course.heading.owner != visitor.owner:
                raise InputError("There is nothing of yours to go on with.")
            if not course.live:
                self._require_idle(visitor)
                course.begin(visitor)
        return course

    def stop(self, course_id: str, visitor: Visitor) -> bool:
        """Stop a course; False if it is unknown, or another visitor's."""
        course = self.get(course_id)
        if course is None or course.heading.owner != visitor.owner:
            return False
        if course.closed:
            raise InputError(course.closed)
        course.stop()
        return True

    def get(self, course_id: str) -> AnyCourse | None:
        """A course by its id, read from its journal where it is not in memory; None if there is none. InputError where
        the journal cannot be read, or nothing of it can run here."""
        if not ID.fullmatch(course_id):
            return None
        with self._lock:
            if course_id in self._known:
                return self._known[course_id]
            path = self._path(course_id)
            if path is None or not path.is_file():
                return None
            course = course_of(self._bench, course_id, heading_of(path), path)
            course.state = "done" if course.complete else "stopped"
            if in_use(path):
                course.state, course.closed = "running", ELSEWHERE
                return course  # it goes on: the next look reads it again
            why = course.heading.mismatch(course.heading.begun(self._bench.machine()))
            if course.state == "stopped" and why:
                course.state, course.closed = "failed", f"This cannot go on: {why}. Begin it anew."
                course.message = course.closed
            self._keep(course)
            return course

    def newest(self, owner: str, kind: type[AnyCourse]) -> str:
        """Id of an owner's course of that kind that was begun or looked at last since the app started; "" without
        one."""
        with self._lock:
            courses = [course for course in self._known.values() if course.heading.owner == owner]
        ids = [course.id for course in courses if isinstance(course, kind)]
        return ids[-1] if ids else ""

    def _require_idle(self, visitor: Visitor) -> None:
        if any(course.live and course.heading.owner == visitor.owner for course in self._known.values()):
            raise InputError("An ablation or a sweep of yours is under way. Stop it first, or wait for its end.")

    def _path(self, course_id: str) -> Path | None:
        path = kept_journal(self._bench.store.path, course_id)
        if path is not None:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    def _keep(self, course: AnyCourse) -> None:
        self._known[course.id] = course
        idle = [known.id for known in self._known.values() if not known.live]
        for course_id in idle[: max(0, len(self._known) - MAX_KEPT)]:
            del self._known[course_id]


def is_advice(bench: Bench, course_id: str) -> bool:
    """Whether the journal of that id is of advice: a list of runs does not know which it is."""
    heading = kept_heading(bench.store.path, course_id)
    return heading is not None and heading.kinds == [ADVICE]


def changes_of(a: dict[str, str], b: dict[str, str]) -> list[tuple[str, str]]:
    """What leads from arm A to arm B, in the order of the axes. InputError where there are fewer than two."""
    changes = [
        (axis.name, b.get(axis.name, axis.default))
        for axis in all_axes()
        if a.get(axis.name, axis.default) != b.get(axis.name, axis.default)
    ]
    if len(changes) < 2:
        what = "one choice: Run on the page Compare says what it is worth" if changes else "nothing"
        raise InputError(f"The arms differ in {what}. Add choices to arm B, then measure each choice.")
    return changes
