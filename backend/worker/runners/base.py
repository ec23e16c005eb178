"""A runner carries out one Generate on a loaded model; `MeasuredRunner` is the course that all of them share.

Warm up in the shapes of the run, run once while the clock, the memory and everything that may disturb them are
watched, then verify what was in effect. What generates, and with which prompt, cache and clock, is a runner's own.
"""

import functools
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import msgspec
import torch

from tokendyno.backend.counts import Residue, RunCounts, StepTime, Traced, WarmUp, counts_of, flat
from tokendyno.backend.errors import InputError
from tokendyno.backend.evidence import Finding
from tokendyno.backend.messages import Compiled, Finished, Generate, GraphCode, Proved, RankMemory, Score, Started
from tokendyno.backend.optimizations import Observation
from tokendyno.backend.optimizations.tensor_bytes import bytes_by_device, bytes_on, cache_tensors, local_part
from tokendyno.backend.worker.channel import Channel
from tokendyno.backend.worker.compiler.ledger import Compiling
from tokendyno.backend.worker.group import own_group
from tokendyno.backend.worker.load.check import using
from tokendyno.backend.worker.load.loader import LoadedModel
from tokendyno.backend.worker.measure.annotations import Annotations, Window
from tokendyno.backend.worker.measure.captures import timed_captures
from tokendyno.backend.worker.measure.finite import BestScores, NotFinite
from tokendyno.backend.worker.measure.memory import MemoryMeter, Sampler
from tokendyno.backend.worker.measure.meter import Meter
from tokendyno.backend.worker.measure.shares import of_devices, of_rank
from tokendyno.backend.worker.measure.stream import Streamer
from tokendyno.backend.worker.prompt.prompt import Prompt, padding_counts
from tokendyno.backend.worker.prove.detach import detach
from tokendyno.backend.worker.prove.findings import find_all
from tokendyno.backend.worker.prove.graph_calls import GraphCalls
from tokendyno.backend.worker.prove.profile import trace
from tokendyno.backend.worker.prove.prompt_lookup import DraftCounter

REFILL_STEPS = 2
"""Steps between giving memory back and the measured run: a prompt and a token."""


class Runner(Protocol):
    """Carries out Generate commands on one model, one at a time.

    cancelled  set by another thread: the run ends after the step in flight
    """

    cancelled: threading.Event

    def run(self, job: Generate) -> None:
        """Send everything up to `Finished`. InputError where the request cannot be run as written."""

    def prove(self) -> None:
        """Send `Proved`: what was in effect in the latest run, whose Generate said `keep`."""

    def probe(self, token_ids: list[int]) -> None:
        """Send `Probed`: the two likeliest tokens after the prompt of the latest run and these tokens."""

    def score(self, job: Score) -> None:
        """Send `Scored`. InputError where this model predicts no text, or the text is too short."""


@dataclass(slots=True)
class Task:
    """One Generate, with its prompt as the model receives it. `length`: slots of a static cache; 0: no cache."""

    job: Generate
    prompt: Prompt
    length: int


@dataclass(slots=True)
class Measured:
    """A measured run that has ended. `counts`: what was counted so far; probes add to it."""

    task: Task
    cache: Any
    meter: Meter
    sampler: Sampler
    streamer: Streamer
    drafts: DraftCounter
    wall_s: float = 0.0
    counts: RunCounts = field(default_factory=RunCounts)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Why a run ended, and what it generated."""

    reason: Literal["length", "eos", "cancelled"]
    text: str = ""
    ttft_s: float = 0.0


class Proof(NamedTuple):
    """What was in effect, and where the time of a step went; None with the reason."""

    findings: list[Finding]
    step: StepTime | None
    no_step: str
    code: list[GraphCode] = []


class MeasuredRunner(ABC):
    """The shared course. Keeps what may be used again by the next run: warmed-up shapes, compiled code.

    cancelled       as in `Runner`; one of its own where none is given
    shared_process  other work runs in this process too, so its memory is not this model's alone
    """

    def __init__(
        self,
        model: LoadedModel,
        channel: Channel,
        cancelled: threading.Event | None = None,
        shared_process: bool = False,
    ) -> None:
        self.model, self.channel = model, channel
        self.cancelled = cancelled or threading.Event()
        self.counts = counts_of(model.counts)
        self._cuda = model.plan.device == "cuda"
        self._compiling = Compiling(model.model, self.counts)
        self._graph_calls = GraphCalls(model.model)
        self._memory = MemoryMeter(model.plan.device, shared_process)
        devices = range(1, model.plan.parallel.devices)
        self._beside = [MemoryMeter(model.plan.device, shared_process, index) for index in devices]
        self._best = BestScores(model.model.dtype)
        self._own_process = not shared_process  # else nobody can tell what a run left
        self._warm: dict[Any, WarmUp] = {}  # shape that was warmed up -> with how much
        self._settle = self._own_process  # before the next measured run
        self._clean: int | None = None  # bytes of the process before its first measured run, without caches
        self._kept: Measured | None = None  # the latest run, until it is proved or another begins

    equal_steps = True
    """Whether a traced step stands for all: those of many requests differ."""
    first_counted = 1
    """The first step that an optimization of steps should reach: a decoder's prefill is another matter."""

    # --- what a runner decides --------------------------------------------------------------------

    @abstractmethod
    def _prepare(self, job: Generate) -> Task:
        """Read and pad the prompt. InputError if it does not fit."""

    @abstractmethod
    def _shape(self, task: Task) -> Any:
        """Everything that makes another warm-up necessary; hashable."""

    @abstractmethod
    def _perform_warm_up(self, task: Task) -> WarmUp:
        """Run in the shapes of the task, with phases of its own; returns how much was run."""

    @abstractmethod
    def _new_meter(self, task: Task, cache: Any, sampler: Sampler) -> Meter:
        """The clock of the measured run."""

    @abstractmethod
    def _measure(self, task: Task, cache: Any, meter: Meter) -> None:
        """The measured run itself; `meter` is told each step."""

    @abstractmethod
    def _repeat(self, task: Task, steps: int) -> int:
        """Up to so many steps that nobody measures, in the same shapes with a fresh cache; returns how many."""

    @abstractmethod
    def _outcome(self, measured: Measured) -> Outcome:
        """What came of the measured run."""

    @abstractmethod
    def _profiled_steps(self, task: Task) -> int:
        """How many steps are profiled for the proofs."""

    @abstractmethod
    def _positions(self, measured: Measured) -> int:
        """How many positions of the prompt the model has seen, padding included, told by what it left behind."""

    def probe(self, token_ids: list[int]) -> None:
        """Only a model that generates tokens has an answer."""
        raise RuntimeError("Probe was sent to a model that generates no tokens")

    def score(self, job: Score) -> None:
        """Only a model that generates tokens predicts a text."""
        raise InputError("This model generates no tokens, so it predicts no text. Choose a decoder.")

    def _new_cache(self, task: Task) -> Any:
        """An empty cache; None for a model without."""
        return None

    def _own_counts(self, measured: Measured) -> RunCounts:
        """Counts that only this kind of runner has."""
        return RunCounts()

    def _tokens(self, measured: Measured) -> Finding | None:
        """Whether its tokens are those that the model chooses; None for a model that generates none."""
        return None

    def _counted_steps(self, measured: Measured) -> Sequence[int]:
        """The steps that an optimization of steps should reach."""
        return range(self.first_counted, measured.meter.launched)

    def _window(self, task: Task) -> Window | None:
        """When a sliding window fills up during the run."""
        return None

    @property
    def _tokenizer(self) -> Any:
        """For streaming text; None where nothing is generated."""
        return None

    # --- the course -------------------------------------------------------------------------------

    def run(self, job: Generate) -> None:
        """Warm up if asked and needed, run once, verify if asked, and send everything up to `Finished`."""
        self._kept = None
        task = self._prepare(job)
        notes = task.prompt.notes + self._make_ready(task)
        cache = self._new_cache(task)
        torch.manual_seed(job.seed)
        sampler = Sampler(self._memory, self._beside)
        meter = self._new_meter(task, cache, sampler)
        self.channel.send(Started(task.prompt.tokens, job.batch_size, job.max_new_tokens, notes, task.length))
        annotations = Annotations(lambda: len(meter.rows), self._window(task), self._cuda)
        streamer = Streamer(meter, sampler, self._tokenizer, self.channel, annotations)
        self._graph_calls.begin(lambda: meter.launched)
        self._best.forget()
        with self.channel.phasing("run"), DraftCounter() as drafts, self._graph_calls:
            measured = Measured(task, cache, meter, sampler, streamer, drafts)
            with self._watched(measured, annotations):
                self._measure(task, cache, meter)
        del cache  # only `measured` holds it now, until what the run left is counted
        self._conclude(measured)

    def _make_ready(self, task: Task) -> list[str]:
        """Compile as the job asks and warm up; returns notes for the user."""
        job, settings = task.job, self._compiling.settings
        notes = self._compiling.begin(job.plan, job.batch_size, task.length or task.prompt.tokens)
        if self._compiling.settings != settings:
            self._warm.clear()
            self._graph_calls.forget()
        if not self._cuda and (job.plan.generate.compile_mode or not job.warmup):
            self._note_clean(task)  # what a compiler leaves in its process is part of no other run's peak
        if job.warmup:
            with self._graph_calls:
                self._warm_up(task)
                self._refuse_noise()
                if self._settle and not self.cancelled.is_set():
                    self._begin_level(task)
        return notes

    def _warm_up(self, task: Task) -> None:
        shape = self._shape(task)
        if shape not in self._warm:
            with timed_captures() as captures_s:
                done = self._perform_warm_up(task)
            done = msgspec.structs.replace(done, capture_s=sum(captures_s) or None)
            if self.cancelled.is_set():
                self.counts.warmup = done
                return
            self._compiling.warmed_up()
            self._warm[shape] = msgspec.structs.replace(done, cache_s=self._compiling.cache_s or None)
        self.counts.warmup = self._warm[shape]

    def _begin_level(self, task: Task) -> None:
        """Begin a run at the same level of memory as any other: with what its first steps would allocate again."""
        self._memory.empty()
        self._note_clean(task)
        self._repeat(task, min(REFILL_STEPS, task.job.max_new_tokens))
        self._settle = False

    def _note_clean(self, task: Task) -> None:
        """What the process holds before it runs anything; the first time counts."""
        if not self._settle or self._clean is not None:
            return
        cache = self._new_cache(task)
        self._new_meter(task, cache, Sampler(self._memory))  # what the clock of every run takes is no residue
        self._clean = self._memory.settled() - self._cache_bytes(cache)

    def _cache_bytes(self, cache: Any) -> int:
        """Of the device whose memory is measured."""
        if cache is None:
            return 0
        if self._cuda:
            return bytes_on(cache_tensors(cache), torch.cuda.current_device())
        return bytes_by_device(cache)["cpu"]

    @contextmanager
    def _watched(self, measured: Measured, annotations: Annotations) -> Iterator[None]:
        """Around the measured run: the clock starts last and stops first."""
        if self._cuda:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        measured.sampler.start()
        measured.streamer.start()
        begin_s = time.perf_counter()
        measured.meter.start()
        annotations.start(begin_s)
        try:
            with self._compiling.noting():
                yield
        finally:
            if self._cuda:
                torch.cuda.synchronize()
            measured.wall_s = time.perf_counter() - begin_s
            annotations.stop()
            measured.sampler.stop()
            with using(self.model.tokenizer):
                measured.streamer.close()

    def _refuse_noise(self) -> None:
        """NotFinite if steps so far chose from NaN or infinity, unless somebody has stopped them anyway."""
        if self.cancelled.is_set():
            return
        try:
            self._best.check()
        except NotFinite:
            self._graph_calls.rest()
            self._settle = self._own_process
            raise

    def _conclude(self, measured: Measured) -> None:
        self._compiling.publish()
        self._refuse_noise()
        extra = measured.sampler.figures()  # before a proof takes memory
        outcome, compiled = self._outcome(measured), self._compiling.ledger()
        measured.counts.update(self.counts)
        measured.counts.prompt = padding_counts(measured.task.prompt, self._positions(measured))
        measured.counts.graphs = self._graph_calls.counts(self._counted_steps(measured))
        cancelled = outcome.reason == "cancelled"
        proving = measured.task.job.prove and not cancelled
        before = self._settled() if proving else None
        measured.counts.update(self._own_counts(measured))
        proof = Proof([], None, "the run ended before it was traced")
        if proving:
            proof = self._prove(measured, extra)
        ranks = self._shares(measured)
        self._best.forget()
        if measured.task.job.keep and not (proving or cancelled):
            self._kept = measured
        else:
            self._graph_calls.rest()
        if proving or cancelled:
            self._note_left(measured, before)
        extra.update(measured.counts)
        self.channel.send(self._finished(measured, outcome, proof, extra, compiled, ranks))

    def prove(self) -> None:
        """Like the end of a run that was to be verified at once."""
        if self._kept is None:
            raise RuntimeError("Prove was sent, and no run was kept for it")
        measured, self._kept = self._kept, None
        before, extra = self._settled(), RunCounts()
        proof = self._prove(measured, extra)
        self._graph_calls.rest()
        self._best.forget()
        self._note_left(measured, before)
        extra.update(measured.counts)
        self.channel.send(Proved(proof.findings, flat(extra), *proof[1:]))

    def _settled(self) -> int | None:
        """What the process holds now; None where nobody can tell what a run left."""
        return self._memory.settled() if self._own_process and self._clean is not None else None

    def _detach_profiler(self) -> int | None:
        """After the last profile: 1 if it stays attached to the GPU, None without a GPU."""
        if not self._cuda:
            return None
        torch.cuda.synchronize()
        return int(not detach())

    def _note_left(self, measured: Measured, before_proof: int | None) -> None:
        """What the runs of this process left in it, without the model and a cache that the next run uses too."""
        self._settle = self._own_process
        if not self._own_process or self._clean is None:
            return
        of_proof = None if before_proof is None else self._memory.settled() - before_proof
        kept = weakref.ref(measured.cache) if measured.cache is not None else lambda: None
        measured.cache = None
        measured.meter.release()
        left = self._memory.settled() - self._cache_bytes(kept()) - self._clean
        clean = None if self._cuda else self._clean
        measured.counts.residue = Residue(left_bytes=left, proof_left_bytes=of_proof, clean_bytes=clean)

    def _prove(self, measured: Measured, extra: RunCounts) -> "Proof":
        task = measured.task

        def profiled() -> Any:
            stacks = {tuple(local_part(one).shape) for one in self.model.model.parameters() if one.ndim == 3}
            return trace(lambda: self._repeat(task, self._profiled_steps(task)), self._cuda, stacks)

        observation = Observation(
            self.model.model,
            measured.cache,
            task.job.plan,
            functools.cache(profiled),
            measured.counts,
            own_group().exchange,
        )
        with self.channel.phasing("prove") as steps:
            findings = find_all(observation, steps.step)
            tokens = self._tokens(measured)
            findings += [tokens] if tokens else []
        code = self._compiling.generated.code() if measured.counts.compilation.graphs else []
        try:
            seen = observation.trace()
        except Exception as error:
            return Proof(findings, None, f"the trace failed: {type(error).__name__}: {error}"[:300], code)
        finally:
            extra.traced = Traced(profiler_attached=self._detach_profiler())
        if seen.step is not None and seen.step.gpu and self.equal_steps:
            idle_s = sum(seen.step.parts_s.get(part, 0.0) for part in ("gaps", "host"))
            extra.traced = msgspec.structs.replace(extra.traced, step_busy_s=seen.step.seconds - idle_s)
        return Proof(findings, seen.step, seen.no_step, code)

    def _finished(
        self,
        measured: Measured,
        outcome: Outcome,
        proof: "Proof",
        extra: RunCounts,
        compiled: Compiled | None,
        ranks: list[RankMemory],
    ) -> Finished:
        return Finished(
            reason=outcome.reason,
            text=outcome.text,
            ttft_s=outcome.ttft_s,
            wall_s=measured.wall_s,
            peak_memory_bytes=measured.sampler.peak,
            memory_label=self._memory.label,
            clock=measured.meter.clock,
            findings=proof.findings,
            extra=flat(extra),
            compiled=compiled,
            ranks=ranks,
            step=proof.step,
            no_step=proof.no_step,
            code=proof.code,
        )

    def _shares(self, measured: Measured) -> list[RankMemory]:
        """Of every rank, once all have finished, or of every device; empty for a process with one."""
        if self._beside:
            return of_devices(self.model.model, measured.cache, measured.sampler)
        if own_group().size == 1:
            return []
        own = of_rank(self.model.weight_bytes, self._cache_bytes(measured.cache), measured.sampler)
        every = own_group().exchange(msgspec.json.encode(own))
        return [msgspec.json.decode(one, type=RankMemory) for one in every]
