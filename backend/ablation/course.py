"""An ablation that goes on in a thread while somebody watches: what is being done, what is left, stop, and go on again.

The same steps, trials and journal as on the command line. The thread submits one run after the other as the visitor who
asked, so trials take turns with the runs of others.
"""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from backend.ablation.journal import Heading, Journal
from backend.ablation.result import StepResult, results
from backend.ablation.steps import KINDS, Kind, plan_steps
from backend.ablation.trials import Admitted, Stopped, TrialFailed, admit, perform, read_texts
from backend.engine.bench import Bench
from backend.errors import InputError
from backend.hosting.visitor import Visitor
from backend.quality import Quality
from backend.quality.presets import shipped_texts
from backend.redact import redact
from backend.runs.run import Run
from backend.runs.statistics import mean

log = logging.getLogger("tokendyno")

CourseState = Literal["running", "stopped", "failed", "done"]
READING = "quality: "
POLL_S = 0.1


class Course:
    """One ablation of a visitor. Any thread may read and stop it; its own thread carries it out."""

    def __init__(self, bench: Bench, course_id: str, heading: Heading, path: Path | None) -> None:
        """InputError where nothing of it can run here, or its journal cannot be used."""
        self.id, self.heading = course_id, heading
        self.state: CourseState = "stopped"
        self.message = self.doing = ""
        self._bench, self._path = bench, path
        kinds: list[Kind] = [kind for kind in KINDS if kind in heading.kinds]
        self.steps = plan_steps(heading.model, heading.base, heading.changes, kinds)
        self.admitted: Admitted = admit(bench, heading.model, self.steps, heading.workload)
        self._choices = {step.arm: step.choices for step in self.steps if step.arm not in self.admitted.refused}
        self._journal = Journal(path, heading)
        self._journal.close()
        self._stopping = threading.Event()
        self._spent_s: dict[bool, list[float]] = {False: [], True: []}  # of a trial, and of a reading
        self._begin_s = 0.0
        self._known: tuple[int, list[StepResult]] = (-1, [])

    @property
    def live(self) -> bool:
        """Whether its thread is at work."""
        return self.state == "running"

    @property
    def trials(self) -> int:
        """How many it has in all, readings of texts included."""
        arms = len(self._choices)
        return arms * self.heading.rounds + self._readings(arms)

    @property
    def finished(self) -> int:
        """How many of them are done."""
        return len(self._journal.trials) + len(self._journal.costs)

    def _readings(self, arms: int) -> int:
        return arms - 1 if self.heading.positions else 0

    def left_s(self) -> float | None:
        """Seconds that the rest will take, by the trials and readings so far; None while nothing tells."""
        arms = len(self._choices)
        trials = arms * self.heading.rounds - len(self._journal.trials)
        readings = self._readings(arms) - len(self._journal.costs)
        trial_s, reading_s = mean(self._spent_s[False]), mean(self._spent_s[True])
        if not self.live or (trials and trial_s is None):
            return None
        if readings and reading_s is None:
            if trial_s is None:
                return None
            reading_s = trial_s * 4  # until the first one: four texts
        spent_s = time.monotonic() - self._begin_s
        return max(0.0, trials * (trial_s or 0.0) + readings * (reading_s or 0.0) - spent_s)

    def results(self) -> list[StepResult]:
        """Each step, from the trials that there are."""
        finished = self.finished
        if self._known[0] != finished:
            greedy = self.heading.workload.temperature == 0
            self._known = finished, results(self.steps, self.admitted, self._journal, greedy)
        return self._known[1]

    # --- going on ---------------------------------------------------------------------------------

    def begin(self, visitor: Visitor) -> None:
        """Carry on where the journal ends. InputError where the journal cannot be used."""
        self._journal = Journal(self._path, self.heading) if self._path is not None else self._journal
        self._stopping.clear()
        self.state, self.message, self._begin_s = "running", "", time.monotonic()
        threading.Thread(target=self._perform, args=(visitor,), name="ablation", daemon=True).start()

    def stop(self) -> None:
        """End the trial in flight; finished ones are kept."""
        self._stopping.set()

    def _perform(self, visitor: Visitor) -> None:
        state: CourseState = "done"
        message, heading = "", self.heading
        arms = [*self._choices]
        follow = self._follow(visitor)
        try:
            perform(self._bench, heading.model, arms, self._choices, heading.workload, heading.rounds, self._journal,
                    follow, visitor, self.id)  # fmt: skip
            if heading.positions:
                asked = Quality(shipped_texts(), positions=heading.positions)
                read_texts(self._bench, heading.model, arms, self._choices, asked, self._journal, follow, visitor,
                           self.id)  # fmt: skip
        except Stopped:
            state = "stopped"
        except TrialFailed as error:
            state, message = "failed", redact(f"{error} Go on measures the rest.")
        except InputError as error:
            state, message = "failed", redact(str(error))
        except Exception:
            log.exception("an ablation failed")
            state, message = "failed", "An internal error ended this ablation; the log has the details. Go on again."
        finally:
            self._journal.close()
        self.doing, self.message, self.state = "", message, state

    def _follow(self, visitor: Visitor) -> Callable[[Run, str], None]:
        def wait(run: Run, what: str) -> None:
            self.doing, self._begin_s = what, time.monotonic()
            while not run.ended:
                if self._stopping.is_set():
                    self._bench.cancel(run.id, visitor)
                time.sleep(POLL_S)
            if run.status == "done":
                self._spent_s[what.startswith(READING)].append(time.monotonic() - self._begin_s)

        return wait
