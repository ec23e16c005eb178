"""Runs an encoder, or a decoder without generating: the whole prompt through the model, again and again, and the time
of each forward pass.

Such a run has no tokens and no cache, so a "token" of the events is one forward pass here: its id is 0, it
has no text, and the first pass is like every other (no prefill). Passes run one at a time, as if each were a request
that somebody waits for. With `cuda_graphs=manual` each is a replay; the graphs of several lengths are kept.
"""

import functools
import time
from collections.abc import Callable
from typing import Any

import msgspec
import torch

from tokendyno.backend.counts import RunCounts, WarmUp
from tokendyno.backend.evidence import Finding
from tokendyno.backend.messages import Generate, PhaseName
from tokendyno.backend.optimizations.tensor_bytes import HeldBytes
from tokendyno.backend.plan import GeneratePlan
from tokendyno.backend.predict.lengths import WARM_UP, WARM_UP_PROMPTS
from tokendyno.backend.worker.compiler.ledger import compile_config
from tokendyno.backend.worker.loop.passes import CapturedPasses, without_idle_mask
from tokendyno.backend.worker.measure.memory import Sampler
from tokendyno.backend.worker.measure.meter import Meter, TokenRow
from tokendyno.backend.worker.prompt.prompt import Prompt, max_positions, pad, read_prompt
from tokendyno.backend.worker.prove.profile import mark_step
from tokendyno.backend.worker.prove.tokens import find_states
from tokendyno.backend.worker.runners.base import Measured, MeasuredRunner, Outcome, Task

PROFILED_PASSES = 4


class ForwardRunner(MeasuredRunner):
    """Runs on an encoder; `max_new_tokens` is the number of passes."""

    first_counted = 0
    _seen = 0  # positions in the output of the latest pass
    _captured: CapturedPasses | None = None
    _captured_for: GeneratePlan | None = None
    _states: Any = None  # that the latest passes ended with, (B, S, H)
    _found: Finding | None = None  # of the states of the latest run

    def _prepare(self, job: Generate) -> Task:
        self._keep_graphs(job.plan.generate)
        read = read_prompt(self.model, msgspec.structs.replace(job, max_new_tokens=0, chat=False))
        most = max_positions(self.model.model.config)
        return Task(job, pad(read, job.plan.generate.shapes, self.model.pad, "right", most), 0)

    def _shape(self, task: Task) -> Any:
        return task.job.plan.generate, task.prompt.ids.shape

    def _perform_warm_up(self, task: Task) -> WarmUp:
        """Passes that compile are a phase of their own."""
        plan = task.job.plan.generate
        phases: list[tuple[PhaseName, str, int]] = [("warmup", "", WARM_UP)]
        if plan.compile_mode:
            phases.insert(0, ("compile", plan.compile_mode, WARM_UP_PROMPTS))
        for phase, note, passes in phases:
            with self.channel.phasing(phase, note) as steps, self._compiling.watched(steps, cold=phase == "compile"):
                self._passes(plan, task.prompt, passes)
                if self._cuda:
                    torch.cuda.synchronize()
        return WarmUp(warmup_steps=sum(passes for _, _, passes in phases))

    def _new_meter(self, task: Task, cache: Any, sampler: Sampler) -> "PassMeter":
        return (CudaPassMeter if self._cuda else PassMeter)(sampler)

    def _measure(self, task: Task, cache: Any, meter: Any) -> None:
        plan = task.job.plan.generate
        self._passes(plan, task.prompt, task.job.max_new_tokens, meter.tick)

    def _repeat(self, task: Task, steps: int) -> int:
        return self._passes(task.job.plan.generate, task.prompt, steps)

    def _profiled_steps(self, task: Task) -> int:
        return PROFILED_PASSES

    def _positions(self, measured: Measured) -> int:
        return self._seen

    def _own_counts(self, measured: Measured) -> RunCounts:
        """The states are looked at here already: further passes of compiled code use their memory again."""
        prompt, states, self._states, self._found = measured.task.prompt, self._states, None, None
        if measured.task.job.prove and states is not None:
            plan = measured.task.job.plan
            self._found = find_states(self.model.model, plan, prompt.ids, prompt.mask, states)
        return RunCounts()

    def _tokens(self, measured: Measured) -> Finding | None:
        return self._found

    def _outcome(self, measured: Measured) -> Outcome:
        return Outcome("cancelled" if self.cancelled.is_set() else "length")

    def _passes(self, plan: GeneratePlan, prompt: Prompt, most: int, done: Callable[[], None] = lambda: None) -> int:
        """Up to `most` passes, until cancelled; returns how many. `done` is called after each."""
        call, sums = self._call(plan), None
        self._states = None
        inputs = {"input_ids": prompt.ids, "attention_mask": prompt.mask}  # (B, S)
        if self._captured is not None:
            inputs = without_idle_mask(inputs)
        with torch.inference_mode():
            for finished in range(most):
                if self.cancelled.is_set():
                    return finished
                torch.compiler.cudagraph_mark_step_begin()
                output = call(**inputs)
                self._seen = output[0].shape[1]
                if finished == most - 1:
                    self._states = output[0]
                sums = _added(sums, output[0])
                del output
                mark_step()
                done()
            if sums is not None:
                self._best.take(torch.where(prompt.mask.bool(), sums, 0.0), _of_positions(prompt))
        return most

    def _call(self, plan: GeneratePlan) -> Callable[..., Any]:
        """The model, or its compiled call, which the model keeps while its settings stay, as `generate` does it; or
        replays of either."""
        config, model = compile_config(plan), self.model.model
        call: Callable[..., Any] = model if config is None else model.get_compiled_call(config)
        if self.model.plan.source.forward:
            call = functools.partial(call, use_cache=False)
        if plan.cuda_graphs != "manual":
            return call
        if self._captured is None:
            self._captured, self._captured_for = CapturedPasses(call), plan
        return self._captured

    def _keep_graphs(self, plan: GeneratePlan) -> None:
        """Those of earlier runs with this plan, of whatever lengths; they would be no part of another's memory."""
        if self._captured is not None and plan != self._captured_for:
            self._captured = self._captured_for = None
            self._warm.clear()


def _added(sums: Any, hidden: Any) -> Any:
    """The first elements of hidden states (B, S, H), summed over passes: (B, S) float32, not finite once one was not.
    Encoders end in a norm, after which one broken number has spread over all elements of its position."""
    first = hidden[..., 0]
    return first.to(torch.float32, copy=True) if sums is None else sums.add_(first)


def _of_positions(prompt: Prompt) -> Callable[[int], str]:
    def name(place: int) -> str:
        row = f" of text {place // prompt.tokens + 1:,}" if prompt.batch_size > 1 else ""
        return f"position {place % prompt.tokens:,} (counted from 0){row}"

    return name


class PassMeter(Meter):
    """Takes the time after each forward pass; a `Streamer` reads it like tokens."""

    clock = "host clock after the pass"

    def __init__(self, sampler: Sampler) -> None:
        super().__init__(None, [], 1, sampler, None)

    def tick(self) -> None:
        """A pass is done."""
        self.launched += 1
        self.rows.append(TokenRow(time.perf_counter(), 0, HeldBytes(0, 0), self._sampler.latest))

    def tokens(self, first: int, end: int) -> list[int]:
        return [0] * (end - first)


class CudaPassMeter(PassMeter):
    """The same with CUDA events, recorded in the stream after each pass and waited for."""

    clock = "CUDA events"

    def start(self) -> None:
        self.begin = torch.cuda.Event(enable_timing=True)
        self.begin.record()

    def tick(self) -> None:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        event.synchronize()
        self.launched += 1
        self.rows.append(TokenRow(event, 0, HeldBytes(0, 0), self._sampler.latest))

    def seconds(self, row: TokenRow) -> float:
        return float(self.begin.elapsed_time(row.event)) / 1e3
