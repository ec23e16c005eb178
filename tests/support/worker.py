"""A request in one line, and a real worker process that a test talks to directly."""

from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from tests.support.processes import wait_for
from tokendyno.backend import hardware
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import ArmRequest, Request, Workload, workload_of
from tokendyno.backend.engine.executor import Died, Inbox
from tokendyno.backend.executors.forked import ForkedWorker
from tokendyno.backend.messages import Command, Event, Failed, Finished, Generate, Load, Loaded, Ready, Tokens
from tokendyno.backend.models import resolve
from tokendyno.backend.plan import BatchPlan, Plan
from tokendyno.backend.traffic import Traffic
from tokendyno.backend.traffic.presets import drawn

SENTENCE = "One day, Pip found a red ball in the garden."
E = TypeVar("E")


def request(*arms: Mapping[str, str], model: str = "pocket", **work: Any) -> Request:
    """A run of one arm (A) or two (A, B), by their choices."""
    named = [ArmRequest(name, dict(choices)) for name, choices in zip("AB", arms or ({},), strict=False)]
    if traffic := work.pop("traffic", None):  # many requests instead of the prompt
        traffic = drawn(*traffic) if isinstance(traffic, tuple) else traffic  # (what from, seed, how many at once)
        return Request(model, named, workload_of(traffic, ignore_eos=True, **work), traffic)
    every: dict[str, Any] = {"prompt": SENTENCE, "max_new_tokens": 8, "ignore_eos": True}
    return Request(model, named, Workload(**every | work))


def light(*arms: Mapping[str, str], **more: Any) -> Request:
    """The same in float32: in bfloat16 each new length leaves kernels behind, and the next run gets a new worker."""
    return request(*({"dtype": "float32"} | dict(choices) for choices in arms or ({},)), **more)


def plan_of(model: str = "pocket", **choices: str) -> Plan:
    """The plan for these choices on this machine."""
    workload = Workload(prompt=SENTENCE)
    return check(make_config(model, choices), resolve(model), hardware.detect(), workload).plan


def job_of(plan: Plan, **more: Any) -> Generate:
    """Eight tokens after a sentence; without a warm-up and a proof unless they are asked for."""
    work: dict[str, Any] = {
        "prompt": SENTENCE,
        "prompt_tokens": 0,
        "max_new_tokens": 8,
        "batch_size": 1,
        "temperature": 0.0,
        "seed": 0,
        "ignore_eos": True,
        "warmup": False,
        "prove": False,
    }
    return Generate(plan=plan, **work | more)


def traffic_job(plan: Plan, traffic: Traffic, batch: BatchPlan, **more: Any) -> Generate:
    """Many requests in one run."""
    work = workload_of(traffic)
    lengths = {"prompt_tokens": work.prompt_tokens, "max_new_tokens": work.max_new_tokens}
    plan = replace(plan, generate=replace(plan.generate, batch=batch))
    return job_of(plan, prompt="", batch_size=work.batch_size, traffic=traffic, **lengths | more)


class Talk:
    """A real worker process; commands and events are exchanged as the engine does it."""

    def __init__(self, wait: bool = True) -> None:
        self.inbox: Inbox = Inbox()
        self.worker = ForkedWorker(self.inbox)
        self.ready = self.until(Ready)[-1] if wait else None
        if wait:  # the worker may say so before the process that forked it tells that it was born
            wait_for(lambda: self.worker.pids, what="the worker to be born")

    def send(self, command: Command) -> None:
        self.worker.send(command)

    def next(self, limit_s: float = 60) -> Event | Died:
        body = self.inbox.get(timeout=limit_s).body
        assert not isinstance(body, type(None))
        return body  # type: ignore[return-value]

    def until(self, *kinds: type, limit_s: float = 60) -> list[Any]:
        """All events up to and including the first of these kinds."""
        seen: list[Any] = []
        while not seen or not isinstance(seen[-1], kinds):
            seen.append(self.next(limit_s))
            assert not isinstance(seen[-1], Died) or Died in kinds, seen[-1]
        return seen

    def load(self, plan: Plan) -> Loaded | Failed:
        self.send(Load(plan))
        answer = self.until(Loaded, Failed)[-1]
        assert isinstance(answer, Loaded | Failed)
        return answer

    def begin(self, plan: Plan, **more: Any) -> None:
        """Send a Generate without waiting for anything."""
        self.send(job_of(plan, **more))

    def generate(self, plan: Plan, **more: Any) -> list[Any]:
        """Load, run, and return all events of the run up to Finished or Failed."""
        loaded = self.load(plan)
        assert isinstance(loaded, Loaded), loaded
        self.begin(plan, **more)
        return self.until(Finished, Failed, limit_s=300)

    def end(self) -> None:
        self.worker.end()


def only(events: list[Any], kind: type[E]) -> list[E]:
    """The events of one kind, in order."""
    return [event for event in events if isinstance(event, kind)]


def column(events: list[Any], name: str) -> list[Any]:
    """One column of all Tokens events, joined."""
    return [value for event in only(events, Tokens) for value in getattr(event, name)]
