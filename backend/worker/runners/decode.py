"""Generates tokens with transformers' `generate`: prompt, cache, warm-up and settings of a run."""

import contextlib
from collections.abc import Callable, Collection
from typing import Any, Protocol

import msgspec
import torch
from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

from tokendyno.backend import counts
from tokendyno.backend.errors import InputError
from tokendyno.backend.evidence import Finding
from tokendyno.backend.messages import Generate, Probed, Score
from tokendyno.backend.plan import GeneratePlan
from tokendyno.backend.predict.lengths import cache_places
from tokendyno.backend.quality.texts import MIN_POSITIONS
from tokendyno.backend.worker.channel import Channel
from tokendyno.backend.worker.compiler.ledger import compile_config
from tokendyno.backend.worker.compiler.limit import recompile_limit_kept
from tokendyno.backend.worker.load.loader import LoadedModel
from tokendyno.backend.worker.load.unread import token_ids
from tokendyno.backend.worker.measure.annotations import Window
from tokendyno.backend.worker.measure.clock import CudaMeter
from tokendyno.backend.worker.measure.finite import BestOfEach, best_of_drafts
from tokendyno.backend.worker.measure.memory import Sampler
from tokendyno.backend.worker.measure.meter import Meter, sliding_layers
from tokendyno.backend.worker.measure.scores import GivenText, Reading, Scores, Takes
from tokendyno.backend.worker.prompt.padding import pad, symbolic_sizes
from tokendyno.backend.worker.prompt.prompt import Prompt, max_positions, read_prompt
from tokendyno.backend.worker.prove.passes import PassCounter
from tokendyno.backend.worker.prove.profile import mark_step
from tokendyno.backend.worker.prove.prompt_lookup import expected_accepted, expected_drafts
from tokendyno.backend.worker.prove.tokens import Text, find_tokens
from tokendyno.backend.worker.runners.base import Measured, MeasuredRunner, Outcome, Task
from tokendyno.backend.worker.runners.cache import Caches
from tokendyno.backend.worker.runners.warmup import WarmUp, past_window
from tokendyno.backend.worker.vocabulary import scored_ids

PROFILED_TOKENS = 4


class Along(Protocol):
    """Takes the tokens of one text as they come. `processor`: what has to see the scores for that; `likely`: how many
    of the likeliest tokens it wants of each."""

    processor: Any
    likely: int


class GenerateRunner(MeasuredRunner):
    """Runs on a decoder. Keeps the static cache too, whose addresses compiled and captured graphs hold."""

    fixed_cache: Any = None  # what `Caches` builds for a static cache; None: what the plan says

    def __init__(self, model: LoadedModel, channel: Channel, *more: Any) -> None:
        super().__init__(model, channel, *more)
        self._caches = Caches(model.model.config, self.fixed_cache)
        self._sliding = sliding_layers(model.model.config)
        self._prompt: list[int] = []  # of the latest run, without padding
        self._given: Takes | None = None  # of a text that is given to the model, while it is
        self._read: Callable[[], None] | None = None  # told of each of its positions
        self._passes: PassCounter | None = None  # of the latest run
        self._module: Any = None  # of torch.compile, around the model
        self._along: Along | None = None  # who reads along, and nothing is measured
        self._texts: Any = None  # ids (B, P and more) of the latest generation, and of the latest run
        self._measured_texts: Any = None

    # --- generating -------------------------------------------------------------------------------

    def _generate(self, task: Task, cache: Any, tokens: int, ignore_eos: bool, meter: Any) -> None:
        """Generate up to `tokens` tokens after the prompt; `meter` is told each of them."""
        plan = task.job.plan.generate
        drafts = best_of_drafts(self._best, task.prompt.tokens) if plan.prompt_lookup else contextlib.nullcontext()
        chunks = recompile_limit_kept() if plan.prefill_chunk else contextlib.nullcontext()
        with torch.inference_mode(), symbolic_sizes(plan.shapes), self._compiling.whole_model(plan), drafts, chunks:
            self._texts = self._generating(plan).generate(
                task.prompt.ids,
                attention_mask=task.prompt.mask,
                past_key_values=cache,
                generation_config=self._settings(task.job, tokens, ignore_eos),
                stopping_criteria=StoppingCriteriaList([meter]),
                logits_processor=self._choosing(task),
            )

    def _generating(self, plan: GeneratePlan) -> Any:
        """The model, or what torch.compile(model) returns."""
        if not plan.compile_module:
            return self.model.model
        if self._module is None:
            self._module = torch.compile(self.model.model)
        return self._module

    def _choosing(self, task: Task) -> LogitsProcessorList:
        """What sees the scores of each step: nothing where several tokens are chosen at once."""
        start, found = task.prompt.tokens, LogitsProcessorList()
        if self._given is not None or not task.job.plan.generate.prompt_lookup:
            found.append(BestOfEach(self._best, start, task.job.temperature > 0))
        if self._given is not None:
            found.append(GivenText(self._given, start))
        if self._along is not None and self._along.processor is not None:
            found.append(self._along.processor)
        return found

    def _settings(self, job: Generate, tokens: int, ignore_eos: bool) -> GenerationConfig:
        plan = job.plan.generate
        compiled = compile_config(plan) if plan.cache.fixed else None
        sampling: dict[str, Any] = {"do_sample": False}
        if job.temperature > 0:
            sampling = {
                "do_sample": True,
                "temperature": job.temperature,
                "top_k": job.top_k,
                "top_p": job.top_p,
            }
        return GenerationConfig(
            max_new_tokens=tokens,
            min_new_tokens=None,
            eos_token_id=None if ignore_eos else (self.model.eos or None),
            pad_token_id=self.model.pad,
            disable_compile=compiled is None,
            compile_config=compiled,
            prefill_chunk_size=plan.prefill_chunk or None,
            prompt_lookup_num_tokens=plan.prompt_lookup or None,
            **sampling,
        )

    def _measure(self, task: Task, cache: Any, meter: Meter) -> None:
        with PassCounter(self.model.model, task.job.plan.generate, task.prompt.ids) as self._passes:
            self._generate(task, cache, task.job.max_new_tokens, task.job.ignore_eos, meter)
        self._measured_texts = self._texts

    def _repeat(self, task: Task, steps: int) -> int:
        return self._generate_unmeasured(task, task.prompt, steps)

    def _generate_unmeasured(self, task: Task, prompt: Prompt, tokens: int) -> int:
        """Generate that many tokens; returns in how many passes."""
        again = Task(task.job, prompt, task.length)
        stop = Unmeasured(self._stopping, prompt.ids)
        self._generate(again, self._new_cache(again), tokens, True, stop)
        if prompt is not task.prompt:
            self._best.forget()
        return stop.passes

    def _stopping(self) -> bool:
        """Asked at each step that nobody measures."""
        if self._read is not None:
            self._read()
        return self.cancelled.is_set()

    def tell(self, job: Generate, along: Callable[[Prompt], "Along"]) -> None:
        """Generate one text for somebody who reads along, unmeasured. NotFinite at the end where one was noise."""
        self._kept = None
        task = self._prepare(job)
        self._make_ready(task)
        cache = self._new_cache(task)
        torch.manual_seed(job.seed)
        self._best.forget()
        try:
            self._along = along(task.prompt)
            self._generate(task, cache, job.max_new_tokens, job.ignore_eos, self._along)
        finally:
            self._along = None
        self._compiling.publish()
        self._best.check()

    def likeliest(self, token: int) -> tuple[list[int], list[float]]:
        """Of the custom loop alone: `generate` gives all scores on the way."""
        raise RuntimeError("generate keeps no log-probabilities")

    def probe(self, token_ids: list[int]) -> None:
        """All tokens in one forward pass without a cache, so the sums are ordered as in a prefill."""
        ids = torch.tensor([[*self._prompt, *token_ids]], device=self.model.plan.device)
        with torch.inference_mode():
            logits = self.model.model(input_ids=ids, use_cache=False, logits_to_keep=1).logits[0, -1].float()
        found = logits.topk(2)
        likeliest = found.indices.tolist()
        texts = [self.model.tokenizer.decode([token]) for token in likeliest]
        self.channel.send(Probed(len(token_ids), likeliest, texts, found.values.tolist()))

    def score(self, job: Score) -> None:
        """Everything is as in a run, but for the choice of the next token."""
        ids = token_ids(self.model.tokenizer, job.text)
        task, expected = self._given_task(job, ids)
        self._compiling.begin(job.plan, 1, task.length or task.prompt.tokens)
        vocabulary = scored_ids(self.model.model)
        try:
            self._given = Scores(expected, vocabulary)
            self._warm_up(task)
            self._given = scores = Scores(expected, vocabulary, job.keep, job.against)
            self._best.forget()
            with self.channel.phasing("quality", "reading a given text") as steps:
                self._read = Reading(steps, len(expected))
                self._generate_unmeasured(task, task.prompt, len(expected))
                if self.cancelled.is_set():
                    raise InputError("Stopped.")
                self._finish_given()
                self._best.check()
            self.channel.send(msgspec.structs.replace(scores.scored(), left_bytes=self._left_bytes()))
        finally:
            self._given = self._read = None

    def _left_bytes(self) -> float | None:
        """What runs and texts so far left in the process, without the cache; None where nobody can tell."""
        if not self._own_process or self._clean is None:
            return None
        self._settle = True
        return float(self._memory.settled() - self._cache_bytes(self._caches.kept) - self._clean)

    def _finish_given(self) -> None:
        """Nothing more: `generate` gave all logits on the way."""

    def _given_task(self, job: Score, ids: list[int]) -> tuple[Task, list[int]]:
        """The text's beginning as the prompt of a run, and the tokens that follow. InputError if there are too few."""
        most = max_positions(self.model.model.config) or len(ids)
        expected = ids[job.context : min(job.context + job.positions, most)]
        if len(expected) < MIN_POSITIONS:
            raise InputError(
                f"The text {job.name!r} has {len(ids):,} token{'s' * (len(ids) != 1)} and the model {most:,} "
                f"positions: after {job.context:,} tokens of context that leaves {len(expected)} to predict, and at "
                f"least {MIN_POSITIONS} are needed. Give a longer text, or less context (--context)."
            )
        run = Generate(job.plan, "", 0, len(expected), 1, 0.0, 0, True, True)
        rows = torch.tensor([ids[: job.context]], device=self.model.model.device)
        prompt = pad(Prompt(rows, torch.ones_like(rows)), job.plan.generate.shapes, self.model.pad)
        self._caches.require_groups(job.plan.generate, 1, prompt.tokens)
        length = cache_places(job.plan.generate.shapes, job.context, len(expected))
        return Task(run, prompt, max(length, job.places)), expected

    # --- before the run ---------------------------------------------------------------------------

    def _prepare(self, job: Generate) -> Task:
        plan = job.plan.generate
        read = read_prompt(self.model, job)
        prompt = pad(read, plan.shapes, self.model.pad)
        self._prompt = read.ids[0].tolist()
        self._caches.require_groups(plan, job.batch_size, prompt.tokens)
        return Task(job, prompt, max(cache_places(plan.shapes, read.tokens, job.max_new_tokens), job.places))

    def _new_cache(self, task: Task) -> Any:
        return self._caches.make(task.job.plan.generate, task.prompt.batch_size, task.length)

    def _shape(self, task: Task) -> Any:
        plan = task.job.plan.generate
        length = task.length if plan.cache.static else 0
        return plan, task.prompt.ids.shape, length, self._past_window(task) is not None

    def _past_window(self, task: Task) -> Prompt | None:
        return past_window(task.prompt, self._window_tokens, task.length, task.job.plan.generate.cache)

    def _perform_warm_up(self, task: Task) -> counts.WarmUp:
        """What compiles is a phase of its own."""
        plan = task.job.plan.generate
        warm_up = WarmUp(
            lambda prompt, tokens: self._generate_unmeasured(task, prompt, tokens),
            task.prompt,
            self._past_window(task),
            self._window_tokens,
            task.length,
        )
        if plan.compile_mode:
            with (
                self.channel.phasing("compile", plan.compile_mode) as steps,
                self._compiling.watched(steps, cold=True),
            ):
                warm_up.compile(steps.step, self.cancelled.is_set)
        with self.channel.phasing("warmup") as steps, self._compiling.watched(steps, cold=False):
            warm_up.perform(steps.step, self.cancelled.is_set)
        return warm_up.done

    @property
    def _window_tokens(self) -> int:
        """Tokens that a sliding-window layer attends to; 0 without such layers."""
        config = self.model.model.config.get_text_config(decoder=True)
        return (getattr(config, "sliding_window", None) or 0) if any(self._sliding) else 0

    # --- the run and what came of it --------------------------------------------------------------

    def _new_meter(self, task: Task, cache: Any, sampler: Sampler) -> Meter:
        kind = CudaMeter if self._cuda else Meter
        stop = self.cancelled.is_set
        return kind(cache, self._sliding, task.job.batch_size, sampler, stop, task.prompt.tokens)

    def _window(self, task: Task) -> Window | None:
        """A growing cache keeps one token less than a layer attends to, a static one as many."""
        window, cache = self._window_tokens, task.job.plan.generate.cache
        if not window or not cache.windowed:
            return None
        return Window(task.prompt.tokens, window if cache.static else window - 1)

    @property
    def _tokenizer(self) -> Any:
        return self.model.tokenizer

    def _profiled_steps(self, task: Task) -> int:
        return min(PROFILED_TOKENS, task.job.max_new_tokens)

    def _outcome(self, measured: Measured) -> Outcome:
        ids, meter, streamed = measured.streamer.ids, measured.meter, measured.streamer.text
        text = self.model.tokenizer.decode(ids, skip_special_tokens=True)
        ended = "eos" if len(ids) < measured.task.job.max_new_tokens else "length"
        return Outcome(
            "cancelled" if self.cancelled.is_set() else ended,  # type: ignore[arg-type]
            text if text.startswith(streamed) else streamed,  # viewers already show what was streamed
            meter.seconds(meter.rows[0]) if meter.rows else 0.0,
        )

    def _positions(self, measured: Measured) -> int:
        """Of the cache's tokens, those that were not generated; the last one is never cached."""
        return cached_tokens(measured.cache) - max(0, len(measured.meter.rows) - 1)

    def _own_counts(self, measured: Measured) -> counts.RunCounts:
        job, passes = measured.task.job, self._passes
        drafts = measured.drafts.counts(len(measured.streamer.ids), measured.meter.steps)
        looked_up = measured.drafts.lengths and not job.temperature  # filters of sampling keep drafts out
        if job.prove and looked_up and not self.cancelled.is_set():
            expected, accepted = (self._due(due, measured) for due in (expected_drafts, expected_accepted))
            drafts = msgspec.structs.replace(drafts, due_drafts=expected, due_accepted=accepted)
        found = counts.RunCounts(
            drafts=drafts,
            passes=counts.Passes(
                passes=measured.meter.steps,
                model_positions=passes.positions if passes is not None else None,
                moved_layers=measured.meter.moved_layers() if job.plan.generate.cache.fixed else 0,
            ),
        )
        if passes is not None and passes.read:
            found.prefill = passes.counts()
        return found

    def _due(self, due: Callable[..., int], measured: Measured) -> int:
        job, prompt = measured.task.job, measured.task.prompt.ids[0].tolist()
        eos = () if job.ignore_eos else self.model.eos
        end, most = len(prompt) + job.max_new_tokens, job.plan.generate.prompt_lookup
        return due([*prompt, *measured.streamer.ids], measured.drafts.lengths, most, end, eos)

    def _tokens(self, measured: Measured) -> Finding:
        """Of the first text of a batch, and of the first that parts from it."""
        job, ids = measured.task.job, measured.streamer.ids
        texts = [ids]
        if job.batch_size > 1 and self._measured_texts is not None:
            begin = measured.task.prompt.tokens
            others = self._measured_texts[:, begin : begin + len(ids)].tolist()
            eos = () if job.ignore_eos else self.model.eos
            texts += [one for one in (_to_its_end(ids, eos) for ids in others) if one not in texts][:1]
        every = [Text(self._prompt, one) for one in texts]
        return find_tokens(self.model.model, job.plan, job.temperature > 0, every)


def _to_its_end(ids: list[int], eos: Collection[int]) -> list[int]:
    """Without the padding behind a token that ends the text."""
    end = next((place + 1 for place, one in enumerate(ids) if one in eos), len(ids))
    return ids[:end]


def cached_tokens(cache: Any) -> int:
    """Tokens that a cache has seen, as its layers count them: a window may hold fewer."""
    growing = (layer for layer in cache.layers if hasattr(layer, "get_seq_length"))  # linear attention counts no tokens
    return max((int(layer.get_seq_length()) for layer in growing), default=0)


class Unmeasured(Meter):
    """Lets a generation be ended early; measures nothing. passes: how many the model made so far."""

    def __init__(self, stop: Any, ids: torch.Tensor) -> None:
        self._stop = stop
        self.passes = 0
        self._answers = (
            torch.zeros(ids.shape[0], dtype=torch.bool, device=ids.device),
            torch.ones(ids.shape[0], dtype=torch.bool, device=ids.device),
        )

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        mark_step()
        self.passes += 1
        return self._answers[int(self._stop())]
