"""The ablations of all visitors: begun, stopped, gone on with, and found again by their id, after a restart too."""

import re
import secrets
import threading
from pathlib import Path

from backend import hardware
from backend.ablation.course import Course
from backend.ablation.journal import Heading, heading_of
from backend.ablation.steps import KINDS, plan_steps
from backend.config import Request
from backend.engine.bench import Bench
from backend.errors import InputError
from backend.hosting.visitor import Visitor
from backend.optimizations import all_axes
from backend.paths import ablation_folder

ROUNDS, POSITIONS = 3, 96
"""How often each arm runs, and tokens to predict in each text."""

ID = re.compile(r"[A-Za-z0-9_-]{8,64}")
MAX_KEPT = 32
"""Ablations that stay in memory; others are read from their journals."""


class Courses:
    """Those of one bench. Journals lie beside its history; without one they are kept in memory only."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._folder = ablation_folder(bench.store.path) if bench.store.path is not None else None
        self._known: dict[str, Course] = {}
        self._lock = threading.Lock()

    def begin(self, asked: Request, visitor: Visitor) -> Course:
        """Ablate what two arms differ in. InputError says what is wrong and what to do."""
        work, limits = asked.workload, self._bench.limits
        with self._lock:
            self._require_idle(visitor)
            a, b = (arm.choices for arm in asked.arms)
            changes = changes_of(a, b)
            device, versions = self._bench.machine().device, hardware.versions()
            positions = POSITIONS if self._bench.facts(asked.model).kind == "decoder" else 0
            heading = Heading(
                asked.model, dict(a), changes, [*KINDS], work, device, versions, ROUNDS, positions, visitor.owner
            )
            plan_steps(asked.model, a, changes, KINDS)
            course_id = secrets.token_hex(12)
            course = Course(self._bench, course_id, heading, self._path(course_id))
            if limits.trials is not None and course.trials > limits.trials:
                raise InputError(
                    f"These choices take {course.trials} runs, over the limit of {limits.trials} here. Remove one or "
                    "two of them."
                )
            self._keep(course)
            course.begin(visitor)
        return course

    def again(self, course_id: str, visitor: Visitor) -> Course:
        """Go on with a stopped or failed ablation of this visitor."""
        course = self.get(course_id)
        with self._lock:
            if course is None or course.heading.owner != visitor.owner:
                raise InputError("There is no ablation of yours to go on with.")
            if not course.live:
                self._require_idle(visitor)
                course.begin(visitor)
        return course

    def stop(self, course_id: str, visitor: Visitor) -> bool:
        """False if it is unknown, or another visitor's."""
        course = self.get(course_id)
        if course is None or course.heading.owner != visitor.owner:
            return False
        course.stop()
        return True

    def get(self, course_id: str) -> Course | None:
        """One by its id, read from its journal where it is not in memory. InputError where the journal is of other
        versions or another machine, or cannot be read."""
        if not ID.fullmatch(course_id):
            return None
        with self._lock:
            if course_id in self._known:
                return self._known[course_id]
            path = self._path(course_id)
            if path is None or not path.is_file():
                return None
            course = Course(self._bench, course_id, heading_of(path), path)
            course.state = "done" if course.finished >= course.trials else "stopped"
            here = self._bench.machine().device, hardware.versions()
            if course.state == "stopped" and (course.heading.device, course.heading.versions) != here:
                course.state, course.message = "failed", "It was begun on another device or with other versions, so it "
                course.message += "cannot go on. Begin it anew."
            self._keep(course)
            return course

    def newest(self, owner: str) -> str:
        """Id of the ablation of an owner that was begun or looked at last since the app started; "" without one."""
        found = [course.id for course in self._known.values() if course.heading.owner == owner]
        return found[-1] if found else ""

    def _require_idle(self, visitor: Visitor) -> None:
        if any(course.live and course.heading.owner == visitor.owner for course in self._known.values()):
            raise InputError("An ablation of yours is under way. Stop it first, or wait for its end.")

    def _path(self, course_id: str) -> Path | None:
        if self._folder is None:
            return None
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._folder / f"{course_id}.jsonl"

    def _keep(self, course: Course) -> None:
        self._known[course.id] = course
        for known in [one for one in self._known.values() if not one.live][: max(0, len(self._known) - MAX_KEPT)]:
            del self._known[known.id]


def changes_of(a: dict[str, str], b: dict[str, str]) -> list[tuple[str, str]]:
    """What leads from arm A to arm B, in the order of the axes. InputError where there are fewer than two."""
    changes = [
        (axis.name, b.get(axis.name, axis.default))
        for axis in all_axes()
        if a.get(axis.name, axis.default) != b.get(axis.name, axis.default)
    ]
    if len(changes) < 2:
        what = "one choice: Measure says what it is worth" if changes else "nothing"
        raise InputError(f"The arms differ in {what}. Add choices to arm B, and press What is each worth.")
    return changes
