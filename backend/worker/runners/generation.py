"""What generates: the protocol that a course holds, and the records that go between the two.

Each way of generating is a class of its own: `generate` or the custom loop after one prompt (`decode.Decoding`),
forward passes (`forward.ForwardPasses`), static and continuous batches of many requests (`static_batch.StaticBatches`,
`continuous.ContinuousBatches`).
"""

import threading
from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from tokendyno.backend.counts import RunCounts, WarmUp, counts_of
from tokendyno.backend.evidence import Finding
from tokendyno.backend.messages import Generate
from tokendyno.backend.worker.channel import Channel
from tokendyno.backend.worker.compiler.ledger import Compiling
from tokendyno.backend.worker.load.loader import LoadedModel
from tokendyno.backend.worker.measure.annotations import Window
from tokendyno.backend.worker.measure.finite import BestScores
from tokendyno.backend.worker.measure.memory import Sampler
from tokendyno.backend.worker.measure.scores import Scores
from tokendyno.backend.worker.prompt import Prompt
from tokendyno.backend.worker.prove.graph_calls import GraphCalls


class Session:
    """What a course shares with its generation, run after run on one model.

    cancelled    set by another thread: the run ends after the step in flight
    counts       of the load, and of everything that was compiled since
    compiling    torch.compile for this model
    graph_calls  calls of compiled and captured graphs
    best         the score of each token that was chosen
    warm         shapes that were warmed up -> with how much
    """

    def __init__(self, model: LoadedModel, channel: Channel, cancelled: threading.Event | None = None) -> None:
        self.model, self.channel = model, channel
        self.cancelled = cancelled or threading.Event()
        self.cuda = model.plan.device == "cuda"
        self.counts = counts_of(model.counts)
        self.compiling = Compiling(model.model, self.counts)
        self.graph_calls = GraphCalls(model.model)
        self.best = BestScores(model.model.dtype)
        self.warm: dict[Hashable, WarmUp] = {}


@dataclass(frozen=True, slots=True)
class Task:
    """One Generate command, as its generation carries it out.

    prompt    as the model receives it; of many requests, those of the first steps
    length    slots of a static cache; 0: no cache
    shape     everything that makes another warm-up necessary
    most      of many requests: the longest prompt, the most new tokens, places of a cache for both
    window    when a sliding window fills up during the run
    scores    of a text that is given to the model, to be taken; None where the model chooses
    listener  takes the tokens as they come, in place of a meter: a `texts._Listener`
    """

    job: Generate
    prompt: Prompt
    length: int
    shape: Hashable = None
    most: tuple[int, int, int] | None = None
    window: Window | None = None
    scores: Scores | None = None
    listener: Any = None


@dataclass(slots=True)
class Measured:
    """A measured run. `meter`: its clock, a `Meter` or a `StepLog`; `counts`: what was counted so far."""

    task: Task
    cache: Any
    meter: Any
    sampler: Sampler
    streamer: Any
    wall_s: float = 0.0
    counts: RunCounts = field(default_factory=RunCounts)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run. `steps`: those that an optimization of steps should reach, a decoder's without the prefill;
    `counts`: what its generation counted."""

    text: str
    ttft_s: float
    steps: Sequence[int]
    counts: RunCounts
    reason: Literal["length", "eos"] = "length"


class Generation(Protocol):
    """Generates in one way, on the model of its session."""

    def prepare(self, job: Generate) -> Task:
        """Read and pad the prompt. InputError if it does not fit."""

    def warm_up(self, task: Task) -> WarmUp:
        """Run in the shapes of the task, with phases of its own; returns how much was run."""

    def cache(self, task: Task) -> Any:
        """An empty KV cache; None where there is none, or one of pages."""

    def meter(self, task: Task, cache: Any, sampler: Sampler) -> Any:
        """The clock of a run."""

    def around(self, task: Task, meter: Any) -> AbstractContextManager[object]:
        """Context of a measured run: counters, hooks and pages, set up before its clock starts."""

    def generate(self, run: Measured) -> None:
        """The measured run itself; its meter is told each step. Returns early when cancelled."""

    def repeat(self, task: Task, steps: int) -> int:
        """Up to so many steps that nobody measures, in the same shapes with a fresh cache; returns how many."""

    def outcome(self, run: Measured) -> Outcome:
        """What came of the measured run."""

    def tokens(self, run: Measured) -> Finding | None:
        """Whether its tokens are those that the model chooses; None where that cannot be asked."""
