"""One command and its answer: sends it to an arm's worker and logs the events until it is answered, or a deadline,
which only progress extends, has passed."""

import math
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from tokendyno.backend.engine.executor import Died, Letter, Wake
from tokendyno.backend.engine.pool import Worker, WorkerPool
from tokendyno.backend.engine.worker_memory import MemoryWatch
from tokendyno.backend.errors import COPY_AGAIN, InputError
from tokendyno.backend.messages import (
    Annotation,
    BatchEvent,
    Cancel,
    Command,
    Event,
    Failed,
    Finished,
    Loaded,
    PageMoves,
    PagesAllocated,
    PartUse,
    PhaseName,
    Probed,
    Progress,
    Proved,
    Reading,
    RequestEnds,
    Samples,
    Scored,
    Started,
    Tokens,
    Waits,
)
from tokendyno.backend.redact import redact
from tokendyno.backend.runs.records import Status
from tokendyno.backend.units import bytes_text

CANCEL_GRACE_S = 1.0
"""How long a cancelled worker may take to finish the token in flight before it is killed."""

DEADLINE_S: dict[PhaseName, float] = {
    "start": 120,
    "import": 120,
    "download": 300,
    "load": 600,
    "quantize": 600,
    "compile": 600,
    "warmup": 600,
    "run": 300,
    "prove": 300,
    "quality": 300,
}
"""Seconds without progress after which a phase is ended. TOKENDYNO_DEADLINE_S overrides all of them."""

TEXT_LIMIT_S: dict[PartUse, float] = {"render": 15, "tokenize": 30}
"""Seconds after which a worker that renders a chat template, or turns a text into tokens, is ended. Either takes
milliseconds; 1 MiB of text took 0.7 s. What a file of the model makes of a text may take for ever, in native code."""

PHASES: dict[PhaseName, str] = {
    "start": "startup",
    "import": "imports",
    "download": "download",
    "load": "load",
    "quantize": "quantization",
    "compile": "compilation",
    "warmup": "warm-up",
    "run": "the measured run",
    "prove": "verification",
    "quality": "the reading of a text",
}
"""A phase as it is named in "failed during ..."."""

STOPPED = "What was measured so far is kept."
_AGAIN = "Run again; a new worker will be started."

LogEvent = Callable[[str, Event], None]
"""Appends an event of an arm to the run's log."""


class Halt(Exception):
    """The run ends here, with this status and message."""

    def __init__(self, status: Status, message: str, bad_input: bool = False) -> None:
        super().__init__(message)
        self.status, self.message, self.bad_input = status, message, bad_input


class OutOfTime(Exception):
    """A command was stopped since it took longer than it was given; the run goes on."""


def deadline_override_s() -> float | None:
    """TOKENDYNO_DEADLINE_S, or None where it is not set. InputError unless it is a positive number."""
    text = os.environ.get("TOKENDYNO_DEADLINE_S", "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InputError(
            f"TOKENDYNO_DEADLINE_S must be a positive number of seconds, not {text!r}. Set it to 600, say, or unset it."
        )
    return seconds


class Deadline:
    """The moment by which a phase must make progress; a new one is made after each step of progress. `use`: what the
    worker does with a part of its model meanwhile, which may have a limit of its own; `start_s`: at least so long for
    the start."""

    def __init__(self, phase: PhaseName, use: PartUse = "read", start_s: float = 0.0) -> None:
        self.limit_s = TEXT_LIMIT_S.get(use) or deadline_override_s() or DEADLINE_S[phase]
        if phase == "start":
            self.limit_s = max(self.limit_s, start_s)
        self._at_s = time.monotonic() + self.limit_s

    @property
    def left_s(self) -> float:
        return max(0.0, self._at_s - time.monotonic())


class Exchange:
    """What one run says to its workers and hears from them. Used by the engine thread only."""

    def __init__(
        self, pool: WorkerPool, arms: list[str], cancelled: threading.Event, log: LogEvent, watch: MemoryWatch
    ) -> None:
        self.phase: PhaseName = "start"
        self._pool, self._arms, self._cancelled, self._log = pool, arms, cancelled, log
        self._last_step: tuple[object, ...] = ()
        self._reading, self._watch = Reading(), watch
        self._until_s = math.inf

    def wait_ready(self, arm: str) -> None:
        self.phase, self._until_s = "start", math.inf
        worker = self._pool.slots[arm]
        while not worker.ready:
            self._next(arm, worker)

    def ask(
        self, arm: str, command: Command, phase: PhaseName, until_s: float = math.inf
    ) -> Loaded | Finished | Proved | Probed | Scored:
        """Send a command; returns its answer. `phase`: what the worker does until it reports a phase itself. `until_s`:
        when it is stopped, by time.monotonic; OutOfTime then."""
        self.phase, self._reading, self._until_s = phase, Reading(), until_s
        worker = self._pool.slots[arm]
        worker.executor.send(command)
        while True:
            event = self._next(arm, worker)
            self._log(arm, event)
            match event:
                case Progress(phase=reported):
                    self.phase = reported
                case Loaded() | Finished() | Proved() | Probed() | Scored():
                    return event
                case Failed():
                    self._fail(arm, event)
                case _:
                    pass

    def _fail(self, arm: str, failed: Failed) -> NoReturn:
        if failed.fatal:
            self._pool.drop(arm)
        where = "" if failed.bad_input else f"Arm {arm} failed during {PHASES[failed.phase]}. "
        advice = f" {failed.advice}" if failed.advice else ""
        raise Halt("failed", redact(f"{where}{failed.error}{advice}"), failed.bad_input)

    def _next(self, arm: str, worker: Worker) -> Event:
        """The worker's next event that means progress; memory samples and marks are logged on the way."""
        deadline = Deadline(self.phase, self._reading.use, worker.kind.start_s)
        while True:
            if self._cancelled.is_set():
                self._cancel(arm, worker)
            if self._watch.exceeded(worker.executor):
                self._end_large(arm)
            left_s = max(0.0, self._until_s - time.monotonic())
            if not left_s:
                if not self._stopped(arm, worker):
                    self._pool.drop(arm)
                raise OutOfTime
            try:
                letter = self._pool.inbox.get(timeout=min(deadline.left_s, self._watch.wait_s, left_s))
            except queue.Empty:
                if not deadline.left_s:
                    self._end_late(arm, deadline.limit_s)
                continue
            lost = self._pool.record(letter)
            if letter.executor is not worker.executor:
                self._check_others(arm, letter, lost)
                continue
            match letter.body:
                case Died(cause=cause):
                    advice = f"Run again. {self._blame}" if self._reading.part else _AGAIN
                    raise Halt("failed", redact(f"Arm {arm} stopped during {PHASES[self.phase]}: {cause} {advice}"))
                case Reading() as event:
                    self._reading, deadline = event, Deadline(self.phase, event.use)
                case Progress(state="step") as event if _reached(event) == self._last_step:
                    self._log(arm, event)  # no further than before: not progress, so keep the deadline
                case Progress() as event:
                    self._last_step = _reached(event)
                    return event
                case Samples() | Annotation() | Waits() | PageMoves() | PagesAllocated() | RequestEnds() as event:
                    self._log(arm, event)
                case Wake():
                    pass
                case event:
                    return event

    def _end_late(self, arm: str, limit_s: float) -> NoReturn:
        """The arm's worker made no progress for so long."""
        self._pool.drop(arm)
        if (reading := self._reading).use != "read":
            sentence = f"The model's {reading.part} took longer than {limit_s:g} s on this text and was stopped."
            raise Halt("failed", f"{sentence} {COPY_AGAIN}", bad_input=True)
        raise Halt(
            "failed",
            f"Arm {arm} made no progress for {limit_s:g} s during {PHASES[self.phase]} and was stopped. "
            + (self._blame or "Run again, or undo this arm's last change."),
        )

    def _end_large(self, arm: str) -> NoReturn:
        self._pool.drop(arm)
        size = " ".join(bytes_text(self._watch.limit_bytes or 0))
        raise Halt(
            "failed",
            f"Arm {arm} held more than {size} of memory during {PHASES[self.phase]}, the limit here, and was stopped. "
            + (self._blame or "Choose a smaller model, batch or length."),
        )

    @property
    def _blame(self) -> str:
        """What to do about the part of the model that the worker uses; "" where it uses none."""
        part, verb = self._reading.part, {"read": "read", "render": "rendered", "tokenize": "used"}[self._reading.use]
        return part and f"The model's {part} was being {verb}. {COPY_AGAIN}"

    def _check_others(self, arm: str, letter: Letter, lost: list[str]) -> None:
        """Halt if another arm of this run has just lost its worker. `arm` is ended too: it may be generating."""
        for slot in lost:
            if slot in self._arms and isinstance(letter.body, Died):
                self._pool.drop(arm)
                cause = f"Arm {slot} stopped while waiting for its turn: {letter.body.cause} {_AGAIN}"
                raise Halt("failed", redact(cause))

    def _cancel(self, arm: str, worker: Worker) -> NoReturn:
        """Ask a worker that is generating to stop; kill one that cannot listen, or does not answer in time."""
        if self.phase in ("run", "warmup", "prove", "quality") and worker.ready and self._stopped(arm, worker):
            raise Halt("cancelled", STOPPED)
        self._pool.drop(arm)
        raise Halt("cancelled", f"The worker was ended during {PHASES[self.phase]}. {STOPPED}")

    def _stopped(self, arm: str, worker: Worker) -> bool:
        """Ask a worker to end its command; whether it has, in good order and in time."""
        worker.executor.send(Cancel())
        until_s = time.monotonic() + CANCEL_GRACE_S
        while (left_s := until_s - time.monotonic()) > 0:
            try:
                letter = self._pool.inbox.get(timeout=left_s)
            except queue.Empty:
                return False
            self._pool.record(letter)
            if letter.executor is not worker.executor:
                continue
            body = letter.body
            if isinstance(body, Tokens | BatchEvent | Samples | Annotation | Progress | Started | Finished):
                self._log(arm, body)
            if isinstance(body, Died) or (isinstance(body, Failed) and body.fatal):
                return False
            if isinstance(body, Finished | Proved | Scored | Failed):
                return True
        return False


def _reached(event: Progress) -> tuple[object, ...]:
    """How far a phase is. A rate that changes while no byte arrives is no progress."""
    return event.phase, event.fraction, event.note, event.amount.done_bytes if event.amount else None
