"""Hands executors out: one for each arm's slot, and spares started ahead of the next run."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from tokendyno.backend.engine.executor import ChooseExecutor, Died, Executor, ExecutorKind, Inbox, Letter, StartError
from tokendyno.backend.engine.residue import Residue
from tokendyno.backend.messages import Failed, Finished, Generate, Proved, Ready, Scored
from tokendyno.backend.plan import Plan

log = logging.getLogger("tokendyno")

MAX_START_FAILURES = 5
"""After this many failed starts in a row no more spares are started."""


@dataclass(slots=True, eq=False)
class Worker:
    """An executor, and what the pool knows about it.

    start_s     seconds from its start to `Ready`, None until then; `import_s` of them for imports
    held_bytes  memory by device that ending it frees: measured where that is possible, else as planned
    remark      why it was started, where a worker that held the model could not be used again
    """

    executor: Executor
    kind: ExecutorKind
    begin_s: float
    start_s: float | None = None
    import_s: float = 0.0
    held_bytes: Mapping[int, int] = field(default_factory=dict)
    residue: Residue = field(default_factory=Residue)
    remark: str = ""

    @property
    def ready(self) -> bool:
        """Whether it accepts commands."""
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
        """Ids of all processes of the workers that are alive."""
        return [pid for worker in self._all() if worker.executor.alive for pid in worker.executor.pids]

    def held_bytes(self, device: int) -> int:
        """Memory of one device that ending all workers would free."""
        return sum(worker.held_bytes.get(device, 0) for worker in self._all())

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
        """End a slot's worker and free its memory."""
        worker = self.slots.pop(slot, None)
        if worker is not None:
            worker.executor.end()

    def end_slots(self) -> None:
        """End the workers of all slots."""
        for slot in list(self.slots):
            self.drop(slot)

    def end_all(self) -> None:
        """End all workers, spares too."""
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
                lost = [slot for slot, taken in self.slots.items() if taken is worker]
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
