"""Conducts one run: workers ready, models loaded, arms in turn, every event into the log."""

import contextlib
import dataclasses
import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tokendyno.backend.arms.check import Checked
from tokendyno.backend.arms.requests import of_arm
from tokendyno.backend.config import LEAST_PAIRS, Request
from tokendyno.backend.engine.exchange import STOPPED, Exchange, Halt, OutOfTime
from tokendyno.backend.engine.executor import StartError, memory_key
from tokendyno.backend.engine.pool import WorkerPool
from tokendyno.backend.engine.prediction import expected_device_s, predict
from tokendyno.backend.engine.worker_memory import MemoryWatch, worker_limit
from tokendyno.backend.files.own_folder import own_folder
from tokendyno.backend.hardware import Machine, peak_rates
from tokendyno.backend.hosting.limits import Limits
from tokendyno.backend.messages import Event, Finished, Generate, Load, Probe, Progress, Prove, Ready, Score, Started
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.paths import private_folder
from tokendyno.backend.plan import Plan
from tokendyno.backend.quality.texts import MIN_POSITIONS, Quality
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.quality import UNREAD, gate_of, given_texts
from tokendyno.backend.runs.records import ArmEvent, Status
from tokendyno.backend.runs.run import Run

log = logging.getLogger("tokendyno")

MOST_CONTEXT = 64
"""Tokens of a prompt up to which given texts are read in the shapes of the run, with as long a beginning: of what comes
with tokendyno, each has some 200 tokens more. A longer prompt is no shape for them, and they are warmed up for."""

READING_STEPS = 2
"""How many steps a position of a text takes at most: its step, and what is kept and compared of it."""
ENOUGH_POSITIONS = 192
"""Of an earlier reading by the same arms, so that it need not be done again."""
TOO_LONG = "it takes longer than the pairs did; the command tokendyno quality reads it"


@dataclass(slots=True)
class Job:
    """A queued or running run: its facts, the checked plan of each arm, and a cancel flag."""

    run: Run
    facts: ModelFacts
    arms: dict[str, Checked]
    address: str = ""
    fresh: bool = False
    begin_s: float = 0.0
    too_long: bool = False
    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def id(self) -> str:
        return self.run.id

    @property
    def owner(self) -> str:
        return self.run.created.owner

    @property
    def request(self) -> Request:
        return self.run.request


def limit_run(job: Job, limit_s: float | None, wake: Callable[[], None]) -> threading.Timer:
    """A clock that cancels a run which takes longer than `limit_s`; it stands still for None. Cancel it at the end."""

    def stop() -> None:
        job.too_long = True
        job.cancelled.set()
        wake()

    clock = threading.Timer(limit_s or 0.0, stop)
    clock.daemon = True
    if limit_s is not None:
        clock.start()
    return clock


def conduct(
    job: Job, pool: WorkerPool, runs: RunLog, detect: Callable[[], Machine], limits: Limits
) -> tuple[Status, str, bool]:
    """Carry out a run. Returns how it ended, a message, and whether what was given was at fault."""
    try:
        if job.fresh:
            pool.end_slots()
        Conductor(job, pool, runs, detect(), limits).perform()
    except Halt as halt:
        return halt.status, halt.message, halt.bad_input
    except Exception:
        log.exception("the engine failed on run %s", job.run.id)
        pool.end_slots()
        return "failed", "An internal error ended this run; the log has the details. Run again.", False
    return "done", "", False


class Conductor:
    """One job, on the engine thread. `machine`: as it was when the run began."""

    def __init__(self, job: Job, pool: WorkerPool, log: RunLog, machine: Machine, limits: Limits) -> None:
        self._job, self._pool, self._runs, self._machine = job, pool, log, machine
        self._run = job.run
        self._arms = [arm.name for arm in job.run.created.arms]
        self._most_prompt_tokens = limits.prompt_tokens or 0
        watch = MemoryWatch(worker_limit(limits, machine))
        self._exchange = Exchange(pool, self._arms, job.cancelled, self._log, watch)
        self._repeat = 0
        self._decides = job.request.until_s > 0 and len(self._arms) == 2
        self._together = True  # whether all arms' models are loaded side by side
        self._begin_s = time.monotonic()

    def perform(self) -> None:
        self._runs.expect(self._run.created)
        peak_rates.measure_unknown_gpu(
            self._machine,
            lambda note: self._log(self._arms[0], Progress("start", "begin", 0.0, None, note)),
            self._job.cancelled.is_set,
        )
        self._together = self._fit_together()
        if self._together:
            for arm in self._arms:
                self._take(arm)
            for arm in self._arms:
                self._load(arm)
        if self._run.request.quality is not None:
            self._read_texts(self._run.request.quality)
            return
        pairs_s = self._run_all()
        if self._proves_last and self._run.request.proof:
            for arm in self._arms:
                self._exchange.ask(arm, Prove(), "prove")
                self._note_memory(arm)
        self._probe_difference()
        if self._proves_last:
            self._read_after(pairs_s)

    @property
    def _proves_last(self) -> bool:
        """Whether proofs wait for the last pair, as texts do: where a worker holds one arm's model at a time."""
        return self._decides and self._together

    def _run_all(self) -> float:
        """Run each arm as often as asked, or in pairs until they decide. Returns the seconds, without warm-up."""
        request, spent_s = self._run.request, 0.0
        repeats = max(LEAST_PAIRS, request.workload.repeats) if self._decides else request.workload.repeats
        for self._repeat in range(repeats):
            begin_s = time.monotonic()
            for arm in self._arms:
                self._make_ready(arm)
                self._generate(arm)
            round_s = time.monotonic() - begin_s
            if self._repeat == 0:  # it includes the warm-up
                round_s = sum(arm.finishes[0].wall_s for arm in self._run.snapshot().arms.values())
            spent_s += round_s
            if not self._decides or self._repeat + 1 < LEAST_PAIRS:
                continue
            comparison = self._run.snapshot().comparison
            if spent_s + round_s > request.until_s or (comparison is not None and comparison.decided):
                break
        return spent_s

    def _make_ready(self, arm: str) -> None:
        """Where models do not fit side by side, an arm's is loaded in place of the other's."""
        if not self._together:
            for other in self._arms:
                if other != arm:
                    self._pool.drop(other)
            self._take(arm)
            self._load(arm)

    def _read_after(self, most_s: float) -> None:
        """Both arms read texts in the shapes of the run where it is unknown how much they differ. The last phase tells
        why not, such as after `most_s`."""
        run, request = self._run.snapshot(), self._run.request
        reading, gate = given_texts(request), gate_of(run, self._runs.reading)
        if reading is None or gate is None or gate.state in ("settled", "random") or gate.positions >= ENOUGH_POSITIONS:
            return
        step_s = sum(run.summaries[arm].latency_mean_s or 0.0 for arm in self._arms)
        positions = min(reading.positions, int(most_s / (READING_STEPS * step_s)) if step_s else reading.positions)
        if positions < MIN_POSITIONS:
            return
        started = {name: arm.started for name, arm in run.arms.items() if arm.started is not None}
        prompt = min(start.prompt_tokens for start in started.values())  # of several paddings the least: all pad alike
        same_shapes = prompt <= MOST_CONTEXT and request.workload.batch_size == 1
        context = prompt if same_shapes else reading.context
        quality = msgspec.structs.replace(reading, positions=positions, context=context)
        until_s = time.monotonic() + most_s
        with own_folder("run-", private_folder("distributions")) as folder:
            for index in range(len(quality.texts)):
                begin_s = time.monotonic()
                for arm, start in started.items():
                    arm_begin_s = time.monotonic()
                    try:
                        self._score(arm, quality, index, folder, start.places if same_shapes else 0, until_s)
                    except (Halt, OutOfTime) as error:
                        if isinstance(error, Halt) and error.status != "failed":
                            raise
                        why = error.message.rstrip(".") if isinstance(error, Halt) else TOO_LONG
                        spent_s = time.monotonic() - arm_begin_s
                        self._log(arm, Progress("quality", "end", spent_s, None, f"{UNREAD}: {why}"))
                        return
                if time.monotonic() + (time.monotonic() - begin_s) > until_s:
                    break

    def _read_texts(self, quality: Quality) -> None:
        """All texts through the first arm, then the second, compared; each then generates once, for proof."""
        with own_folder("run-", private_folder("distributions")) as folder:
            for arm in self._arms:
                self._make_ready(arm)
                try:
                    for index in range(len(quality.texts)):
                        self._score(arm, quality, index, folder)
                except Halt:
                    self._pool.drop(arm)  # what it had read by then would count as the next run's memory
                    raise
                self._generate(arm)

    def _score(
        self, arm: str, quality: Quality, index: int, folder: Path, places: int = 0, until_s: float = math.inf
    ) -> None:
        """Give an arm a text. `places`: slots of a static cache, at least."""
        first, text = arm == self._arms[0], quality.texts[index]
        file = str(folder / str(index)) if len(self._arms) > 1 else ""
        command = Score(
            self._plan(arm),
            text.text,
            quality.context,
            quality.positions,
            file if first else "",
            "" if first else file,
            text.name,
            places,
        )
        self._exchange.ask(arm, command, "quality", until_s)

    def _probe_difference(self) -> None:
        """Where greedy texts differ, ask a worker how close the choice was. A failure costs this answer only."""
        texts = self._run.snapshot().texts
        arm = next((name for name in self._arms if name in self._pool.slots), None)
        if texts is None or texts.tokens_equal_until is None or arm is None:
            return
        ids = self._run.arms[arm].ids[: texts.tokens_equal_until]
        with contextlib.suppress(Halt):
            self._exchange.ask(arm, Probe(ids), "prove")

    def _plan(self, arm: str) -> Plan:
        return self._job.arms[arm].plan

    def _fit_together(self) -> bool:
        """Whether all arms' models can be loaded side by side; ends workers of other slots if that makes room."""
        if not all(self._pool.choose(self._plan(arm)).isolated for arm in self._arms):
            return len(self._arms) == 1
        device, slots = memory_key(self._machine.device), self._pool.slots
        total = sum(checked.needed_bytes for checked in self._job.arms.values())
        room = self._machine.free_device_bytes
        room += sum(slots[arm].freeable_bytes.get(device, 0) for arm in self._arms if arm in slots)
        for slot in [slot for slot in slots if slot not in self._arms]:
            if total > room:
                room += slots[slot].freeable_bytes.get(device, 0)
                self._pool.drop(slot)
        return total <= room

    # --- the steps of one arm ---------------------------------------------------------------------

    def _take(self, arm: str) -> None:
        try:
            self._pool.take(arm, self._plan(arm), self._command(arm))
        except StartError as error:
            raise Halt("failed", f"Arm {arm} failed during startup. {error}") from error

    def _load(self, arm: str) -> None:
        """Wait for the arm's worker and have it load the arm's model, if it does not hold it yet."""
        self._wait_ready(arm)
        checked = self._job.arms[arm]
        expected_s = expected_device_s(self._run.request, checked, self._job.facts, self._machine)
        self._exchange.ask(arm, Load(checked.plan, checked.memory.weights, expected_s), "load")
        self._pool.slots[arm].executor.load_key = checked.plan.load_key
        self._note_memory(arm)

    def _wait_ready(self, arm: str) -> None:
        worker = self._pool.slots[arm]
        if worker.ready and worker.begin_s < self._begin_s and not worker.remark:
            return  # started before this run: its startup is not part of this run's log
        note, worker.remark = worker.remark, ""
        self._log(arm, Progress("start", "begin", worker.start_s or time.monotonic() - worker.begin_s, None, note))
        self._exchange.wait_ready(arm)
        assert worker.start_s is not None
        note = "; ".join(part for part in (note, worker.executor.note) if part)
        self._log(arm, Progress("start", "end", worker.start_s - worker.import_s, 1.0, note))
        if worker.import_s:
            for state in ("begin", "end"):
                self._log(arm, Progress("import", state, worker.import_s, 1.0))

    def _command(self, arm: str) -> Generate:
        request, later = self._run.request, self._proves_last
        last = LEAST_PAIRS - 1 if self._decides else request.workload.repeats - 1
        work, traffic = of_arm(request.workload, request.traffic, self._plan(arm))
        given = dataclasses.asdict(work) | {"ignore_eos": work.ignore_eos or self._job.facts.random}
        del given["repeats"]  # each is a command
        return Generate(
            plan=self._plan(arm),
            **given,
            warmup=True,
            prove=request.proof and self._repeat == last and not later,
            keep=request.proof and later,
            traffic=traffic,
            most_prompt_tokens=self._most_prompt_tokens,
        )

    def _generate(self, arm: str) -> None:
        command = self._command(arm)
        self._pool.slots[arm].residue.begin(command)
        finished = self._exchange.ask(arm, command, "warmup")
        self._note_memory(arm)
        if isinstance(finished, Finished) and finished.reason == "cancelled":
            raise Halt("cancelled", STOPPED)

    def _note_memory(self, arm: str) -> None:
        """What ending the arm's worker would free: as measured, or as planned where the executor cannot tell."""
        checked, worker = self._job.arms[arm], self._pool.slots[arm]
        device = memory_key(checked.plan.load.device)
        worker.freeable_bytes = {device: checked.needed_bytes} | dict(worker.executor.resident_bytes)

    # --- the log ----------------------------------------------------------------------------------

    def _log(self, arm: str, event: Event) -> None:
        if isinstance(event, Ready):
            return
        self._runs.append(self._run.id, ArmEvent(arm, self._repeat, self._run.elapsed_s, event))
        if isinstance(event, Started) and not self._repeat:
            job, request = self._job, self._run.request
            copies = request.traffic is None and request.workload.temperature == 0
            prediction = predict(arm, job.arms[arm], job.facts, self._machine, event, copies)
            self._runs.append(self._run.id, prediction)
