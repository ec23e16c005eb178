"""Hands executors out: one for each arm's slot, and spares started ahead of the next run."""

import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from tokendyno.backend.engine.executor import ChooseExecutor, Died, Executor, ExecutorKind, Inbox, Letter, StartError
from tokendyno.backend.messages import Failed, Finished, Generate, Proved, Ready, Scored, encode
from tokendyno.backend.plan import Plan

log = logging.getLogger("tokendyno")

MAX_START_FAILURES = 5
"""After this many failed starts in a row no more spares are started."""


TOLERATED_SHARE = 0.025
"""Of the smallest peak that a run there can have: what may be left without a new worker being started. A proof left
3.4% in the smallest worker on a CPU that computes float32 (lab/measurements.md), so that it takes one run."""


@dataclass(slots=True)
class Residue:
    """What the runs of one worker left in its process, and whether another run can still be measured there.

    The peak of a process holds all that earlier runs did not give back: kernels that oneDNN or cuDNN built for their
    lengths, graphs, what a profile allocated. And a profiler that stays attached to a GPU's driver slows each launch. A
    worker is kept for the next run only where none of that would count as the run's own. Runs that are equal but for
    their proof leave nothing that each of them does not use.

    attached          the profiler of a proof still listens to the GPU
    peak_bytes        of the latest run; on a CPU what the process held before its first one, if that is less
    """

    runs: set[bytes] = field(default_factory=set)
    left_bytes: float = 0.0
    proof_left_bytes: float = 0.0
    attached: bool = False
    peak_bytes: float = 0.0
    running: bytes | None = None

    def begin(self, command: Generate) -> None:
        self.running = _key(command)

    def refused(self) -> None:
        """The run was refused before anything ran."""
        self.running = None

    def note(self, event: Finished | Proved | Scored) -> None:
        """The run ended, its proof, or the reading of a text."""
        if isinstance(event, Scored):
            self.left_bytes = self.proof_left_bytes = event.left_bytes or 0.0
            return
        if isinstance(event, Finished):
            if self.running is not None:
                self.runs.add(self.running)
            self.running = None
            self.peak_bytes = float(event.peak_memory_bytes)
        residue, attached = event.counts.residue, event.counts.traced.profiler_attached
        self.peak_bytes = min(self.peak_bytes, residue.clean_bytes or math.inf)
        self.left_bytes, self.proof_left_bytes = residue.left_bytes or 0.0, residue.proof_left_bytes or 0.0
        if attached is not None:
            self.attached = bool(attached)

    def disturbs(self, command: Generate) -> str:
        """Why this run needs a new worker, in a few words; "" if it can be measured here."""
        if self.running is not None:
            return "the run before did not end"
        if self.attached:
            return "the profiler of the last proof could not be detached from the GPU, and would slow this run"
        left = self.proof_left_bytes if self.runs == {_key(command)} else self.left_bytes
        if not self._counts(left):
            return ""
        return f"earlier runs left {left / (1 << 20):,.0f} MiB in the last one, which would count as this run's"

    @property
    def spent(self) -> bool:
        return self.running is not None or self.attached or self._counts(self.left_bytes)

    def _counts(self, left: float) -> bool:
        return left > TOLERATED_SHARE * self.peak_bytes


def _key(command: Generate) -> bytes:
    return encode(msgspec.structs.replace(command, prove=False, keep=False))


@dataclass(slots=True, eq=False)
class Worker:
    """An executor, and what the pool knows about it.

    start_s     seconds from its start to `Ready`, None until then; `import_s` of them for imports
    freeable_bytes  memory by device that ending it frees: measured where that is possible, else as planned
    remark      why it was started, where a worker that held the model could not be used again
    """

    executor: Executor
    kind: ExecutorKind
    begin_s: float
    start_s: float | None = None
    import_s: float = 0.0
    freeable_bytes: Mapping[int, int] = field(default_factory=dict)
    residue: Residue = field(default_factory=Residue)
    remark: str = ""

    @property
    def ready(self) -> bool:
        return self.start_s is not None


class WorkerPool:
    """Workers by slot (one for each arm) and spares. Only the engine thread changes it; other threads may read."""

    def __init__(self, choose: ChooseExecutor) -> None:
        self.choose = choose
        self.inbox: Inbox = Inbox()
        self.slots: dict[str, Worker] = {}
        self.spares: list[Worker] = []
        self.wanted_spares = 0
        self._start_failures = 0

    # --- for every thread -------------------------------------------------------------------------

    @property
    def pids(self) -> list[int]:
        return [pid for worker in self._all() if worker.executor.alive for pid in worker.executor.pids]

    def freeable_bytes(self, device: int) -> int:
        """Memory of one device that ending all workers would free."""
        return sum(worker.freeable_bytes.get(device, 0) for worker in self._all())

    def keeps(self, slot: str, plan: Plan) -> bool:
        """Whether a slot's worker holds the plan's model, and what its runs left would not count as another run's."""
        worker = self.slots.get(slot)
        return worker is not None and _serves(worker, self.choose(plan), (plan.load_key,)) and not worker.residue.spent

    def _all(self) -> list[Worker]:
        return [*list(self.slots.values()), *self.spares]

    # --- for the engine thread --------------------------------------------------------------------

    def take(self, slot: str, plan: Plan, command: Generate | None = None) -> Worker:
        """The slot's worker if it holds the plan's model or none and can measure `command`; else a spare or new one."""
        kind = self.choose(plan)
        worker = self.slots.get(slot)
        remark = ""
        if worker is not None and _serves(worker, kind, ("", plan.load_key)):
            remark = worker.residue.disturbs(command) if command is not None and kind.isolated else ""
            if not remark:
                return worker
        self.drop(slot)
        if not kind.isolated:
            self.end_all()
        self.spares = [spare for spare in self.spares if spare.executor.alive]
        spare = next((spare for spare in self.spares if _serves(spare, kind, ("",))), None)
        if spare is not None:
            self.spares.remove(spare)
        self.slots[slot] = spare or self._start(kind)
        self.slots[slot].remark = remark and f"a new worker: {remark}"
        return self.slots[slot]

    def drop(self, slot: str) -> None:
        worker = self.slots.pop(slot, None)
        if worker is not None:
            worker.executor.end()

    def end_slots(self) -> None:
        for slot in list(self.slots):
            self.drop(slot)

    def end_all(self) -> None:
        self.end_slots()
        while self.spares:
            self.spares.pop().executor.end()

    def record(self, letter: Letter) -> list[str]:
        """Note that a worker became ready or died. Returns the slots that lost their worker."""
        worker = next((worker for worker in self._all() if worker.executor is letter.executor), None)
        if worker is None:
            return []
        match letter.body:
            case Ready() as ready:
                worker.start_s = time.monotonic() - worker.begin_s
                worker.import_s = min(ready.import_s, worker.start_s)
                self._start_failures = 0
            case Died():
                if not worker.ready:
                    self._start_failures += 1
                self.spares = [spare for spare in self.spares if spare is not worker]
                lost = [slot for slot, slot_worker in self.slots.items() if slot_worker is worker]
                for slot in lost:
                    self.drop(slot)
                return lost
            case (Finished() | Proved() | Scored()) as event:
                worker.residue.note(event)
            case Failed(bad_input=True):
                worker.residue.refused()
            case _:
                pass
        return []

    def prewarm(self) -> None:
        """Start a spare if too few workers are alive that can take any run; give up after repeated failures."""
        kind = self.choose(None)
        alive = [worker for worker in self._all() if worker.executor.alive and not worker.residue.spent]
        if len(alive) >= self.wanted_spares or not kind.isolated or self._start_failures >= MAX_START_FAILURES:
            return
        if self._start_failures:
            time.sleep(min(5.0, 0.2 * 2**self._start_failures))
        try:
            self.spares.append(self._start(kind))
        except StartError as error:  # a run will say so; the engine goes on
            self._start_failures += 1
            log.warning("no worker could be started: %s", error)

    def _start(self, kind: ExecutorKind) -> Worker:
        begin_s = time.monotonic()
        return Worker(kind.start(self.inbox), kind, begin_s)


def _serves(worker: Worker, kind: ExecutorKind, load_keys: tuple[str, ...]) -> bool:
    return worker.executor.alive and worker.kind is kind and worker.executor.load_key in load_keys
