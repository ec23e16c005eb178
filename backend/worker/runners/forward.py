"""Runs an encoder, or a decoder without generating: the whole prompt through the model, one pass after the other.

A "token" of the events is one pass here: its id is 0, it has no text, and the first is like every other (no prefill).
With `cuda_graphs=manual` each is a replay; the graphs of several lengths are kept.
"""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgspec
import torch

from tokendyno.backend.counts import RunCounts, WarmUp
from tokendyno.backend.evidence import Finding
from tokendyno.backend.messages import Generate, PhaseName
from tokendyno.backend.plan import GeneratePlan
from tokendyno.backend.predict.lengths import WARM_UP, WARM_UP_PROMPTS
from tokendyno.backend.worker.compiler.ledger import compile_config
from tokendyno.backend.worker.loop.cuda_graph import CapturedPasses, without_idle_mask
from tokendyno.backend.worker.measure.memory import Sampler
from tokendyno.backend.worker.measure.meter import PassMeter
from tokendyno.backend.worker.prompt import Prompt, max_positions, pad, padding_counts, read_prompt
from tokendyno.backend.worker.prove.profile import mark_step
from tokendyno.backend.worker.prove.tokens import find_states
from tokendyno.backend.worker.runners.generation import Measured, Outcome, Session, Task


class ForwardPasses:
    """A `Generation` of passes; `max_new_tokens` is the number of them."""

    def __init__(self, session: Session) -> None:
        self._session, self._model = session, session.model
        self._seen = 0  # positions in the output of the latest pass
        self._states: Any = None  # that the latest passes ended with, (B, S, H)
        self._finding: Finding | None = None  # of the states of the latest run
        self._captured: tuple[GeneratePlan, CapturedPasses] | None = None

    def prepare(self, job: Generate) -> Task:
        plan = job.plan.generate
        if self._captured is not None and plan != self._captured[0]:
            self._captured = None  # graphs of another plan would be part of this run's memory
            self._session.warm.clear()
        unpadded = read_prompt(self._model, msgspec.structs.replace(job, max_new_tokens=0, chat=False))
        prompt = pad(unpadded, plan.shapes, self._model.pad, "right", max_positions(self._model.model.config))
        return Task(job, prompt, 0, (plan, prompt.ids.shape))

    def warm_up(self, task: Task) -> WarmUp:
        """Passes that compile are a phase of their own."""
        plan, session = task.job.plan.generate, self._session
        phases: list[tuple[PhaseName, str, int]] = [("warmup", "", WARM_UP)]
        if plan.compile_mode:
            phases.insert(0, ("compile", plan.compile_mode, WARM_UP_PROMPTS))
        for phase, note, passes in phases:
            with session.channel.phasing(phase, note) as steps, session.compiling.watched(steps, phase == "compile"):
                self._passes(plan, task.prompt, passes)
                if session.cuda:
                    torch.cuda.synchronize()
        return WarmUp(warmup_steps=sum(passes for _, _, passes in phases))

    def cache(self, task: Task) -> None:
        """None: nothing is cached."""

    def meter(self, task: Task, cache: Any, sampler: Sampler) -> PassMeter:
        return PassMeter(sampler, self._session.cuda)

    def around(self, task: Task, meter: PassMeter) -> AbstractContextManager[None]:
        return nullcontext()

    def generate(self, run: Measured) -> None:
        job = run.task.job
        self._passes(job.plan.generate, run.task.prompt, job.max_new_tokens, run.meter.tick)

    def repeat(self, task: Task, steps: int) -> int:
        return self._passes(task.job.plan.generate, task.prompt, steps)

    def outcome(self, run: Measured) -> Outcome:
        """The states are looked at here already: further passes of compiled code use their memory again."""
        job, prompt, states, self._states, self._finding = run.task.job, run.task.prompt, self._states, None, None
        if job.prove and states is not None:
            self._finding = find_states(self._model.model, job.plan, prompt.ids, prompt.mask, states)
        counts = RunCounts(prompt=padding_counts(prompt, self._seen))
        return Outcome("", 0.0, range(run.meter.launched), counts)

    def tokens(self, run: Measured) -> Finding | None:
        return self._finding

    def _passes(self, plan: GeneratePlan, prompt: Prompt, most: int, tick: Callable[[], None] = lambda: None) -> int:
        """Up to `most` passes, until cancelled; returns how many. `tick` is called after each."""
        call, self._states = self._call(plan), None
        inputs = {"input_ids": prompt.ids, "attention_mask": prompt.mask}  # (B, S)
        if self._captured is not None:
            inputs = without_idle_mask(inputs)
        with torch.inference_mode():
            for finished in range(most):
                if self._session.cancelled.is_set():
                    return finished
                torch.compiler.cudagraph_mark_step_begin()
                output = call(**inputs)
                self._seen = output[0].shape[1]
                if finished == most - 1:
                    self._states = output[0]
                del output
                mark_step()
                tick()
            if self._states is not None:
                # of each position's states the first element (B, S): encoders end in a norm, after which one broken
                # number has spread over all elements of its position
                self._session.best.take(torch.where(prompt.mask.bool(), self._states[..., 0].float(), 0.0))
        return most

    def _call(self, plan: GeneratePlan) -> Callable[..., Any]:
        """The model, or its compiled call, which the model keeps while its settings stay; or replays of either."""
        config, model = compile_config(plan), self._model.model
        call: Callable[..., Any] = model if config is None else model.get_compiled_call(config)
        if self._model.plan.source.forward:
            call = functools.partial(call, use_cache=False)
        if plan.cuda_graphs != "manual":
            return call
        self._captured = self._captured or (plan, CapturedPasses(call))
        return self._captured[1]
