"""The bench: takes requests, runs one arm at a time in worker processes, and writes the run log.

One permanent thread owns all workers (parent-death signals are tied to the thread that starts them) and
conducts one run at a time; every other thread submits, cancels and reads. Each arm has a worker of its own,
kept with its model between runs; where two models do not fit side by side, the first is ended before the
second loads.
"""

import collections
import contextlib
import logging
import os
import queue
import secrets
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from backend import hardware
from backend.arms import make_config
from backend.conduct import Conductor, Halt, deadline_override_s
from backend.errors import InputError
from backend.hardware import Machine
from backend.models import DEFAULT_MODEL, ModelFacts, loadable, resolve
from backend.records import ArmPlanned, Created, Ended, Request, Status, Verdict
from backend.rules import Checked, check
from backend.runlog import RunLog
from backend.runs import Run
from backend.startup import startup_messages
from backend.store import Store
from backend.workers import Inbox, Letter, Wake, WorkerProcess

log = logging.getLogger("tokendyno")

MOST_QUEUED = 16
MOST_START_FAILURES = 5


@dataclass(slots=True)
class Job:
    """A run on its way: what was asked, what the rules made of it, and whether it shall stop."""

    run: Run
    facts: ModelFacts
    arms: dict[str, Checked]
    cancelled: threading.Event = field(default_factory=threading.Event)


class Bench:
    """The facade that pages and command line use.

    history      None: runs are kept in memory only
    local_paths  False: no path outside `models_dir` is opened (a page that strangers can reach)
    """

    def __init__(self, history: Path | None = None, models_dir: Path | None = None, local_paths: bool = True) -> None:
        self.models_dir, self.local_paths = models_dir, local_paths
        deadline_override_s()  # a bad value is found out now, not in the middle of a run
        self.store = Store(history)
        self.runs = RunLog(self.store)
        self.messages = [*startup_messages(), *self.machine().remarks, *_default_model_messages()]
        self.messages += self.store.messages
        self.inbox: Inbox = Inbox()
        self.slots: dict[str, WorkerProcess] = {}
        self.spares: list[WorkerProcess] = []
        self._jobs: collections.deque[Job] = collections.deque()
        self._current: Job | None = None
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._wanted_spares = 0
        self._prewarm_at_s = 0.0
        self._start_failures = 0
        self._thread = threading.Thread(target=self._work, name="engine", daemon=True)

    # --- for every thread -------------------------------------------------------------------------

    def start(self, prewarm: int = 0, prewarm_after_s: float = 0.0) -> None:
        """Begin to work. `prewarm`: idle workers to keep, so that a first run need not wait for imports;
        `prewarm_after_s`: when, so that the imports do not take the cores from a page that is just opening."""
        self._wanted_spares = prewarm
        self._prewarm_at_s = time.monotonic() + prewarm_after_s
        self._thread.start()

    def close(self) -> None:
        """End the current run (marked cancelled), all workers, and write the history."""
        self._closing.set()
        with self._lock:
            jobs = [*self._jobs, *([self._current] if self._current else [])]
            self._jobs.clear()
            current = self._current
        for job in jobs:
            if job is current:
                job.cancelled.set()
            else:
                self._end(job.run, "cancelled", "The app was ended before this run began.")
        self.wake()
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        for worker in [*self.slots.values(), *self.spares]:
            worker.end()
        self.store.close()

    def wake(self) -> None:
        """Make the engine's thread look up."""
        self.inbox.put(Letter(None, Wake()))

    def machine(self) -> Machine:
        """The machine now."""
        return hardware.machine()

    def check(self, request: Request) -> dict[str, Checked]:
        """Judge a request arm by arm without running it. InputError for what cannot even be read."""
        return self._judge(request)[1]

    def _judge(self, request: Request) -> tuple[ModelFacts, dict[str, Checked]]:
        facts = resolve(request.model, self.models_dir, local_paths=self.local_paths)
        machine = self.machine()
        held = sum(worker.held_bytes for worker in list(self.slots.values()))
        arms = {
            arm.name: check(make_config(request.model, arm.choices), facts, machine, request.workload, held)
            for arm in request.arms
        }
        return facts, arms

    def submit(self, request: Request, owner: str = "") -> str:
        """Queue a run; returns its id. InputError says what is wrong and what to do."""
        facts, arms = self._judge(request)
        for name, checked in arms.items():
            checked.require_runnable(name if len(arms) > 1 else "")
        loadable(facts)
        with self._lock:
            if len(self._jobs) >= MOST_QUEUED:
                raise InputError(f"{MOST_QUEUED} runs are waiting already. Wait for one to end, then press Run again.")
            created = self._created(request, facts, arms, owner)
            run = self.runs.create(created)
            self._jobs.append(Job(run, facts, arms))
        self.wake()
        return run.id

    def _created(self, request: Request, facts: ModelFacts, arms: dict[str, Checked], owner: str) -> Created:
        machine = self.machine()
        planned = []
        for arm in request.arms:
            checked = arms[arm.name]
            memory = checked.memory
            planned.append(
                ArmPlanned(
                    arm.name, dict(checked.requested), dict(checked.planned), list(checked.verdicts),
                    memory.by_part(),
                )
            )  # fmt: skip
        if len(planned) == 2 and planned[0].planned == planned[1].planned:
            asked = planned[0].requested == planned[1].requested
            what = "A and B are identical" if asked else "A and B come to the same on this model and machine"
            planned[1].verdicts.append(Verdict("note", "arms", f"{what}: what differs between them is noise."))
        return Created(
            secrets.token_hex(6), time.time(), request, planned, facts.label, facts.note, machine.describe(),
            machine.device, owner, "forward" if facts.kind == "encoder" else "token",
        )  # fmt: skip

    def cancel(self, run_id: str, owner: str = "") -> bool:
        """Stop a run. False if it is unknown, has ended, or belongs to another owner."""
        run = self.runs.get(run_id)
        if run is None or run.ended or (run.created.owner and run.created.owner != owner):
            return False
        with self._lock:
            if self._current is not None and self._current.run.id == run_id:
                self._current.cancelled.set()
            else:
                waiting = next((job for job in self._jobs if job.run.id == run_id), None)
                if waiting is None:
                    return False
                self._jobs.remove(waiting)
                self._end(waiting.run, "cancelled", "Stopped before it began.")
        self.wake()
        return True

    def wait(self, run_id: str, timeout_s: float | None = None) -> Run:
        """Block until a run has ended (for scripts and the command line)."""
        run = self.runs.get(run_id)
        if run is None:
            raise KeyError(run_id)
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        while not run.ended:
            if deadline_s is not None and time.monotonic() > deadline_s:
                raise TimeoutError(run_id)
            time.sleep(0.02)
        return run

    # --- the engine's own thread ------------------------------------------------------------------

    def take_worker(self, slot: str, load_key: str) -> WorkerProcess:
        """The slot's worker if it is alive and holds that model or none; else a spare, else a new one."""
        worker = self.slots.get(slot)
        if worker is not None and worker.alive and worker.load_key in ("", load_key):
            return worker
        self.drop_worker(slot)
        self.spares = [spare for spare in self.spares if spare.alive]
        worker = self.spares.pop(0) if self.spares else WorkerProcess(self.inbox)
        self.slots[slot] = worker
        return worker

    def drop_worker(self, slot: str) -> None:
        """End a slot's worker and free its memory."""
        worker = self.slots.pop(slot, None)
        if worker is not None:
            worker.end()

    def _work(self) -> None:
        while not self._closing.is_set():
            with self._lock:
                job = self._jobs.popleft() if self._jobs else None
                self._current = job
            if job is not None:
                self._run(job)
                continue
            early_s = self._prewarm_at_s - time.monotonic()
            if early_s <= 0:
                self._prewarm()
            with contextlib.suppress(queue.Empty):
                self._handle_idle(self.inbox.get(timeout=early_s if early_s > 0 else None))

    def _prewarm(self) -> None:
        """Keep enough idle workers for the next run; give up after repeated failures to start."""
        have = [w for w in [*self.slots.values(), *self.spares] if w.alive]
        if len(have) < self._wanted_spares and self._start_failures < MOST_START_FAILURES:
            if self._start_failures:
                time.sleep(min(5.0, 0.2 * 2**self._start_failures))
            try:
                self.spares.append(WorkerProcess(self.inbox))
            except OSError as error:  # no memory or no process left: a run will say so, the engine lives on
                self._start_failures += 1
                log.warning("no worker could be started: %s", error)

    def _handle_idle(self, letter: Letter) -> None:
        from backend.messages import Ready
        from backend.workers import Died

        match letter.body:
            case Ready():
                assert letter.worker is not None
                letter.worker.now_ready()
                self._start_failures = 0
            case Died(cause=cause):
                assert letter.worker is not None
                if not letter.worker.ready:
                    self._start_failures += 1
                log.warning("an idle worker ended: %s", cause)
                self.spares = [spare for spare in self.spares if spare is not letter.worker]
                self.slots = {name: w for name, w in self.slots.items() if w is not letter.worker}
            case _:
                pass

    def _run(self, job: Job) -> None:
        conductor = Conductor(self, job)
        try:
            status, message, bad_input = conductor.perform()
        except Halt as halt:
            status, message, bad_input = halt.status, halt.message, halt.bad_input
        except Exception:
            log.exception("the engine failed on run %s", job.run.id)
            status, message, bad_input = "failed", "The engine failed on this run; the log says more.", False
            for slot in list(self.slots):
                self.drop_worker(slot)
        with self._lock:
            self._current = None
        self._end(job.run, status, message, bad_input)

    def _end(self, run: Run, status: Status, message: str, bad_input: bool = False) -> None:
        at_s = time.time() - run.created.created
        self.runs.append(run.id, Ended(at_s, status, message, bad_input))

    @property
    def pids(self) -> list[int]:
        """Process ids of all workers that are alive, for whoever watches the processes."""
        return [w.pid for w in [*self.slots.values(), *self.spares] if w.alive]


def _default_model_messages() -> list[str]:
    """What is wrong with the embedded model, if anything: the app starts all the same."""
    try:
        loadable(resolve(DEFAULT_MODEL))
    except InputError as error:
        return [f"The default model {DEFAULT_MODEL} cannot run: {error}"]
    return []


def default_history() -> Path:
    """Where the app keeps its history unless told otherwise."""
    base = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return Path(base) / "tokendyno" / "history.sqlite"
