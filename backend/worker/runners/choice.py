"""Chooses the runner that carries out a plan."""

import threading

from tokendyno.backend.plan import Plan
from tokendyno.backend.worker.channel import Channel
from tokendyno.backend.worker.load.loader import LoadedModel
from tokendyno.backend.worker.runners.base import MeasuredRunner, Runner
from tokendyno.backend.worker.runners.continuous import ContinuousRunner
from tokendyno.backend.worker.runners.decode import GenerateRunner
from tokendyno.backend.worker.runners.forward import ForwardRunner
from tokendyno.backend.worker.runners.loop import LoopRunner
from tokendyno.backend.worker.runners.static_batch import StaticLoopRunner, StaticRunner


def runner_for(
    model: LoadedModel,
    plan: Plan,
    channel: Channel,
    cancelled: threading.Event | None = None,
    shared_process: bool = False,
    last: Runner | None = None,
    many: bool = False,
) -> Runner:
    """The runner of this model for this plan: `last`, if it fits, with what it compiled. `many`: requests."""
    kind: type[MeasuredRunner] = GenerateRunner
    if model.encoder:
        kind = ForwardRunner
    elif many and plan.generate.batch.continuous:
        kind = ContinuousRunner
    elif many:
        kind = StaticLoopRunner if plan.generate.loop == "own" else StaticRunner
    elif plan.generate.loop == "own":
        kind = LoopRunner
    return last if last is not None and type(last) is kind else kind(model, channel, cancelled, shared_process)
