"""Trials that go on in a thread while somebody watches: what is being done, what is left, stop, and go on again.

The same trials and journal as on the command line. The thread submits one run after the other as the visitor who asked,
so trials take turns with the runs of others.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from tokendyno.backend.ablation.journal import Heading, Journal
from tokendyno.backend.ablation.sweep import Point
from tokendyno.backend.ablation.trials import Stopped, Task, TrialFailed, perform, reading_tasks, trial_tasks
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.visitor import Visitor
from tokendyno.backend.quality import Quality
from tokendyno.backend.quality.texts import shipped_texts
from tokendyno.backend.redact import redact
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.statistics import mean
from tokendyno.backend.units import plural

log = logging.getLogger("tokendyno")

CourseState = Literal["running", "stopped", "failed", "done"]
POSITIONS = 96
"""Tokens to predict in each text."""

POLL_S = 0.1


class Course:
    """One ablation or sweep. Any thread may read and stop it; its own thread carries it out, or a command does.

    points  what runs once a round; texts of the others are compared with those of the first
    closed  why it cannot go on here, "" if it can
    """

    def __init__(
        self, bench: Bench, course_id: str, heading: Heading, path: Path | None, points: Sequence[Point]
    ) -> None:
        """InputError where its journal cannot be used."""
        self.id, self.heading = course_id, heading
        self.state: CourseState = "stopped"
        self.message = self.doing = self.closed = ""
        self._bench, self._path, self.points = bench, path, points
        self.journal = Journal(path, heading, only_read=path is not None and path.exists())
        self.journal.close()
        self._stopping = threading.Event()
        self._trials_s, self._readings_s = list[float](), list[float]()  # what each took
        self._begin_s = 0.0

    @property
    def live(self) -> bool:
        return self.state == "running"

    @property
    def trials(self) -> int:
        """How many it has in all, readings of texts included."""
        return len(self.points) * self.heading.rounds + self._readings

    @property
    def finished(self) -> int:
        return self.journal.runs

    @property
    def share(self) -> float:
        return self.finished / max(1, self.trials)

    @property
    def count(self) -> str:
        return f"{self.finished} of {plural(self.trials, 'run')}"

    @property
    def outcome(self) -> str:
        return f"{plural(self.trials, 'run')} of {plural(self.heading.rounds, 'round')}, with 95% intervals."

    @property
    def complete(self) -> bool:
        return self.finished >= self.trials

    @property
    def _readings(self) -> int:
        return len({point.arm for point in self.points}) - 1 if self.heading.positions else 0

    def left_s(self) -> float | None:
        """Seconds that the rest will take, by the trials and readings so far; None while nothing tells."""
        trials = len(self.points) * self.heading.rounds - len(self.journal.trials)
        readings = self._readings - len(self.journal.costs)
        trial_s, reading_s = mean(self._trials_s), mean(self._readings_s)
        if not self.live or (trials and trial_s is None):
            return None
        if readings and reading_s is None:
            if trial_s is None:
                return None
            reading_s = trial_s * 4  # until the first one: four texts
        spent_s = time.monotonic() - self._begin_s
        return max(0.0, trials * (trial_s or 0.0) + readings * (reading_s or 0.0) - spent_s)

    # --- going on ---------------------------------------------------------------------------------

    def begin(self, visitor: Visitor) -> None:
        """Carry on where the journal ends. InputError where it cannot go on here, or the journal cannot be used."""
        if self.closed:
            raise InputError(self.closed)
        self.journal = Journal(self._path, self.heading) if self._path is not None else self.journal
        self._stopping.clear()
        self.state, self.message, self._begin_s = "running", "", time.monotonic()
        threading.Thread(target=self._perform, args=(visitor,), name="course", daemon=True).start()

    def stop(self) -> None:
        """End the trial in flight; finished ones are kept."""
        self._stopping.set()

    def _perform(self, visitor: Visitor) -> None:
        state: CourseState = "done"
        message = ""
        try:
            self._carry_out(visitor)
        except Stopped:
            state = "stopped"
        except TrialFailed as error:
            state, message = "failed", redact(f"{error} Go on measures the rest.")
        except InputError as error:
            state, message = "failed", redact(str(error))
        except Exception:
            log.exception("an ablation or sweep failed")
            state, message = "failed", "An internal error ended this; the log has the details. Go on again."
        finally:
            self.journal.close()
        self.doing, self.message, self.state = "", message, state

    def tasks(self, rounds: int, positions: int) -> list[Task]:
        """What the journal lacks of so many rounds, and of readings of texts in which `positions` tokens are predicted;
        0: no readings."""
        model = self.heading.model
        tasks = trial_tasks(model, self.points, rounds, self.journal, self.id)
        if positions:
            texts = Quality(shipped_texts(), positions=positions)
            tasks += reading_tasks(model, self.points, texts, self.journal, self.id)
        return tasks

    def _carry_out(self, visitor: Visitor) -> None:
        tasks = self.tasks(self.heading.rounds, self.heading.positions)
        perform(self._bench, tasks, self.journal, self._follow(visitor), visitor)

    def _follow(self, visitor: Visitor) -> Callable[[Run, str], None]:
        def wait(run: Run, what: str) -> None:
            self.doing, self._begin_s = what, time.monotonic()
            while not run.ended:
                if self._stopping.is_set():
                    self._bench.cancel(run.id, visitor)
                time.sleep(POLL_S)
            if run.status == "done":
                spent_s = self._trials_s if run.request.quality is None else self._readings_s
                spent_s.append(time.monotonic() - self._begin_s)

        return wait
