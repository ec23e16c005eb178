"""Tokens by transformers' `generate`."""

import contextlib
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

from tokendyno.backend.messages import Generate
from tokendyno.backend.plan import GeneratePlan
from tokendyno.backend.worker.compiler.ledger import compile_config, restoring_recompile_limit
from tokendyno.backend.worker.measure.finite import BestOfEach, best_of_drafts
from tokendyno.backend.worker.measure.memory import Sampler
from tokendyno.backend.worker.measure.meter import CudaMeter, Meter
from tokendyno.backend.worker.measure.scores import GivenText
from tokendyno.backend.worker.prompt.prompt import symbolic_sizes
from tokendyno.backend.worker.runners.cache import cached_tokens
from tokendyno.backend.worker.runners.generation import Session, Task


class GenerateCall:
    """A `decode.TokenLoop`: one call of `generate` for all tokens."""

    build_cache: Any = None
    keeps_step, own_steps = False, 0

    def __init__(self, session: Session) -> None:
        self._session, self._model = session, session.model
        self._compiled_module: Any = None  # of torch.compile, around the model

    def meter(self, cache: Any, sliding: list[bool], rows: int, sampler: Sampler, prompt_tokens: int) -> Meter:
        kind = CudaMeter if self._session.cuda else Meter
        return kind(cache, sliding, rows, sampler, self._session.cancelled.is_set, prompt_tokens)

    def generate(self, task: Task, cache: Any, meter: Any, own_pass: bool = True) -> Any:
        plan, best = task.job.plan.generate, self._session.best
        drafts = best_of_drafts(best, task.prompt.tokens) if plan.prompt_lookup else contextlib.nullcontext()
        chunks = restoring_recompile_limit() if plan.prefill_chunk else contextlib.nullcontext()
        whole_model = self._session.compiling.whole_model(plan)
        with torch.inference_mode(), symbolic_sizes(plan.shapes), whole_model, drafts, chunks:
            return self._module_of(plan).generate(
                task.prompt.ids,
                attention_mask=task.prompt.mask,
                past_key_values=cache,
                generation_config=self._settings(task.job),
                stopping_criteria=StoppingCriteriaList([meter]),
                logits_processor=self._processors(task),
            )

    def _module_of(self, plan: GeneratePlan) -> Any:
        """The model, or what torch.compile(model) returns."""
        if not plan.compile_module:
            return self._model.model
        if self._compiled_module is None:
            self._compiled_module = torch.compile(self._model.model)
        return self._compiled_module

    def _settings(self, job: Generate) -> GenerationConfig:
        plan = job.plan.generate
        compiled = compile_config(plan) if plan.cache.fixed else None
        sampling: dict[str, Any] = {"do_sample": False}
        if job.temperature > 0:
            sampling = {"do_sample": True, "temperature": job.temperature, "top_k": job.top_k, "top_p": job.top_p}
        return GenerationConfig(
            max_new_tokens=job.max_new_tokens,
            min_new_tokens=None,
            eos_token_id=None if job.ignore_eos else (self._model.eos or None),
            pad_token_id=self._model.pad,
            disable_compile=compiled is None,
            compile_config=compiled,
            prefill_chunk_size=plan.prefill_chunk or None,
            prompt_lookup_num_tokens=plan.prompt_lookup or None,
            **sampling,
        )

    def _processors(self, task: Task) -> LogitsProcessorList:
        """What sees the scores of each step: nothing where several tokens are chosen at once."""
        start, processors = task.prompt.tokens, LogitsProcessorList()
        if task.scores is not None or not task.job.plan.generate.prompt_lookup:
            processors.append(BestOfEach(self._session.best, start, task.job.temperature > 0))
        if task.scores is not None:
            processors.append(GivenText(task.scores, start))
        if task.listener is not None and task.listener.processor is not None:
            processors.append(task.listener.processor)
        return processors

    def prompt_positions(self, cache: Any, generated: int) -> int:
        """Those of the cache that were not generated; the last token is never cached."""
        return cached_tokens(cache) - max(0, generated - 1)
