"""Generates tokens with the custom decode loop, whose step can be captured as a CUDA graph."""

import functools
from typing import Any

import msgspec
import torch

from tokendyno.backend.counts import RunCounts, WarmUp
from tokendyno.backend.plan import GeneratePlan
from tokendyno.backend.worker.channel import Channel
from tokendyno.backend.worker.load.loader import LoadedModel
from tokendyno.backend.worker.loop.cache import StaticSlotCache
from tokendyno.backend.worker.loop.loop import DecodeLoop
from tokendyno.backend.worker.loop.sampling import Sampling
from tokendyno.backend.worker.measure.clock import LateMeter
from tokendyno.backend.worker.measure.finite import of_rows
from tokendyno.backend.worker.measure.memory import Sampler
from tokendyno.backend.worker.measure.meter import Meter
from tokendyno.backend.worker.prompt.prompt import Prompt
from tokendyno.backend.worker.prove.profile import mark_step
from tokendyno.backend.worker.runners.base import Measured, Task
from tokendyno.backend.worker.runners.decode import GenerateRunner, Unmeasured, cached_tokens

MOST_LENGTHS = 16
"""Of prompts that are answered one after the other: each graph of a pass takes memory."""


class LoopRunner(GenerateRunner):
    """Differs from `GenerateRunner` in the loop, the static cache that it needs, and the clock."""

    fixed_cache = StaticSlotCache
    _replay = True  # the prompt, where prompts are captured

    def __init__(self, model: LoadedModel, channel: Channel, *more: Any) -> None:
        super().__init__(model, channel, *more)
        self._loop_counts: dict[str, float] = {}
        self._loop: DecodeLoop | None = None
        self._loop_plan: GeneratePlan | None = None
        self._own_passes: set[int] = set()  # of prompts with a pass of their own

    def _generate(self, task: Task, cache: Any, tokens: int, ignore_eos: bool, meter: Any) -> None:
        job = task.job
        sampling = Sampling(job.temperature, job.top_k, job.top_p)
        with torch.inference_mode():
            loop = self._loop_for(job.plan.generate)
            self._texts = loop.generate(
                task.prompt.ids,
                task.prompt.mask,
                cache,
                tokens,
                meter,
                sampling,
                job.seed,
                ignore_eos,
                None if self._given is None else self._given.ids,
                self._replay and self._worth_a_graph(task.prompt.tokens),
                0 if self._along is None else self._along.likely,
            )
            if self._given is None:
                self._best.take(loop.scores(), functools.partial(of_rows, 0, len(task.prompt.ids)))

    def _worth_a_graph(self, tokens: int) -> bool:
        """Whether prompts of that length are read by a pass of their own: in a run all, else the first few lengths."""
        if len(self._own_passes) < MOST_LENGTHS or self._along is None:
            self._own_passes.add(tokens)
        return tokens in self._own_passes

    def likeliest(self, token: int) -> tuple[list[int], list[float]]:
        assert self._loop is not None
        return self._loop.likeliest(token)

    def _finish_given(self) -> None:
        assert self._loop is not None and self._given is not None
        every = self._loop.given_logits()
        self._best.take(every.amax(-1).float(), functools.partial(of_rows, 0, 1))
        for position, logits in enumerate(every):
            self._given.take(position, logits)

    def _loop_for(self, plan: GeneratePlan) -> DecodeLoop:
        """The loop for that plan, with the step that it compiled and captured before."""
        if self._loop is None or plan != self._loop_plan:
            self._loop = None  # frees the last step and its graph
            self._loop = DecodeLoop(
                self.model.model,
                self.model.pad,
                self.model.eos,
                plan.compile_mode,
                plan.cuda_graphs == "manual",
                self._loop_counts,
                plan.prefill_chunk,
                plan.prefill_graphs,
                plan.prefill_compiled,
            )
            self._loop_plan = plan
        return self._loop

    def _generate_unmeasured(self, task: Task, prompt: Prompt, tokens: int) -> int:
        again = Task(task.job, prompt, task.length)
        stop = UnmeasuredLoop(self._stopping, prompt.ids)
        self._replay = prompt is task.prompt  # one that reaches a window is read in the warm-up alone
        try:
            self._generate(again, self._new_cache(again), tokens, True, stop)
        finally:
            self._replay = True
        if prompt is not task.prompt:
            self._best.forget()
        return stop.passes

    def _shape(self, task: Task) -> Any:
        job = task.job
        return super()._shape(task), job.temperature, job.top_k, job.top_p

    def _perform_warm_up(self, task: Task) -> WarmUp:
        self._warm.clear()  # the loop keeps one step, for one shape and one way of sampling
        return super()._perform_warm_up(task)

    def _new_meter(self, task: Task, cache: Any, sampler: Sampler) -> Meter:
        return LateMeter(cache, self._sliding, task.job.batch_size, sampler, self.cancelled.is_set, cuda=self._cuda)

    def _positions(self, measured: Measured) -> int:
        """Of the cache's tokens, those that no decode step wrote."""
        cache = measured.cache
        return cached_tokens(cache) - (0 if cache.counters is None else int(cache.step))  # None: no step was made

    def _measure(self, task: Task, cache: Any, meter: Meter) -> None:
        self._loop_counts["own_steps"] = 0  # those of the warm-up prove nothing about the run
        super()._measure(task, cache, meter)

    def _own_counts(self, measured: Measured) -> RunCounts:
        counts = super()._own_counts(measured)
        counts.passes = msgspec.structs.replace(counts.passes, own_steps=int(self._loop_counts["own_steps"]))
        replays, matrices = self._graph_calls.of_prompt()
        if replays or matrices:
            counts.prefill = msgspec.structs.replace(
                counts.prefill, prompt_replays=replays, prompt_compiled_matrices=matrices
            )
        return counts


class UnmeasuredLoop(Unmeasured):
    """The same for the custom loop, which reports its steps itself."""

    def event(self) -> None:
        """No time is taken."""
        mark_step()

    def tell(self, event: Any, ids: list[int]) -> None:
        self.passes += 1

    def stopping(self) -> bool:
        """Whether to end with the token that was told last."""
        return bool(self._stop())
