"""The bench: queues runs, carries them out one at a time on executors, and keeps their log.

One permanent thread owns all executors (parent-death signals are tied to the thread that starts them) and conducts
one run at a time; every other thread submits, cancels and reads.
"""

import contextlib
import functools
import logging
import queue
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tokendyno.backend import hardware
from tokendyno.backend.arms.bundles import noted
from tokendyno.backend.arms.check import Checked, check
from tokendyno.backend.arms.parse import for_one_prompt, make_config
from tokendyno.backend.config import ArmRequest, Request, Workload
from tokendyno.backend.engine.allowed import check_allowed, check_download, check_model, check_room, check_runs
from tokendyno.backend.engine.conductor import Job, conduct, limit_run
from tokendyno.backend.engine.exchange import deadline_override_s
from tokendyno.backend.engine.executor import ChooseExecutor, Died, Letter, Wake, memory_key
from tokendyno.backend.engine.pool import WorkerPool
from tokendyno.backend.engine.turns import Pace, QueuePlace, Turns, place_of
from tokendyno.backend.errors import InputError
from tokendyno.backend.evidence import Verdict
from tokendyno.backend.hardware import Machine, peak_rates
from tokendyno.backend.hardware.compatibility import startup_messages
from tokendyno.backend.history.history import History, line_of
from tokendyno.backend.hosting.limits import LIMITS, Limits
from tokendyno.backend.hosting.visitor import LOCAL_USER, Visitor
from tokendyno.backend.models import (
    DEFAULT_MODEL,
    ModelFacts,
    check_loadable,
    download_bytes,
    obstacle,
    pinned,
    resolve,
)
from tokendyno.backend.models.catalogue import CatalogueEntry, catalogue
from tokendyno.backend.models.files import hub
from tokendyno.backend.recordings.recorded_runs import shipped_records
from tokendyno.backend.redact import redact
from tokendyno.backend.runs.earlier import Place, StartCosts, wait_keys
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.records import ArmPlanned, Created, Ended, Status
from tokendyno.backend.runs.retention import Retention
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.store import Store

log = logging.getLogger("tokendyno")

RUN_ID_BYTES = 12
"""Of a run's id, which is also its permalink: whoever knows it may watch, so it cannot be guessed (96 bits)."""

EXPECTED_SPARES, PREWARM_AFTER_S = 2, 4.0
"""Workers that are started ahead when somebody is about to run, and how long after that where the page needs the cores
itself."""
FEW_CORES = 4

FAULT_PAUSE_S = 1.0
"""How long the engine waits after a fault of its own, which may come again at once."""

QUIET_S = 20.0
"""Seconds without a run before the memory bandwidth is measured, which takes all cores for a few seconds."""


class Bench:
    """What the page and the command line use: check, submit, cancel, wait.

    history  None: runs are kept in memory only
    hosts    machines that share each model, this one included
    """

    def __init__(
        self,
        choose: ChooseExecutor,
        history: Path | None = None,
        models_dir: Path | None = None,
        limits: Limits = LIMITS["local"],
        hosts: int = 1,
    ) -> None:
        self.models_dir, self.limits, self._hosts = models_dir, limits, hosts
        deadline_override_s()  # report a bad value now, not in the middle of a run
        self.store = Store(history, Retention.from_environment(limits))
        self.runs = RunLog(self.store, shipped_records)
        self.history = History(self.store, self.runs, limits)
        self._start_costs = StartCosts(self.store)
        self._startup = [*startup_messages(), *self.machine().remarks, *_default_model_messages()]
        self.pool = WorkerPool(choose)
        self._turns, self._pace = Turns(), Pace()
        self._current: Job | None = None
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._prewarm_at_s = self._quiet_from_s = 0.0
        self._measuring_due = False
        self._thread = threading.Thread(target=self._work, name="engine", daemon=True)

    # --- for every thread -------------------------------------------------------------------------

    def start(self, prewarm: int = 0, prewarm_after_s: float = 0.0, measure_when_idle: bool = False) -> None:
        """Start the engine thread. `prewarm`: workers to start ahead of the first run, `prewarm_after_s` later, once a
        page has opened; `measure_when_idle`: measure the memory bandwidth once, after a quiet time."""
        self.pool.wanted_spares = prewarm
        self._prewarm_at_s = self._quiet_from_s = time.monotonic() + prewarm_after_s
        self._measuring_due = measure_when_idle
        self._thread.start()

    def expect_run(self) -> None:
        """Somebody is about to run: start workers ahead; with few cores once the page that is opening has had them."""
        if self.limits.runs and self.pool.wanted_spares == 0:
            self.pool.wanted_spares = EXPECTED_SPARES
            self._prewarm_at_s = time.monotonic() + PREWARM_AFTER_S * (self.machine().cores <= FEW_CORES)
            self.wake()

    def close(self) -> None:
        """Cancel all runs, end all workers, and finish writing the history."""
        self._closing.set()
        with self._lock:
            jobs, current = self._open_jobs(), self._current
            self._turns.clear()
        for job in jobs:
            if job is current:
                job.cancelled.set()
            else:
                self._end(job.run, "cancelled", "The app closed before this run started.")
        self.wake()
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        self.pool.end_all()
        self.store.close()

    def wake(self) -> None:
        """Make the engine thread look at the queue and at cancel flags."""
        self.pool.inbox.put(Letter(None, Wake()))

    def machine(self) -> Machine:
        return replace(hardware.detect(), hosts=self._hosts)

    @property
    def messages(self) -> list[str]:
        return [*self._startup, *self.store.messages, *filter(None, [self.store.trouble])]

    @property
    def freeable_bytes(self) -> int:
        """Memory that the bench's own workers hold on the device that runs use, and would free for the next run."""
        return self.pool.freeable_bytes(memory_key(self.machine().device))

    @property
    def local_paths(self) -> bool:
        return self.limits.local_paths

    def _open_jobs(self) -> list[Job]:
        """Every run that is queued or running; the caller holds the lock."""
        return [*self._turns, *([self._current] if self._current else [])]

    def place(self, run_id: str) -> QueuePlace | None:
        with self._lock:
            return place_of(run_id, self._current, self._turns, self._pace, time.monotonic())

    def facts(self, model: str) -> ModelFacts:
        check_model(model, self.limits)
        return resolve(model, self.models_dir, local_paths=self.local_paths)

    @functools.cached_property
    def offered(self) -> list[CatalogueEntry]:
        """The models of the catalogue for visitors to choose from: those that can run where a mode limits that."""
        limited = self.limits.model_bytes is not None or bool(self.limits.models)
        return [entry for entry in catalogue() if not limited or can_run(self, entry)]

    def check(self, request: Request, machine: Machine | None = None) -> dict[str, Checked]:
        """Check each arm as on a machine (None: this one). InputError if the request cannot be understood."""
        return self._check_arms(request, machine)[1]

    def loaded_arms(self, arms: Mapping[str, Checked]) -> list[str]:
        """Of these arms, those whose worker is likely to be kept: it holds the model from an earlier run."""
        return [name for name, arm in arms.items() if self.pool.keeps(name, arm.plan)]

    def start_costs(self, model: str) -> dict[str, float]:
        """Seconds that choices cost at the start, by earlier runs. InputError if these cannot be read now."""
        return self._start_costs.of(model, Place(self.machine().describe(), hardware.versions()))

    def obstacle(self, facts: ModelFacts) -> str:
        return obstacle(facts, self.machine().hub_offline)

    def _check_arms(self, request: Request, elsewhere: Machine | None = None) -> tuple[ModelFacts, dict[str, Checked]]:
        facts, machine = self.facts(request.model), elsewhere or self.machine()
        freed_bytes = 0 if elsewhere else self.pool.freeable_bytes(memory_key(machine.device))
        work, arms = request.workload, {}
        for arm in request.arms:
            checked = check(make_config(request.model, arm.choices), facts, machine, work, freed_bytes, request.traffic)
            arms[arm.name] = noted(checked, arm, facts, machine, work)
        check_allowed(request, facts, arms, machine, self.limits)
        return facts, arms

    def admitted(self, request: Request) -> tuple[ModelFacts, dict[str, Checked]]:
        """The model and each arm as they would run, the revision settled. InputError says why they cannot."""
        for arm in request.arms:
            if request.traffic is None:
                for_one_prompt(arm)
        check_runs(self.limits)
        facts, arms = self._check_arms(request)
        if lacking := self.obstacle(facts):
            raise InputError(lacking)
        if refused := [text for name, arm in arms.items() if (text := arm.refusal(name if len(arms) > 1 else ""))]:
            raise InputError(" ".join(refused))
        source = pinned(facts)
        check_download(download_bytes(source), self.limits)
        if request.quality is not None and facts.kind == "encoder":
            raise InputError(f"{facts.no_tokens}: it predicts no text. Choose a decoder.")
        return replace(facts, source=source), {name: checked.of(source) for name, checked in arms.items()}

    def submit(self, request: Request, visitor: Visitor = LOCAL_USER, *, fresh: bool = False) -> str:
        """Queue a run; returns its id. InputError says what is wrong. `fresh`: with new workers."""
        facts, arms = self.admitted(request)
        with self._lock:
            check_room(self._open_jobs(), len(self._turns), visitor, self.limits)
            created = self.created(request, facts, arms, visitor.owner)
            run = self.runs.create(created)
            self._turns.add(Job(run, facts, arms, visitor.address, fresh))
        self.wake()
        return run.id

    def created(self, request: Request, facts: ModelFacts, arms: dict[str, Checked], owner: str) -> Created:
        """The first record of a run of arms that were admitted: what each requests and what is planned for it."""
        machine, planned = self.machine(), list[ArmPlanned]()
        place = Place(machine.describe(), hardware.versions())
        for arm in request.arms:
            checked = arms[arm.name]
            remark = self.pool.choose(checked.plan).remark
            verdicts = [*checked.verdicts, *([Verdict("note", "arms", remark)] if remark else [])]
            waits = wait_keys(checked.plan, request.workload, place)
            choices = dict(checked.requested), dict(checked.planned)
            planned.append(ArmPlanned(arm.name, *choices, verdicts, checked.memory.by_part(), waits))
        if len(planned) == 2 and planned[0].planned == planned[1].planned:
            same = planned[0].requested == planned[1].requested
            what = "A and B are identical" if same else "A and B run the same plan on this model and machine"
            planned[1].verdicts.append(Verdict("note", "arms", f"{what}; any difference is noise."))
        return Created(
            secrets.token_hex(RUN_ID_BYTES),
            time.time(),
            request,
            planned,
            facts.label,
            facts.note,
            machine.describe(),
            machine.device,
            owner,
            "forward" if facts.kind == "encoder" else "token",
            hardware.versions(),
        )

    def cancel(self, run_id: str, visitor: Visitor = LOCAL_USER) -> bool:
        """Stop a run. False if it is unknown, has ended, or is not the visitor's own."""
        run = self.runs.get(run_id)
        if run is None or run.ended or run.created.owner != visitor.owner:
            return False
        with self._lock:
            if self._current is not None and self._current.run.id == run_id:
                self._current.cancelled.set()
            else:
                waiting = self._turns.remove(run_id)
                if waiting is None:
                    return False
                self._end(waiting.run, "cancelled", "Stopped before it started.")
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

    # --- the engine thread ------------------------------------------------------------------------

    def _work(self) -> None:
        while not self._closing.is_set():
            try:
                self._step()
            except Exception:  # nobody else takes runs from the queue
                log.exception("the engine failed and goes on")
                self._closing.wait(FAULT_PAUSE_S)
        self.pool.end_all()  # here, since the kernel ends workers with the thread that started them

    def _step(self) -> None:
        """Carry out the next run, or wait for one and do what is due meanwhile."""
        with self._lock:
            job = self._current = self._turns.take()
        if job is not None:
            job.begin_s = time.monotonic()
            self._run(job)
            self._quiet_from_s = time.monotonic()
            return
        wait_s = self._between_runs()
        with contextlib.suppress(queue.Empty):
            letter = self.pool.inbox.get(timeout=wait_s)
            self.pool.record(letter)
            if isinstance(letter.body, Died):
                log.warning("an idle worker ended: %s", letter.body.cause)

    def _between_runs(self) -> float | None:
        """Do what is due. Returns the seconds until something else is; None if nothing will be."""
        now_s = time.monotonic()
        if now_s < self._prewarm_at_s:
            return self._prewarm_at_s - now_s
        self.pool.prewarm()
        if not self._measuring_due:
            return None
        if now_s < self._quiet_from_s + QUIET_S:
            return self._quiet_from_s + QUIET_S - now_s
        self._measuring_due = not peak_rates.measure_once(
            self.machine(), lambda: self._closing.is_set() or bool(self._turns)
        )
        return 0.0 if self._measuring_due else None

    def _run(self, job: Job) -> None:
        clock = limit_run(job, self.limits.run_s, self.wake)
        status, message, bad_input = conduct(job, self.pool, self.runs, self.machine, self.limits)
        clock.cancel()
        if job.too_long and status == "cancelled":
            message = f"Stopped after {self.limits.run_s:,g} s, the limit of a run here. What was measured is kept."
        with self._lock:
            self._current = None
            if status == "done":
                self._pace.note(job.request, time.monotonic() - job.begin_s)
        self._end(job.run, status, message, bad_input)

    def _end(self, run: Run, status: Status, message: str, bad_input: bool = False) -> None:
        line = line_of(run.snapshot(), self.runs.reading, status) or redact(message)
        self.runs.append(run.id, Ended(run.elapsed_s, status, message, bad_input, line))


def can_run(bench: Bench, entry: CatalogueEntry) -> bool:
    """Whether a model with every axis at its default would not be refused, as far as that is known without the Hub."""
    try:
        facts, arms = bench.facts(entry.name), bench.check(Request(entry.name, [ArmRequest("A")], Workload("?")))
    except InputError:
        return False
    downloaded = not entry.repo or not hub.lacking(entry.repo, facts.source.at)
    no_download = (entry.gated and not bench.limits.owner_token) or bench.machine().hub_offline
    return not any(arm.blocked for arm in arms.values()) and (downloaded or not no_download)


def _default_model_messages() -> list[str]:
    """Why the embedded model cannot run, if it cannot; the app starts all the same."""
    try:
        check_loadable(resolve(DEFAULT_MODEL))
    except InputError as error:
        return [f"The default model {DEFAULT_MODEL} cannot run: {error}"]
    return []
