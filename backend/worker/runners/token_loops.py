"""How tokens are chosen one after the other, by transformers' `generate` or by the custom decode loop, whose step can
be captured as a CUDA graph; and the KV cache that they fill."""

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo import config as dynamo
from torch.fx.experimental import _config as symbolic_shapes
from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

from tokendyno.backend.errors import InputError
from tokendyno.backend.messages import Generate
from tokendyno.backend.optimizations.axes.cache import CONFIG, LENGTH, cache_construct
from tokendyno.backend.plan import GeneratePlan
from tokendyno.backend.predict.kv import GROUP
from tokendyno.backend.worker.compiler.ledger import compile_config
from tokendyno.backend.worker.loop.cache import StaticSlotCache
from tokendyno.backend.worker.loop.loop import DecodeLoop
from tokendyno.backend.worker.loop.sampling import Sampling
from tokendyno.backend.worker.measure.finite import BestOfEach, best_of_drafts
from tokendyno.backend.worker.measure.scores import GivenText
from tokendyno.backend.worker.patch.quantized import saturate_fp8_cache, unpack_with_torch
from tokendyno.backend.worker.runners.generation import Session, Task


class Caches:
    """Caches of one model. A static one is kept between runs of a shape: compiled and captured graphs hold its
    addresses. `fixed` builds it from config, length and whether it is in 8 bits; None: as the plan says."""

    def __init__(self, config: Any, fixed: Callable[[Any, int, bool], Any] | None = None) -> None:
        self._config = config.get_text_config(decoder=True)
        self._build_fixed = fixed
        self._cached: tuple[tuple[str, int, int], Any] | None = None

    @property
    def cached(self) -> Any:
        return self._cached[1] if self._cached is not None else None

    def make(self, plan: GeneratePlan, batch_size: int, length: int) -> Any:
        """An empty cache. `length`: slots of a static one."""
        if plan.cache.backend == "quanto":
            unpack_with_torch()
        elif plan.cache.backend == "fp8":
            saturate_fp8_cache()
        if not plan.cache.fixed:
            return self._build(plan, length)
        key = (plan.cache.name, batch_size, length)
        if self._cached is None or self._cached[0] != key:
            self._cached = None  # frees the old one first
            self._cached = key, self._build(plan, length)
        else:
            with torch.inference_mode():
                self._cached[1].reset()
        return self._cached[1]

    def _build(self, plan: GeneratePlan, length: int) -> Any:
        if plan.cache.fixed and self._build_fixed is not None:
            return self._build_fixed(self._config, length, plan.cache.quantized)
        return cache_construct(plan.cache).build(**{CONFIG: self._config, LENGTH: length})

    def require_groups(self, plan: GeneratePlan, batch_size: int, prompt_tokens: int) -> None:
        """InputError if a prompt's keys make no whole quantization groups; later tokens come 128 at a time, which do.
        hqq groups the whole batch, optimum-quanto each row."""
        if not plan.cache.grouped:
            return
        config = self._config
        head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        numbers = head * (getattr(config, "num_key_value_heads", None) or config.num_attention_heads)
        rows = batch_size if plan.cache.backend == "hqq" else 1
        if prompt_tokens * numbers * rows % GROUP:
            raise InputError(
                f"This cache is quantized in groups of {GROUP} numbers: {prompt_tokens:,} prompt tokens with {numbers} "
                f"each do not divide into them. Use a prompt length that is a multiple of {GROUP} tokens "
                "(--prompt-tokens), or cache=quantized-fp8."
            )


def cached_tokens(cache: Any) -> int:
    """Tokens that a cache has seen, as its layers count them: a window may hold fewer."""
    growing = (layer for layer in cache.layers if hasattr(layer, "get_seq_length"))  # linear attention counts no tokens
    return max((int(layer.get_seq_length()) for layer in growing), default=0)


class GenerateCall:
    """Chooses tokens one after the other: here by one call of `generate` for all of them.

    build_cache  `Caches.fixed`
    keeps_step   it keeps one step, compiled or captured for a shape and a way of sampling
    own_steps    that were made by such a step
    """

    build_cache: Any = None
    keeps_step, own_steps = False, 0

    def __init__(self, session: Session) -> None:
        self._session, self._model = session, session.model
        self._compiled_module: Any = None  # of torch.compile, around the model

    def generate(self, task: Task, cache: Any, meter: Any, own_pass: bool = True) -> Any:
        """The new tokens of a task; `meter` is told each of them. Returns ids (B, P + generated). `own_pass`: the
        prompt may be read by a pass that is made for its length."""
        plan, best = task.job.plan.generate, self._session.best
        drafts = best_of_drafts(best) if plan.prompt_lookup else contextlib.nullcontext()
        # transformers 5.22 raises it for good where a prompt is read in chunks (generation/utils.py, `_prefill`)
        limit = dynamo.patch(recompile_limit=dynamo.recompile_limit)
        symbols = symbolic_shapes.patch(use_duck_shape=plan.shapes != "dynamic")  # equal sizes stay two symbols
        whole_model = self._session.compiling.whole_model(plan)
        with torch.inference_mode(), symbols, whole_model, drafts, limit:
            if plan.compile_module and self._compiled_module is None:
                self._compiled_module = torch.compile(self._model.model)
            module = self._compiled_module if plan.compile_module else self._model.model
            return module.generate(
                task.prompt.ids,
                attention_mask=task.prompt.mask,
                past_key_values=cache,
                generation_config=self._settings(task.job),
                stopping_criteria=StoppingCriteriaList([meter]),
                logits_processor=self._processors(task),
            )

    def _settings(self, job: Generate) -> GenerationConfig:
        plan = job.plan.generate
        compiled = compile_config(plan) if plan.cache.fixed else None
        sampling: dict[str, Any] = {"do_sample": False}
        if job.temperature > 0:
            sampling = {"do_sample": True, "temperature": job.temperature, "top_k": job.top_k, "top_p": job.top_p}
        return GenerationConfig(
            max_new_tokens=job.max_new_tokens,
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
        processors = LogitsProcessorList()
        if task.scores is not None or not task.job.plan.generate.prompt_lookup:
            processors.append(BestOfEach(self._session.best, task.job.temperature > 0))
        if task.scores is not None:
            processors.append(GivenText(task.scores, task.prompt.tokens))
        if task.listener is not None and task.listener.processor is not None:
            processors.append(task.listener.processor)
        return processors

    def prompt_positions(self, cache: Any, generated: int) -> int:
        """How many positions of the prompt the model has seen, padding included: those of the cache that were not
        generated. The last token is never cached."""
        return cached_tokens(cache) - max(0, generated - 1)


MOST_LENGTHS = 16
"""Of prompts that are answered one after the other: each graph of a pass takes memory."""


class OwnLoop:
    """The same by our loop, which is kept with the step that it compiled and captured while the plan stays."""

    build_cache = StaticSlotCache
    keeps_step, own_steps = True, 0

    def __init__(self, session: Session) -> None:
        self._session = session
        self._loop: DecodeLoop | None = None
        self._loop_plan: GeneratePlan | None = None
        self._own_passes: set[int] = set()  # lengths of prompts with a pass of their own

    def generate(self, task: Task, cache: Any, meter: Any, own_pass: bool = True) -> Any:
        job, scores, listener, best = task.job, task.scores, task.listener, self._session.best
        tokens = task.prompt.tokens  # in a run all lengths are read by a pass of their own, else the first few
        if own_pass and (len(self._own_passes) < MOST_LENGTHS or listener is None):
            self._own_passes.add(tokens)
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
                given=None if scores is None else scores.ids,
                replay=own_pass and tokens in self._own_passes,
                likely=0 if listener is None else listener.likely,
            )
            self.own_steps += loop.steps
            if scores is None:
                best.take(loop.scores())
            else:
                logits = loop.given_logits()  # (N, V)
                best.take(logits.amax(-1).float())
                for position, row in enumerate(logits):
                    scores.take(position, row)
        return texts

    def _loop_for(self, plan: GeneratePlan) -> DecodeLoop:
        """The loop for that plan, with the step that it compiled and captured before."""
        if self._loop is None or plan != self._loop_plan:
            self._loop = None  # frees the last step and its graph
            model, captured = self._session.model, plan.cuda_graphs == "manual"
            prefill = plan.prefill_chunk, plan.prefill_graphs, plan.prefill_compiled
            self._loop = DecodeLoop(model.model, model.pad, model.eos, plan.compile_mode, captured, *prefill)
            self._loop_plan = plan
        return self._loop

    def prompt_positions(self, cache: Any, generated: int) -> int:
        """Those of the cache that no decode step wrote."""
        return cached_tokens(cache) - (0 if cache.counters is None else int(cache.step))  # None: no step was made


TokenLoop = GenerateCall | OwnLoop
