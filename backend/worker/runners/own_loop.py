"""Tokens by the custom decode loop, whose step can be captured as a CUDA graph."""

import functools
from typing import Any

import torch

from tokendyno.backend.plan import GeneratePlan
from tokendyno.backend.worker.loop.cache import StaticSlotCache
from tokendyno.backend.worker.loop.loop import DecodeLoop
from tokendyno.backend.worker.loop.sampling import Sampling
from tokendyno.backend.worker.measure.finite import of_rows
from tokendyno.backend.worker.measure.memory import Sampler
from tokendyno.backend.worker.measure.meter import Meter
from tokendyno.backend.worker.runners.cache import cached_tokens
from tokendyno.backend.worker.runners.generation import Session, Task

MOST_LENGTHS = 16
"""Of prompts that are answered one after the other: each graph of a pass takes memory."""


class OwnLoop:
    """A `decode.TokenLoop` that keeps its loop, with the step that it compiled and captured, while the plan stays."""

    build_cache = StaticSlotCache
    keeps_step, own_steps = True, 0

    def __init__(self, session: Session) -> None:
        self._session = session
        self._loop: DecodeLoop | None = None
        self._loop_plan: GeneratePlan | None = None
        self._own_passes: set[int] = set()  # lengths of prompts with a pass of their own

    def meter(self, cache: Any, sliding: list[bool], rows: int, sampler: Sampler, prompt_tokens: int) -> Meter:
        return Meter(cache, sliding, rows, sampler, self._session.cancelled.is_set, cuda=self._session.cuda)

    def generate(self, task: Task, cache: Any, meter: Any, own_pass: bool = True) -> Any:
        job, scores, listener, best = task.job, task.scores, task.listener, self._session.best
        with torch.inference_mode():
            loop = self._loop_for(job.plan.generate)
            if listener is not None:
                listener.likeliest = loop.likeliest
            texts = loop.generate(
                task.prompt.ids,
                task.prompt.mask,
                cache,
                job.max_new_tokens,
                meter,
                Sampling(job.temperature, job.top_k, job.top_p),
                job.seed,
                job.ignore_eos,
                None if scores is None else scores.ids,
                own_pass and self._worth_a_pass(task),
                0 if listener is None else listener.likely,
            )
            self.own_steps += loop.steps
            if scores is None:
                best.take(loop.scores(), functools.partial(of_rows, 0, len(task.prompt.ids)))
            else:
                logits = loop.given_logits()  # (N, V)
                best.take(logits.amax(-1).float(), functools.partial(of_rows, 0, 1))
                for position, row in enumerate(logits):
                    scores.take(position, row)
        return texts

    def _loop_for(self, plan: GeneratePlan) -> DecodeLoop:
        """The loop for that plan, with the step that it compiled and captured before."""
        if self._loop is None or plan != self._loop_plan:
            self._loop = None  # frees the last step and its graph
            self._loop = DecodeLoop(
                self._session.model.model,
                self._session.model.pad,
                self._session.model.eos,
                plan.compile_mode,
                plan.cuda_graphs == "manual",
                plan.prefill_chunk,
                plan.prefill_graphs,
                plan.prefill_compiled,
            )
            self._loop_plan = plan
        return self._loop

    def _worth_a_pass(self, task: Task) -> bool:
        """Whether prompts of that length are read by a pass of their own: in a run all, else the first few lengths."""
        tokens = task.prompt.tokens
        if len(self._own_passes) < MOST_LENGTHS or task.listener is None:
            self._own_passes.add(tokens)
        return tokens in self._own_passes

    def prompt_positions(self, cache: Any, generated: int) -> int:
        """Those of the cache that no decode step wrote."""
        return cached_tokens(cache) - (0 if cache.counters is None else int(cache.step))  # None: no step was made
