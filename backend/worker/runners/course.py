"""The course of a run, whatever generates: warm up in its shapes, run once while the clock, the memory and everything
that may disturb them are watched, verify what was in effect, and count what the run left in its process."""

import dataclasses
import functools
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import msgspec
import torch

from tokendyno.backend.counts import Residue, Traced, flat
from tokendyno.backend.errors import InputError
from tokendyno.backend.messages import Finished, Generate, Probed, Proved, RankMemory, Score, Started
from tokendyno.backend.plan import Plan
from tokendyno.backend.worker.channel import Channel, repeating
from tokendyno.backend.worker.group import own_group
from tokendyno.backend.worker.load.check import token_ids, using
from tokendyno.backend.worker.load.loader import LoadedModel
from tokendyno.backend.worker.loop.step import scored_ids
from tokendyno.backend.worker.measure.annotations import Annotations
from tokendyno.backend.worker.measure.finite import NotFinite
from tokendyno.backend.worker.measure.memory import MemoryMeter, Sampler, columns, of_devices
from tokendyno.backend.worker.measure.scores import Scores
from tokendyno.backend.worker.measure.steps import StepStreamer
from tokendyno.backend.worker.measure.stream import FLUSH_EVERY_S, Streamer
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.prove.profile import NO_TRACE, Trace, detach, trace
from tokendyno.backend.worker.prove.tensor_bytes import bytes_on, cache_tensors, local_part
from tokendyno.backend.worker.runners.continuous import ContinuousBatches
from tokendyno.backend.worker.runners.decode import Decoding
from tokendyno.backend.worker.runners.forward import ForwardPasses
from tokendyno.backend.worker.runners.generation import Generation, Measured, Session, Task
from tokendyno.backend.worker.runners.static_batch import StaticBatches
from tokendyno.backend.worker.runners.token_loops import GenerateCall, OwnLoop
from tokendyno.backend.worker.witness import find_all

REFILL_STEPS = 2
"""Steps between giving memory back and the measured run: a prompt and a token."""
PROFILED_STEPS = 4


class Course:
    """Carries out commands on one model, one at a time. What was compiled and captured serves the next run too.

    shared_process  other work runs in this process too, so its memory is not this model's alone
    parts           classes of its generation and of that one's loop
    """

    def __init__(self, session: Session, generation: Generation, shared_process: bool, parts: tuple[type, ...]) -> None:
        self.session, self.generation, self.parts = session, generation, parts
        plan = session.model.plan
        self._memory = MemoryMeter(plan.device, shared_process)
        self._beside = [MemoryMeter(plan.device, shared_process, index) for index in range(1, plan.parallel.devices)]
        self._residue = ResidueMeter(self._memory, own_process=not shared_process)
        self._unproved: Measured | None = None  # the latest run, until it is proved or another begins

    def run(self, job: Generate) -> None:
        """Warm up if asked and needed, run once, verify if asked, and send everything up to `Finished`. InputError
        where the request cannot be run as written."""
        task = self.generation.prepare(job)
        notes = task.prompt.notes + self.make_ready(task)
        self._conclude(self._measured(task, notes))

    def prove(self) -> None:
        """Send `Proved`: what was in effect in the latest run, whose Generate said `keep`."""
        assert self._unproved is not None
        run, self._unproved = self._unproved, None
        before = self._residue.settled()
        proved = witness(self.session, self.generation, run)
        self.session.graph_calls.rest()
        self.session.best.forget()
        self._residue.note_left(run, before)
        self.session.channel.send(msgspec.structs.replace(proved, extra=flat(run.counts)))

    def probe(self, token_ids: list[int]) -> None:
        """Send `Probed`: the two likeliest tokens after the prompt of the latest run and these tokens. All in one
        forward pass without a cache, so the sums are ordered as in a prefill."""
        model = self.session.model
        ids = torch.tensor([[*self._decoding.prompt_ids, *token_ids]], device=model.plan.device)
        with torch.inference_mode():
            logits = model.model(input_ids=ids, use_cache=False, logits_to_keep=1).logits[0, -1].float()
        best = logits.topk(2)
        likeliest = best.indices.tolist()
        texts = [model.tokenizer.decode([token]) for token in likeliest]
        self.session.channel.send(Probed(len(token_ids), likeliest, texts, best.values.tolist()))

    def score(self, job: Score) -> None:
        """Send `Scored`: all is as in a run, but for the choice of tokens. InputError where the text is too short."""
        session, decoding = self.session, self._decoding
        task, expected = decoding.given_text(job, token_ids(session.model.tokenizer, job.text))
        session.compiling.begin(job.plan, 1, task.length or task.prompt.tokens)
        vocabulary = scored_ids(session.model.model)
        self._warm_up(dataclasses.replace(task, scores=Scores(expected, vocabulary)))
        scores = Scores(expected, vocabulary, job.keep, job.against)
        session.best.forget()
        with session.channel.phasing("quality", "reading a given text") as steps:
            decoding.read(task, scores, steps.step)
            if session.cancelled.is_set():
                raise InputError("Stopped.")
            session.best.check()
        left = self._residue.left_bytes(lambda: decoding.caches.cached)
        session.channel.send(msgspec.structs.replace(scores.scored(), left_bytes=left))

    @property
    def _decoding(self) -> Decoding:
        assert isinstance(self.generation, Decoding)  # what generates no tokens is refused before it is loaded
        return self.generation

    # --- warm up ----------------------------------------------------------------------------------

    def make_ready(self, task: Task) -> list[str]:
        """Compile as the job asks and warm up; returns notes for the user."""
        self._unproved = None
        session, job = self.session, task.job
        settings = session.compiling.settings
        notes = session.compiling.begin(job.plan, job.batch_size, task.length or task.prompt.tokens)
        if session.compiling.settings != settings:
            session.warm.clear()
            session.graph_calls.forget()
        if not session.cuda and (job.plan.generate.compile_mode or not job.warmup):
            self._note_clean(task)  # what a compiler leaves in its process is part of no other run's peak
        if job.warmup:
            self._warm_up(task)
            self._refuse_noise()
            if self._residue.level_first and not session.cancelled.is_set():  # as level in memory as any other run
                self._memory.empty()
                self._note_clean(task)
                with session.graph_calls:
                    self.generation.repeat(task, REFILL_STEPS)
                self._residue.level_first = False
        return notes

    def _warm_up(self, task: Task) -> None:
        session = self.session
        if task.shape not in session.warm:
            session.graph_calls.capture_s = 0.0
            with session.graph_calls:
                done = self.generation.warm_up(task)
            done = msgspec.structs.replace(done, capture_s=session.graph_calls.capture_s or None)
            if session.cancelled.is_set():
                session.counts.warmup = done
                return
            session.compiling.warmed_up()
            session.warm[task.shape] = msgspec.structs.replace(done, cache_s=session.compiling.cache_s or None)
        session.counts.warmup = session.warm[task.shape]

    def _note_clean(self, task: Task) -> None:
        """What the process holds before it runs anything; the first time counts."""
        if self._residue.level_first and self._residue.clean_bytes is None:
            cache = self.generation.cache(task)
            self.generation.meter(task, cache, Sampler(self._memory))  # what the clock of every run takes is no residue
            self._residue.clean_bytes = self._memory.settled() - self._residue.cache_bytes(cache)

    def _refuse_noise(self) -> None:
        """NotFinite if steps so far chose from NaN or infinity, unless somebody has stopped them anyway."""
        if self.session.cancelled.is_set():
            return
        try:
            self.session.best.check()
        except NotFinite:
            self.session.graph_calls.rest()
            self._residue.level_first = self._residue.own_process
            raise

    # --- measure ----------------------------------------------------------------------------------

    def _measured(self, task: Task, notes: list[str]) -> Measured:
        session, generation, job = self.session, self.generation, task.job
        cache = generation.cache(task)
        torch.manual_seed(job.seed)
        sampler = Sampler(self._memory, self._beside)
        meter = generation.meter(task, cache, sampler)
        with generation.around(task, meter):
            tokens, output, places = task.most or (task.prompt.tokens, job.max_new_tokens, task.length)
            session.channel.send(Started(tokens, job.batch_size, output, notes, places))
            annotations = Annotations(lambda: len(meter.rows), task.window, session.cuda)
            tokenizer = None if session.model.encoder else session.model.tokenizer
            sender = Streamer if job.traffic is None else StepStreamer
            streamer: Any = sender(meter, sampler, tokenizer, session.channel, annotations)
            session.graph_calls.begin(lambda: meter.launched)
            session.best.forget()
            with session.channel.phasing("run"), session.graph_calls:
                run = Measured(task, cache, meter, sampler, streamer)
                del cache  # else the first of several static batches would keep its own to the end
                with repeating(streamer.flush, FLUSH_EVERY_S, "streamer"), sampler, annotations:
                    begin_s = time.perf_counter()
                    meter.start()
                    with session.compiling.noting():
                        generation.generate(run)
                    if session.cuda:
                        torch.cuda.synchronize()
                    run.wall_s = time.perf_counter() - begin_s
                with using(session.model.tokenizer):
                    streamer.flush()
        return run

    # --- witness and settle -----------------------------------------------------------------------

    def _conclude(self, run: Measured) -> None:
        session, job = self.session, run.task.job
        session.compiling.publish()
        self._refuse_noise()
        run.counts.update(run.sampler.figures())  # before a proof takes memory
        cancelled, compiled = session.cancelled.is_set(), session.compiling.ledger()
        proving = job.prove and not cancelled
        before = self._residue.settled() if proving else None
        outcome = self.generation.outcome(run)
        run.counts.update(session.counts)
        run.counts.graphs = session.graph_calls.counts(outcome.steps)
        run.counts.update(outcome.counts)
        not_proved = Proved([], {}, no_step="the run ended before it was traced")
        proved = witness(session, self.generation, run) if proving else not_proved
        ranks = self._shares(run)
        session.best.forget()
        if job.keep and not (proving or cancelled):
            self._unproved = run
        else:
            session.graph_calls.rest()
        if proving or cancelled:
            self._residue.note_left(run, before)
        finished = Finished(
            reason="cancelled" if cancelled else outcome.reason,
            text=outcome.text,
            ttft_s=outcome.ttft_s,
            wall_s=run.wall_s,
            peak_memory_bytes=run.sampler.peak,
            memory_label=self._memory.label,
            clock=run.meter.clock,
            findings=proved.findings,
            extra=flat(run.counts),
            compiled=compiled,
            ranks=ranks,
            step=proved.step,
            no_step=proved.no_step,
            code=proved.code,
        )
        session.channel.send(finished)

    def _shares(self, run: Measured) -> list[RankMemory]:
        """Of every rank, once all have finished, or of every device; empty for a process with one."""
        model = self.session.model
        if self._beside:
            return of_devices(model.model, run.cache, run.sampler)
        if own_group().size == 1:
            return []
        sizes = model.weight_bytes, self._residue.cache_bytes(run.cache), run.sampler.peak
        own = RankMemory(*sizes, *columns(run.sampler.history))
        answers = own_group().exchange(msgspec.json.encode(own))
        return [msgspec.json.decode(answer, type=RankMemory) for answer in answers]


class ResidueMeter:
    """Compares the memory of a process with what it held before its first measured run.

    own_process  no other work runs in it: else nobody can tell what a run left
    level_first  before the next measured run, memory has to be given back and used anew
    """

    def __init__(self, memory: MemoryMeter, own_process: bool) -> None:
        self._memory = memory
        self.own_process = self.level_first = own_process
        self.clean_bytes: int | None = None  # bytes before the first measured run, without caches

    def settled(self) -> int | None:
        """Bytes of the process now; None where nobody can tell what a run left."""
        return self._memory.settled() if self.own_process and self.clean_bytes is not None else None

    def left_bytes(self, cache: Callable[[], Any]) -> int | None:
        """What was left so far, without that cache, which the next run uses too; None where nobody can tell."""
        self.level_first, settled = self.own_process, self.settled()
        return None if settled is None else settled - self.cache_bytes(cache()) - (self.clean_bytes or 0)

    def note_left(self, run: Measured, before_proof: int | None) -> None:
        """Count what a run left, and its proof. The run lets go of its cache."""
        proof_left = None if before_proof is None else self._memory.settled() - before_proof
        cache = weakref.ref(run.cache) if run.cache is not None else lambda: None
        run.cache = None
        run.meter.release()
        left_bytes = self.left_bytes(cache)
        if left_bytes is not None:
            clean_bytes = None if self._memory.device == "cuda" else self.clean_bytes
            run.counts.residue = Residue(left_bytes=left_bytes, proof_left_bytes=proof_left, clean_bytes=clean_bytes)

    def cache_bytes(self, cache: Any) -> int:
        """Bytes of a cache on the device whose memory is measured."""
        device = f"cuda:{torch.cuda.current_device()}" if self._memory.device == "cuda" else "cpu"
        return 0 if cache is None else bytes_on(device, cache_tensors(cache))


def witness(session: Session, generation: Generation, run: Measured) -> Proved:
    """What was in effect in a run, and in a few more steps under a profiler; what was traced is in the run's counts."""

    def profiled() -> Trace:
        stacks = {tuple(local_part(weight).shape) for weight in session.model.model.parameters() if weight.ndim == 3}
        return trace(lambda: generation.repeat(run.task, PROFILED_STEPS), session.cuda, stacks)

    observation = Observation(
        session.model.model, run.cache, run.task.job.plan, functools.cache(profiled), run.counts, own_group().exchange
    )
    with session.channel.phasing("prove") as steps:
        findings = find_all(observation, steps.step)
        tokens = generation.tokens(run)
        findings += [tokens] if tokens else []
    code = session.compiling.generated.code() if run.counts.compilation.graphs else []
    try:
        profile = observation.trace()
    except Exception as error:
        profile = dataclasses.replace(NO_TRACE, no_step=f"the trace failed: {type(error).__name__}: {error}"[:300])
    if session.cuda:
        torch.cuda.synchronize()
        run.counts.traced = Traced(profiler_attached=int(not detach()))
    step = profile.step
    if step is not None and step.gpu and run.task.job.traffic is None:  # those of many requests differ
        idle_s = sum(step.parts_s.get(part, 0.0) for part in ("gaps", "host"))
        run.counts.traced = msgspec.structs.replace(run.counts.traced, step_busy_s=step.seconds - idle_s)
    return Proved(findings, {}, step, profile.no_step, code)


def course_for(
    model: LoadedModel,
    plan: Plan,
    channel: Channel,
    cancelled: threading.Event | None = None,
    shared_process: bool = False,
    last: Course | None = None,
    many: bool = False,
) -> Course:
    """The course of this model for this plan: `last`, if it fits, with what it compiled. `many`: requests. `cancelled`
    is as in `Session`, `shared_process` as in `Course`."""
    parts: tuple[Any, ...] = (StaticBatches if many else Decoding, GenerateCall)
    if model.encoder:
        parts = (ForwardPasses,)
    elif many and plan.generate.batch.continuous:
        parts = (ContinuousBatches,)
    elif plan.generate.loop == "own":
        parts = (parts[0], OwnLoop)
    if last is not None and last.parts == parts:
        return last
    session = Session(model, channel, cancelled)
    generation = parts[0](session, *(part(session) for part in parts[1:]))
    return Course(session, generation, shared_process, parts)
