"""One command and its answer: sends it to an arm's worker and logs the events until it is answered.

Ends the run (`Halt`) when the worker dies, makes no progress, reports a failure, or when the run is cancelled.
"""

import queue
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from backend.engine.deadlines import Deadline
from backend.engine.executor import Died, Letter
from backend.engine.pool import Worker, WorkerPool
from backend.messages import (
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
    PhaseName,
    Probed,
    Progress,
    Ready,
    RequestEnds,
    Samples,
    Scored,
    Started,
    Steps,
    Tokens,
    Waits,
)
from backend.redact import redact
from backend.runs.records import Status

CANCEL_GRACE_S = 1.0
"""How long a cancelled worker may take to finish the token in flight before it is killed."""

PHASES: dict[PhaseName, str] = {
    "start": "startup", "download": "download", "load": "load", "quantize": "quantization", "compile": "compilation",
    "warmup": "warm-up", "run": "the measured run", "prove": "verification",
}  # fmt: skip
"""A phase as it is named in "failed during ..."."""

STOPPED = "Stopped. What was measured so far is kept."
_AGAIN = "Run again; a new worker will be started."

LogEvent = Callable[[str, Event], None]
"""Appends an event of an arm to the run's log."""


class Halt(Exception):
    """The run ends here, with this status and message."""

    def __init__(self, status: Status, message: str, bad_input: bool = False) -> None:
        super().__init__(message)
        self.status, self.message, self.bad_input = status, message, bad_input


class Exchange:
    """What one run says to its workers and hears from them. Used by the engine thread only."""

    def __init__(self, pool: WorkerPool, arms: list[str], cancelled: threading.Event, log: LogEvent) -> None:
        self.phase: PhaseName = "start"
        self._pool, self._arms, self._cancelled, self._log = pool, arms, cancelled, log
        self._last_step: tuple[object, ...] = ()

    def wait_ready(self, arm: str) -> None:
        """Wait until the arm's worker accepts commands."""
        self.phase = "start"
        worker = self._pool.slots[arm]
        while not worker.ready:
            self._next(arm, worker)

    def ask(self, arm: str, command: Command, phase: PhaseName) -> Loaded | Finished | Probed | Scored:
        """Send a command; returns its answer. `phase`: what the worker does until it reports a phase itself."""
        self.phase = phase
        worker = self._pool.slots[arm]
        worker.executor.send(command)
        while True:
            event = self._next(arm, worker)
            self._log(arm, event)
            match event:
                case Progress(phase=reported):
                    self.phase = reported
                case Loaded() | Finished() | Probed() | Scored():
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
        deadline = Deadline(self.phase)
        while True:
            if self._cancelled.is_set():
                self._cancel(arm, worker)
            try:
                letter = self._pool.inbox.get(timeout=deadline.left_s)
            except queue.Empty:
                self._pool.drop(arm)
                raise Halt(
                    "failed",
                    f"Arm {arm} made no progress for {deadline.limit_s:g} s during {PHASES[self.phase]} and was "
                    "stopped. Run again, or undo this arm's last change.",
                ) from None
            lost = self._pool.record(letter)
            if letter.executor is not worker.executor:
                self._check_others(arm, letter, lost)
                continue
            match letter.body:
                case Died(cause=cause):
                    raise Halt("failed", redact(f"Arm {arm} stopped during {PHASES[self.phase]}: {cause} {_AGAIN}"))
                case Progress(state="step") as event if _reached(event) == self._last_step:
                    self._log(arm, event)  # no further than before: not progress, so keep the deadline
                case Progress() as event:
                    self._last_step = _reached(event)
                    return event
                case (
                    Ready() | Loaded() | Started() | Tokens() | Steps() | Finished() | Probed() | Scored() | Failed()
                ) as event:
                    return event
                case Samples() | Annotation() | Waits() | PageMoves() | PagesAllocated() | RequestEnds() as event:
                    self._log(arm, event)
                case _:
                    pass

    def _check_others(self, arm: str, letter: Letter, lost: list[str]) -> None:
        """Halt if another arm of this run has just lost its worker. `arm` is ended too: it may be generating."""
        for slot in lost:
            if slot in self._arms and isinstance(letter.body, Died):
                self._pool.drop(arm)
                cause = f"Arm {slot} stopped while waiting for its turn: {letter.body.cause} {_AGAIN}"
                raise Halt("failed", redact(cause))

    def _cancel(self, arm: str, worker: Worker) -> NoReturn:
        """Ask a worker that is generating to stop; kill one that cannot listen, or does not answer in time."""
        if self.phase in ("run", "warmup", "prove") and worker.ready:
            worker.executor.send(Cancel())
            until_s = time.monotonic() + CANCEL_GRACE_S
            while (left_s := until_s - time.monotonic()) > 0:
                try:
                    letter = self._pool.inbox.get(timeout=left_s)
                except queue.Empty:
                    break
                self._pool.record(letter)
                if letter.executor is not worker.executor:
                    continue
                body = letter.body
                if isinstance(body, Tokens | BatchEvent | Samples | Annotation | Progress | Started | Finished):
                    self._log(arm, body)
                if isinstance(body, Died) or (isinstance(body, Failed) and body.fatal):
                    break
                if isinstance(body, Finished | Failed):
                    raise Halt("cancelled", STOPPED)
        self._pool.drop(arm)
        raise Halt("cancelled", f"Stopped during {PHASES[self.phase]}; its worker was ended.")


def _reached(event: Progress) -> tuple[object, ...]:
    """How far a phase is. A rate that changes while no byte arrives is no progress."""
    return event.phase, event.fraction, event.note, event.amount.done_bytes if event.amount else None
