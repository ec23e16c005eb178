"""One prompt and the tokens after it, which a loop chooses: prompt, cache, warm-up, and what came of it."""

import dataclasses
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import msgspec
import torch
from transformers import StoppingCriteria
from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

from tokendyno.backend import counts
from tokendyno.backend.counts import Drafts, Prefill
from tokendyno.backend.errors import InputError
from tokendyno.backend.evidence import Finding
from tokendyno.backend.messages import Generate, Score
from tokendyno.backend.plan import CacheKind, GeneratePlan
from tokendyno.backend.predict.kv import GROUP
from tokendyno.backend.predict.lengths import WARM_UP_PROMPTS, cache_places, warm_up_tokens
from tokendyno.backend.predict.lengths import past_window as window_tokens
from tokendyno.backend.quality.texts import MIN_POSITIONS
from tokendyno.backend.units import plural
from tokendyno.backend.worker.group import own_group
from tokendyno.backend.worker.measure.annotations import Window
from tokendyno.backend.worker.measure.memory import Sampler
from tokendyno.backend.worker.measure.meter import Meter, sliding_layers
from tokendyno.backend.worker.measure.scores import Scores
from tokendyno.backend.worker.prompt import Prompt, max_positions, pad, padding_counts, read_prompt
from tokendyno.backend.worker.prove.profile import mark_step
from tokendyno.backend.worker.prove.tokens import Text, find_tokens
from tokendyno.backend.worker.runners.generation import Measured, Outcome, Session, Task
from tokendyno.backend.worker.runners.token_loops import Caches, TokenLoop


class Decoding:
    """A `Generation` after one prompt. `prompt_ids`: of the latest run, without padding."""

    def __init__(self, session: Session, loop: TokenLoop) -> None:
        self._session, self._model, self.loop = session, session.model, loop
        config = session.model.model.config
        self.caches = Caches(config, loop.build_cache)
        self._sliding = sliding_layers(config)
        window = getattr(config.get_text_config(decoder=True), "sliding_window", None) or 0
        self._window_tokens = window if any(self._sliding) else 0  # that a layer attends to; 0 without such layers
        self.prompt_ids: list[int] = []
        # of the latest run
        self._texts: Any = None  # ids (B, P and more)
        self._passes: PassCounter
        self._drafts: DraftCounter

    # --- before the run ---------------------------------------------------------------------------

    def prepare(self, job: Generate) -> Task:
        plan = job.plan.generate
        unpadded = read_prompt(self._model, job)
        prompt = pad(unpadded, plan.shapes, self._model.pad)
        self.prompt_ids = unpadded.ids[0].tolist()
        return self.task(job, prompt, max(cache_places(plan.shapes, unpadded.tokens, job.max_new_tokens), job.places))

    def given_text(self, score: Score, ids: list[int]) -> tuple[Task, list[int]]:
        """The text's beginning as the prompt of a run, and the tokens that follow. InputError if there are too few."""
        most = max_positions(self._model.model.config) or len(ids)
        expected = ids[score.context : min(score.context + score.positions, most)]
        if len(expected) < MIN_POSITIONS:
            raise InputError(
                f"The text {score.name!r} leaves {plural(len(expected), 'token')} to predict after {score.context:,} "
                f"of context, and at least {MIN_POSITIONS} are needed. Give a longer text, or less context (--context)."
            )
        job = Generate(score.plan, "", 0, len(expected), 1, 0.0, 0, True, True)
        rows = torch.tensor([ids[: score.context]], device=self._model.model.device)
        prompt = pad(Prompt(rows, torch.ones_like(rows)), score.plan.generate.shapes, self._model.pad)
        length = cache_places(score.plan.generate.shapes, score.context, len(expected))
        return self.task(job, prompt, max(length, score.places)), expected

    def task(self, job: Generate, prompt: Prompt, length: int) -> Task:
        """A task of that prompt, for a cache of that length. InputError if its keys cannot be quantized."""
        plan, window = job.plan.generate, self._window_tokens
        self.caches.require_groups(plan, prompt.batch_size, prompt.tokens)
        past = past_window(prompt, window, length, plan.cache) is not None
        sampling = (job.temperature, job.top_k, job.top_p) if self.loop.keeps_step else None
        shape = plan, prompt.ids.shape, length if plan.cache.static else 0, past, sampling
        filled = None
        if window and plan.cache.windowed:
            # a growing cache keeps one token less than a window's layer attends to
            filled = Window(prompt.tokens, window if plan.cache.static else window - 1)
        return Task(job, prompt, length, shape, window=filled)

    def cache(self, task: Task) -> Any:
        return self.caches.make(task.job.plan.generate, task.prompt.batch_size, task.length)

    # --- unmeasured -------------------------------------------------------------------------------

    def warm_up(self, task: Task) -> counts.WarmUp:
        """Compilation is a phase of its own."""
        plan, session = task.job.plan.generate, self._session
        if self.loop.keeps_step:
            session.warm.clear()
        warm_up = WarmUp(
            lambda prompt, tokens: self._unmeasured(task, prompt, tokens),
            task.prompt,
            past_window(task.prompt, self._window_tokens, task.length, plan.cache),
            self._window_tokens,
            task.length,
        )
        if plan.compile_mode:
            with (
                session.channel.phasing("compile", plan.compile_mode) as steps,
                session.compiling.watched(steps, cold=True),
            ):
                warm_up.compile(steps.step, session.cancelled.is_set)
        with session.channel.phasing("warmup") as steps, session.compiling.watched(steps, cold=False):
            warm_up.perform(steps.step, session.cancelled.is_set)
        return warm_up.done

    def repeat(self, task: Task, steps: int) -> int:
        return self._unmeasured(task, task.prompt, min(steps, task.job.max_new_tokens))

    def read(self, task: Task, scores: Scores, report: Callable[[float], None]) -> None:
        """Let `scores` take those of its text, which begins with the prompt; `report` gets the share that was read."""
        read, every = 0, max(1, len(scores.ids) // 200)

        def stop() -> bool:
            nonlocal read
            read += 1
            if read % every == 0:
                report(read / len(scores.ids))
            return self._session.cancelled.is_set()

        self._unmeasured(dataclasses.replace(task, scores=scores), task.prompt, len(scores.ids), stop)

    def _unmeasured(self, task: Task, prompt: Prompt, tokens: int, stop: Callable[[], bool] | None = None) -> int:
        """Generate that many tokens after the task's prompt, or after another one; returns in how many passes."""
        own_prompt = prompt is task.prompt  # one that reaches a window is read in the warm-up alone
        job = msgspec.structs.replace(task.job, max_new_tokens=tokens, ignore_eos=True)
        unmeasured = dataclasses.replace(task, job=job, prompt=prompt)
        meter = Unmeasured(stop or self._session.cancelled.is_set)
        self.loop.generate(unmeasured, self.cache(unmeasured), meter, own_prompt)
        if not own_prompt:
            self._session.best.forget()
        return meter.passes

    # --- the run and what came of it --------------------------------------------------------------

    def meter(self, task: Task, cache: Any, sampler: Sampler) -> Meter:
        cuda = self._session.cuda
        stop, prompt_tokens = self._session.cancelled.is_set, task.prompt.tokens
        copied = cuda and not self.loop.keeps_step
        return Meter(cache, self._sliding, task.job.batch_size, sampler, stop, prompt_tokens, cuda, copied)

    @contextmanager
    def around(self, task: Task, meter: Meter) -> Iterator[None]:
        self.loop.own_steps = 0  # those of the warm-up prove nothing about the run
        counter = PassCounter(self._model.model, task.job.plan.generate, task.prompt.ids)
        with counter as self._passes, DraftCounter() as self._drafts:
            yield

    def generate(self, run: Measured) -> None:
        self._texts = self.loop.generate(run.task, run.cache, run.meter)

    def outcome(self, run: Measured) -> Outcome:
        job, meter, streamed = run.task.job, run.meter, run.streamer.text
        counted = counts.RunCounts(
            prompt=padding_counts(run.task.prompt, self.loop.prompt_positions(run.cache, len(meter.rows))),
            drafts=self._drafts.counts(len(run.streamer.ids), meter.steps),
            passes=counts.Passes(passes=meter.steps, own_steps=self.loop.own_steps),
        )
        if self._passes.prompt_ids:
            counted.prefill = self._passes.counts()
        replays, matrices = self._session.graph_calls.of_prompt()
        if self.loop.keeps_step and (replays or matrices):
            counted.prefill = msgspec.structs.replace(
                counted.prefill, prompt_replays=replays, prompt_compiled_matrices=matrices
            )
        text = self._model.tokenizer.decode(run.streamer.ids, skip_special_tokens=True)
        return Outcome(
            text if text.startswith(streamed) else streamed,  # viewers already show what was streamed
            meter.seconds(meter.rows[0]) if meter.rows else 0.0,
            range(1, meter.launched),
            counted,
            "eos" if len(run.streamer.ids) < job.max_new_tokens else "length",
        )

    def tokens(self, run: Measured) -> Finding:
        """Checks the first text of a batch, and the first that differs from it."""
        job, ids = run.task.job, run.streamer.ids
        texts = [ids]
        if job.batch_size > 1:
            begin = run.task.prompt.tokens
            eos = () if job.ignore_eos else self._model.eos
            rows = (_up_to_eos(row, eos) for row in self._texts[:, begin : begin + len(ids)].tolist())
            texts += [row for row in rows if row not in texts][:1]
        checked = [Text(self.prompt_ids, text) for text in texts]
        return find_tokens(self._model.model, job.plan, job.temperature > 0, checked)


def _up_to_eos(ids: list[int], eos: Collection[int]) -> list[int]:
    """Up to the first token that ends the text, without the padding behind it."""
    end = next((place + 1 for place, token in enumerate(ids) if token in eos), len(ids))
    return ids[:end]


class Unmeasured(StoppingCriteria):  # type: ignore[misc]
    """Lets a generation of either loop be ended early; measures nothing. `passes`: those of the model so far."""

    def __init__(self, stop: Callable[[], bool]) -> None:
        self._stop, self.passes = stop, 0

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """Shapes: input_ids (B, length so far); returns (B,) bool, True = finished."""
        mark_step()
        self.passes += 1
        return torch.full((len(input_ids),), self.stopping(), dtype=torch.bool, device=input_ids.device)

    # --- told by the custom loop: see `loop.TokenMeter` -------------------------------------------

    def event(self) -> None:
        mark_step()

    def tell(self, event: Any, ids: list[int]) -> None:
        self.passes += 1

    def stopping(self) -> bool:
        return bool(self._stop())


# --- counted while tokens are generated, whoever does it --------------------------------------------


class PassCounter:
    """Counts by a hook on the model's input embedding, which is gone before the first step.

    Where steps are compiled or replayed, a hook would change what runs, or miss it; but a prompt in chunks is read by
    the model's own code even then, and where a captured pass should read the prompt, the hook is to see none.

    prompt_ids  (B, tokens) of each pass until the prompt was read: the last one may have drafts behind it
    """

    def __init__(self, model: Any, plan: GeneratePlan, prompt: torch.Tensor) -> None:
        hidden = plan.compile_mode is not None or plan.cuda_graphs == "manual"
        watched = not hidden or plan.prefill_chunk or plan.prefill_graphs
        self._embedding = model.get_input_embeddings() if watched else None
        self._chunk, self._prompt = plan.prefill_chunk or prompt.shape[1], prompt
        self.prompt_ids: list[Any] = []
        self._unread = prompt.shape[1]

    def __enter__(self) -> "PassCounter":
        if self._embedding is not None:
            self._hook = self._embedding.register_forward_pre_hook(self._add, prepend=True)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._embedding is not None:
            self._hook.remove()

    def _add(self, _: object, inputs: Sequence[Any]) -> None:
        ids = inputs[0]  # (rows, tokens); with fewer rows than the prompt has, tokens count in proportion
        self.prompt_ids.append(ids)
        self._unread -= min(ids.shape[-1], ids.numel() // len(self._prompt))
        if self._unread <= 0:
            self._hook.remove()

    def counts(self) -> Prefill:
        """What the passes over the prompt were given. At least one was seen."""
        planned = self._prompt.split(self._chunk, -1)
        last = self.prompt_ids[-1][:, : planned[-1].shape[1]]  # without drafts behind the prompt
        return Prefill(
            prompt_passes=len(self.prompt_ids),
            widest_prompt_pass=max(ids.shape[-1] for ids in self.prompt_ids),
            planned_prompt_passes=sum(map(torch.equal, [*self.prompt_ids[:-1], last], planned)),
        )


class DraftCounter:
    """Counts while it is entered, whatever the plan says; costs two additions a step, and nothing without lookups."""

    def __init__(self) -> None:
        self.lookups = self.draft_tokens = 0

    def __enter__(self) -> "DraftCounter":
        original = PromptLookupCandidateGenerator.get_candidates

        def get_candidates(generator: Any, input_ids: Any, **kwargs: Any) -> Any:
            candidates = original(generator, input_ids, **kwargs)
            self.lookups += 1
            self.draft_tokens += candidates[0].shape[1] - input_ids.shape[1]
            return candidates

        self._patch = mock.patch.object(PromptLookupCandidateGenerator, "get_candidates", get_candidates)
        self._patch.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._patch.stop()

    def counts(self, tokens: int, steps: int) -> Drafts:
        """Lookups, draft tokens and accepted tokens of a run that generated so many tokens in so many steps."""
        if not self.lookups:
            return Drafts()
        return Drafts(lookups=self.lookups, steps=steps, draft_tokens=self.draft_tokens, accepted_tokens=tokens - steps)


# --- warm-up --------------------------------------------------------------------------------------

CHEAP_S = 1.0
"""The prompt is read three times only if the first time took less than this."""


def past_window(prompt: Prompt, window: int, length: int, cache: CacheKind) -> Prompt | None:
    """A prompt that ends just before a window of that many tokens is full; None where the run never fills it, or its
    own prompt does. `length`: tokens of the whole run. Some quantized caches need whole groups."""
    tokens = window_tokens(prompt.tokens, window, length, GROUP if cache.quantized else 1)
    if not tokens:
        return None
    ids = prompt.ids[:, :1].repeat(1, tokens)
    return Prompt(ids, torch.ones_like(ids))


class WarmUp:
    """The warm-up of one run: at least three prompts and three decode steps, which load kernels, compile and fill
    allocators. Where the run passes a sliding window, some are past it, after a prompt almost as long: a full window
    needs other kernels, masks and graphs. `generate` makes that many tokens after a prompt."""

    def __init__(
        self, generate: Callable[[Prompt, int], Any], prompt: Prompt, past: Prompt | None, window: int, length: int
    ) -> None:
        self._generate, self._prompt, self._past = generate, prompt, past
        self._window, self._length = window, length
        self._prompts = self._steps = self._window_steps = 0
        self._took_s: list[float] = []  # each time for the run's own prompt

    def compile(self, report: Callable[[float], None], cancelled: Callable[[], bool]) -> None:
        """Once through every shape, the run's own first: what is compiled later is compared with the first."""
        prompts = [prompt for prompt in (self._prompt, self._past) if prompt is not None]
        for i, prompt in enumerate(prompts):
            if not cancelled():
                self._perform(prompt)
                report((i + 1) / len(prompts))

    def perform(self, report: Callable[[float], None], cancelled: Callable[[], bool]) -> None:
        """Past the window first, so that the run finds memory as its own prompt leaves it."""
        if self._past is not None and not cancelled():
            self._perform(self._past)
            if self._prompt.ids.is_cuda:
                torch.cuda.empty_cache()  # a longer prompt than the run's would count as the run's memory
            report(0.5)
        begin_s = time.perf_counter()
        while not cancelled():
            self._perform(self._prompt)
            cheap = own_group().agree(time.perf_counter() - begin_s < CHEAP_S)
            few = self._prompts < WARM_UP_PROMPTS and cheap
            if not few and self._steps >= WARM_UP_PROMPTS:
                return
            report(0.5)

    def _perform(self, prompt: Prompt) -> None:
        tokens = warm_up_tokens(prompt.tokens, self._length, self._window if prompt is self._past else 0)
        begin_s = time.perf_counter()
        self._generate(prompt, tokens)
        if prompt is self._prompt:
            self._took_s.append(time.perf_counter() - begin_s)
        self._prompts += 1
        self._steps += tokens - 1
        if self._window:
            self._window_steps += max(0, min(tokens - 1, prompt.tokens + tokens - self._window))

    @property
    def done(self) -> counts.WarmUp:
        first_s, last_s = (self._took_s[0], self._took_s[-1]) if len(self._took_s) > 1 else (None, None)
        return counts.WarmUp(
            warmup_steps=self._steps,
            warmup_window_steps=self._window_steps,
            warmup_first_s=first_s,
            warmup_last_s=last_s,
        )
