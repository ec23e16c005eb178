"""Runs a plan on an encoder: the whole prompt through the model, again and again, and the time of each pass.

An encoder makes no tokens and keeps no cache. So a "token" of the events is one forward pass here: its id is 0, it has
no text, and the first pass is like every other (there is no prefill apart from it). One pass is under way at a time,
as if each were an answer that somebody waits for.
"""

import functools
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
import torch

from backend.messages import Finished, Generate, PhaseName, Started
from backend.optimizations import Seen, axes
from backend.optimizations.base import Trace
from backend.plan import GeneratePlan
from backend.worker.busy import step_busy_s
from backend.worker.compiling import Compiling, compile_config
from backend.worker.evidence import find_all
from backend.worker.loader import Bench
from backend.worker.marks import Marks
from backend.worker.meter import Meter, Row
from backend.worker.outbox import Outbox
from backend.worker.prompt import Prompt, max_positions, read_prompt
from backend.worker.shapes import pad, padding_counts
from backend.worker.stream import Streamer
from backend.worker.telemetry import MemoryMeter, Sampler
from backend.worker.trace import trace

WARMUP_PASSES = 8
COMPILE_PASSES = 3  # compile, record a CUDA graph, replay it
TRACE_PASSES = 4


class Forwarder:
    """One loaded encoder; takes the same commands as `Decoder`. Keeps what was warmed up."""

    def __init__(self, bench: Bench, outbox: Outbox) -> None:
        self.bench, self.outbox = bench, outbox
        self.cancelled = threading.Event()
        self.counts: dict[str, float] = dict(bench.counts)
        self._compiling = Compiling(bench.model, self.counts)
        self._memory = MemoryMeter(bench.plan.device)
        self._warm: set[tuple[GeneratePlan, torch.Size]] = set()

    @property
    def _cuda(self) -> bool:
        return self.bench.plan.device == "cuda"

    def _call(self, plan: GeneratePlan) -> Callable[..., Any]:
        """The model, or its compiled call; kept by the model while its settings stay, as `generate` does it."""
        config, model = compile_config(plan), self.bench.model
        call: Callable[..., Any] = model if config is None else model.get_compiled_call(config)
        return call

    def _pass(self, call: Callable[..., Any], prompt: Prompt) -> None:
        """One forward pass over ids of shape (B, S); what it gives is dropped."""
        torch.compiler.cudagraph_mark_step_begin()
        call(input_ids=prompt.ids, attention_mask=prompt.mask)

    def _passes(self, plan: GeneratePlan, prompt: Prompt, most: int, done: Callable[[], None] = lambda: None) -> int:
        """Up to `most` passes, until cancelled; returns how many there were. `done` is called after each."""
        call = self._call(plan)
        with torch.inference_mode():
            for made in range(most):
                if self.cancelled.is_set():
                    return made
                self._pass(call, prompt)
                done()
        return most

    def _warm_up(self, plan: GeneratePlan, prompt: Prompt) -> None:
        """Passes in the shape of the measured ones; those that compile are a phase of their own."""
        if (plan, prompt.ids.shape) in self._warm:
            return
        phases: list[tuple[PhaseName, str, int]] = [("warmup", "", WARMUP_PASSES)]
        if plan.compile_mode:
            phases.insert(0, ("compile", plan.compile_mode, COMPILE_PASSES))
        self.counts["warmup_steps"] = float(sum(passes for _, _, passes in phases))
        for phase, note, passes in phases:
            with self.outbox.phasing(phase, note) as steps, self._compiling.watched(steps, cold=phase == "compile"):
                self._passes(plan, prompt, passes)
                if self._cuda:
                    torch.cuda.synchronize()
        if not self.cancelled.is_set():
            self._compiling.warmed_up()
            self._warm.add((plan, prompt.ids.shape))

    def run(self, job: Generate) -> None:
        """Warm up if asked and needed, make `max_new_tokens` passes, and send everything up to `Finished`."""
        plan = job.plan.generate
        read = read_prompt(self.bench, msgspec.structs.replace(job, max_new_tokens=0, chat=False))
        prompt = pad(read, plan.shapes, self.bench.pad, "right", max_positions(self.bench.model.config))
        before = {axis.name: axis.baseline(self.bench.model) for axis in axes()}
        settings = self._compiling.settings
        notes = prompt.notes + self._compiling.begin(job.plan, job.batch_size, prompt.tokens)
        if self._compiling.settings != settings:
            self._warm.clear()
        if job.warmup:
            self._warm_up(plan, prompt)
        sampler = Sampler(self._memory)
        meter = (CudaPassMeter if self._cuda else PassMeter)(sampler)
        self.outbox.send(Started(prompt.tokens, job.batch_size, job.max_new_tokens, notes))
        marks = Marks(lambda: len(meter.rows), None, self._cuda)
        streamer = Streamer(meter, sampler, None, self.outbox, marks)
        with self.outbox.phasing("run"):
            if self._cuda:
                torch.cuda.synchronize()
                torch.cuda.reset_peak_memory_stats()
            sampler.start()
            streamer.start()
            begin_s = time.perf_counter()
            meter.start()
            marks.start(begin_s)
            try:
                self._passes(plan, prompt, job.max_new_tokens, meter.tick)
            finally:
                if self._cuda:
                    torch.cuda.synchronize()
                wall_s = time.perf_counter() - begin_s
                marks.stop()
                sampler.stop()
                streamer.close()
        extra = {"weight_bytes": float(self.bench.weight_bytes)} | sampler.figures()
        compiled = self._compiling.ledger()
        counts = self.counts | padding_counts(prompt)
        findings = []
        if job.prove and not self.cancelled.is_set():
            once_more = functools.cache(lambda: self._trace(plan, prompt))
            seen = Seen(self.bench.model, None, job.plan, None, once_more, counts)
            with self.outbox.phasing("prove") as steps:
                findings = find_all(seen, before, steps.step)
                if self._cuda:
                    extra |= step_busy_s(lambda n: self._passes(plan, prompt, n), job.max_new_tokens)
        self.outbox.send(
            Finished(
                reason="cancelled" if self.cancelled.is_set() else "length",
                text="",
                ttft_s=0.0,
                wall_s=wall_s,
                peak_memory_bytes=sampler.peak,
                memory_label=self._memory.label,
                clock=meter.clock,
                findings=findings,
                extra=extra | counts,
                compiled=compiled,
            )
        )

    def _trace(self, plan: GeneratePlan, prompt: Prompt) -> Trace:
        """A few passes once more under the profiler."""
        return trace(lambda: self._passes(plan, prompt, TRACE_PASSES), self._cuda)


class PassMeter(Meter):
    """Takes the time after each forward pass; read by a `Streamer` as tokens are."""

    clock = "host clock after the pass"

    def __init__(self, sampler: Sampler) -> None:
        super().__init__(None, [], 1, sampler, None)

    def tick(self) -> None:
        """A pass was made."""
        self.rows.append(Row(time.perf_counter(), 0, 0, 0, self._sampler.latest))

    def tokens(self, first: int, end: int) -> list[int]:
        return [0] * (end - first)


class CudaPassMeter(PassMeter):
    """The same with device events, recorded in the stream after each pass and waited for."""

    clock = "CUDA events"

    def start(self) -> None:
        self.begin = torch.cuda.Event(enable_timing=True)
        self.begin.record()

    def tick(self) -> None:
        mark = torch.cuda.Event(enable_timing=True)
        mark.record()
        mark.synchronize()
        self.rows.append(Row(mark, 0, 0, 0, self._sampler.latest))

    def seconds(self, row: Row) -> float:
        return float(self.begin.elapsed_time(row.mark)) / 1e3
