"""Ways to carry out an arm. The only folder that knows both the engine and what runs below it."""

from pathlib import Path

from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.engine.executor import ExecutorKind
from tokendyno.backend.executors.forked import ForkedWorker
from tokendyno.backend.executors.in_process import IN_PROCESS
from tokendyno.backend.executors.ranks import of_ranks
from tokendyno.backend.executors.several_machines import Machines
from tokendyno.backend.executors.subprocess import WorkerProcess
from tokendyno.backend.executors.zero_gpu import ZERO_GPU, call_on_gpu
from tokendyno.backend.hosting.limits import LIMITS, Limits
from tokendyno.backend.plan import Plan

__all__ = ["KINDS", "open_bench"]

KINDS = {
    "subprocess": ExecutorKind(ForkedWorker),
    "cold": ExecutorKind(WorkerProcess),
    "in-process": IN_PROCESS,
    "zero-gpu": ZERO_GPU,
}
"""Every kind for a model in one process, by name. "cold": each worker does its imports itself."""


def open_bench(
    history: Path | None = None,
    models_dir: Path | None = None,
    limits: Limits = LIMITS["local"],
    executor: str = "subprocess",
    machines: Machines | None = None,
) -> Bench:
    """A bench whose arms run on one kind of executor. InputError where that cannot be used."""
    if executor == "zero-gpu":
        call_on_gpu()

    several = machines.kind() if machines is not None else None  # one value, since the pool compares kinds

    def choose(plan: Plan | None) -> ExecutorKind:
        if several is not None and plan is not None:
            return several
        if plan is not None and plan.load.parallel.ranks > 1:
            return of_ranks(plan.load.parallel.ranks)
        return KINDS[executor]

    return Bench(choose, history, models_dir, limits, machines.hosts if machines is not None else 1)
