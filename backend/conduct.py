"""Conducts one run: workers ready, models loaded, arms in turn, each event into the log.

Deadlines are a phase's own and are fed by progress: what moves may take its time, what does not is ended.
"""

import os
import queue
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from backend import limits
from backend.errors import InputError
from backend.messages import (
    Cancel,
    Command,
    Event,
    Failed,
    Finished,
    Generate,
    Load,
    Loaded,
    Mark,
    PhaseName,
    Progress,
    Ready,
    Samples,
    Started,
    Tokens,
)
from backend.plan import Plan
from backend.predict.kv import kv_polyline
from backend.predict.memory import peak_bytes
from backend.predict.roofline import floor, floor_points
from backend.records import ArmEvent, FloorPoint, Foretold, KvPoint, Status
from backend.redact import redact
from backend.rules import setup_of
from backend.workers import Died, Letter, WorkerProcess

if TYPE_CHECKING:
    from backend.engine import Bench, Job

DEADLINE_S: dict[PhaseName, float] = {
    "start": 120, "download": 300, "load": 600, "quantize": 600, "compile": 600, "warmup": 600, "run": 300,
    "prove": 300,
}  # fmt: skip
"""Seconds without progress after which a phase is ended. TOKENDYNO_DEADLINE_S overrides all of them."""

CANCEL_GRACE_S = 1.0
_AGAIN = "Run again: a new worker is started."


def deadline_override_s() -> float | None:
    """TOKENDYNO_DEADLINE_S, or None where it is not set. InputError if it is no positive number."""
    text = os.environ.get("TOKENDYNO_DEADLINE_S", "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InputError(f"TOKENDYNO_DEADLINE_S is {text!r}; give seconds, such as 600, or unset it.")
    return seconds


class Halt(Exception):
    """The run ends here, with this status and sentence."""

    def __init__(self, status: Status, message: str, bad_input: bool = False) -> None:
        super().__init__(message)
        self.status, self.message, self.bad_input = status, message, bad_input


class Conductor:
    """One job on the bench's engine thread."""

    def __init__(self, bench: "Bench", job: "Job") -> None:
        self.bench, self.job = bench, job
        self.run = job.run
        self.arms = [arm.name for arm in job.run.created.arms]
        self.phase: PhaseName = "start"
        self.machine = bench.machine()
        self.repeat = 0
        self.begin_s = time.monotonic()
        self._moved: tuple[float | None, str] = (None, "")

    def perform(self) -> tuple[Status, str, bool]:
        """Run all arms and repeats. Raises Halt when it must end early."""
        limits.learn(self.machine, self._say, self.job.cancelled.is_set)
        together = self._fit_together()
        if together:
            for arm in self.arms:
                self.bench.take_worker(arm, self._plan(arm).load_key)
            for arm in self.arms:
                self._ready(arm)
                self._load(arm)
        for repeat in range(self.run.request.workload.repeats):
            self.repeat = repeat
            for arm in self.arms:
                if not together:
                    for other in self.arms:
                        if other != arm:
                            self.bench.drop_worker(other)
                    self.bench.take_worker(arm, self._plan(arm).load_key)
                    self._ready(arm)
                    self._load(arm)
                self._generate(arm)
        return "done", "", False

    def _plan(self, arm: str) -> Plan:
        return self.job.arms[arm].plan

    def _fit_together(self) -> bool:
        """Whether all arms' models fit side by side. Other runs' workers are ended if their memory is needed."""
        total = sum(checked.memory.total for checked in self.job.arms.values())
        slots = self.bench.slots
        room = self.bench.machine().room_bytes + sum(w.held_bytes for name, w in slots.items() if name in self.arms)
        for name in [name for name in slots if name not in self.arms]:
            if total > room:
                room += slots[name].held_bytes
                self.bench.drop_worker(name)
        return total <= room

    # --- the steps of one arm ---------------------------------------------------------------------

    def _ready(self, arm: str) -> None:
        worker = self.bench.slots[arm]
        if worker.ready and worker.begin_s < self.begin_s:
            return  # it was there before this run: no start to tell of
        self.phase = "start"
        self._log(arm, Progress("start", "begin", worker.start_s or time.monotonic() - worker.begin_s))
        while worker.start_s is None:
            if isinstance(self._next(arm, worker), Ready):
                worker.now_ready()
        self._log(arm, Progress("start", "end", worker.start_s, 1.0))

    def _load(self, arm: str) -> None:
        worker, checked = self.bench.slots[arm], self.job.arms[arm]
        self.phase = "load"
        event = self._ask(arm, worker, Load(checked.plan, checked.memory.weights))
        assert isinstance(event, Loaded)
        worker.load_key = checked.plan.load_key
        worker.held_bytes = worker.memory_bytes if checked.plan.load.device == "cpu" else checked.memory.total

    def _generate(self, arm: str) -> None:
        worker, work = self.bench.slots[arm], self.run.request.workload
        self.phase = "warmup"
        command = Generate(
            plan=self._plan(arm), prompt=work.prompt, prompt_tokens=work.prompt_tokens,
            max_new_tokens=work.max_new_tokens, batch_size=work.batch_size, temperature=work.temperature,
            seed=work.seed, ignore_eos=work.ignore_eos or self.job.facts.random, warmup=True,
            top_k=work.top_k, top_p=work.top_p, chat=work.chat, reasoning_effort=work.reasoning_effort,
            prove=self.repeat == work.repeats - 1,
        )  # fmt: skip
        event = self._ask(arm, worker, command)
        assert isinstance(event, Finished)
        if self._plan(arm).load.device == "cpu":
            worker.held_bytes = worker.memory_bytes
        if event.reason == "cancelled":
            raise Halt("cancelled", "Stopped. What was measured until then is kept.")

    def _ask(self, arm: str, worker: WorkerProcess, command: Command) -> Event:
        """Send a command and log what comes until it is answered."""
        worker.send(command)
        while True:
            event = self._next(arm, worker)
            if isinstance(event, Ready):
                worker.now_ready()
                continue
            self._log(arm, event)
            match event:
                case Progress(phase=phase):
                    self.phase = phase
                case Started():
                    self._foretell(arm, event)
                case Loaded() | Finished():
                    return event
                case Failed():
                    if event.fatal:
                        self.bench.drop_worker(arm)
                    advice = f" {event.advice}" if event.advice else ""
                    where = "" if event.bad_input else f"Arm {arm} failed while it should {_WORDS[event.phase]}. "
                    raise Halt("failed", redact(f"{where}{event.error}{advice}"), event.bad_input)
                case _:
                    pass

    def _next(self, arm: str, worker: WorkerProcess) -> Event:
        """The worker's next event; Halt on its death, its deadline, or a cancel."""
        limit_s = deadline_override_s() or DEADLINE_S[self.phase]
        deadline_s = time.monotonic() + limit_s
        while True:
            if self.job.cancelled.is_set():
                self._stop(arm, worker)
            try:
                letter = self.bench.inbox.get(timeout=max(0.0, deadline_s - time.monotonic()))
            except queue.Empty:
                self.bench.drop_worker(arm)
                raise Halt(
                    "failed",
                    f"Arm {arm} made no progress for {limit_s:.0f} s while it should {_WORDS[self.phase]}, and was "
                    "ended. Run again, or switch this arm's last change off.",
                ) from None
            if letter.worker is not worker:
                lost = self._other(letter)
                if lost:
                    self.bench.drop_worker(arm)
                    raise Halt("failed", lost)
                continue
            match letter.body:
                case Died(cause=cause):
                    self.bench.drop_worker(arm)
                    lost = redact(f"Arm {arm} stopped while it should {_WORDS[self.phase]}: {cause} {_AGAIN}")
                    raise Halt("failed", lost)
                case Progress(state="step", fraction=done, note=note) as event if (done, note) == self._moved:
                    self._log(arm, event)  # said something, moved nothing: the deadline stays
                case Progress() as event:
                    self._moved = (event.fraction, event.note)
                    return event
                case Ready() | Loaded() | Started() | Tokens() | Finished() | Failed() as event:
                    return event
                case Samples() | Mark() as event:
                    self._log(arm, event)
                case _:
                    pass

    def _stop(self, arm: str, worker: WorkerProcess) -> None:
        """Cancel: politely while tokens are made, by ending the process while it cannot listen."""
        if self.phase in ("run", "warmup", "prove") and worker.ready:
            worker.send(Cancel())
            deadline_s = time.monotonic() + CANCEL_GRACE_S
            while (left_s := deadline_s - time.monotonic()) > 0:
                try:
                    letter = self.bench.inbox.get(timeout=left_s)
                except queue.Empty:
                    break
                body = letter.body
                if letter.worker is not worker:
                    self._other(letter)
                    continue
                if isinstance(body, Tokens | Samples | Mark | Progress | Started | Finished):
                    self._log(arm, body)
                if isinstance(body, Died) or (isinstance(body, Failed) and body.fatal):
                    break
                if isinstance(body, Finished | Failed):
                    raise Halt("cancelled", "Stopped. What was measured until then is kept.")
        self.bench.drop_worker(arm)
        raise Halt("cancelled", f"Stopped while it should {_WORDS[self.phase]}; the worker was ended.")

    def _other(self, letter: Letter) -> str:
        """News of a worker that is not the one at work: a sentence if this run cannot go on without it."""
        worker, lost = letter.worker, ""
        if worker is not None and isinstance(letter.body, Ready):
            worker.now_ready()
        elif isinstance(letter.body, Died):
            for slot, held in list(self.bench.slots.items()):
                if held is worker:
                    self.bench.drop_worker(slot)
                    if slot in self.arms:
                        lost = redact(f"Arm {slot} stopped while it waited for its turn: {letter.body.cause} {_AGAIN}")
            self.bench.spares = [spare for spare in self.bench.spares if spare is not worker]
        return lost

    # --- the log ----------------------------------------------------------------------------------

    def _say(self, note: str) -> None:
        """Something that is done before any worker is at work."""
        self._log(self.arms[0], Progress("start", "begin", 0.0, None, note))

    def _log(self, arm: str, event: Event) -> None:
        if isinstance(event, Ready):
            return
        at_s = time.time() - self.run.created.created
        self.bench.runs.append(self.run.id, ArmEvent(arm, self.repeat, at_s, event))

    def _foretell(self, arm: str, event: Started) -> None:
        if self.repeat:
            return
        facts, checked = self.job.facts, self.job.arms[arm]
        setup = replace(setup_of(checked.plan, self.machine), max_places=event.places)
        first, last = event.prompt_tokens, event.prompt_tokens + event.max_new_tokens - 1
        kept = []
        if facts.kind == "decoder":
            points = kv_polyline(
                facts, setup.cache, first, last, event.batch_size, checked.itemsize, event.places,
            )  # fmt: skip
            kept = [KvPoint(p.length, p.sliding, p.full) for p in points]
        else:
            first = last = event.prompt_tokens
        memory = peak_bytes(facts, setup, event.prompt_tokens, event.max_new_tokens, event.batch_size)
        found = limits.of_machine(self.machine, facts.dtype if setup.dtype == "auto" else setup.dtype)
        floors, note, work = [], limits.UNKNOWN, ""
        if found is not None:
            begin = min(first + 1, last) if facts.kind == "decoder" else first  # token 0 is the prefill
            floors = [FloorPoint(*at) for at in floor_points(facts, setup, begin, last, event.batch_size, found)]
            least = floor(facts, setup, begin, event.batch_size, found)
            note, work = limits.basis(least, found), limits.work(least)
            if checked.plan.generate.prompt_lookup:
                work += " for a step of one token: speculation can beat it"
        self.bench.runs.append(self.run.id, Foretold(arm, kept, floors, note, work, memory.by_part()))


_WORDS: dict[PhaseName, str] = {
    "start": "start", "download": "download", "load": "load", "quantize": "quantize", "compile": "compile",
    "warmup": "warm up", "run": "run", "prove": "prove what was on",
}  # fmt: skip
