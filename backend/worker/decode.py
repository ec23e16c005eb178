"""Runs a plan's generation: prompt, cache, warm-up, the measured run."""

import functools
import threading
import time
from typing import Any

import torch
from transformers import GenerationConfig, StoppingCriteriaList

from backend.messages import Finished, Generate, Started
from backend.optimizations import Seen, axes
from backend.optimizations.base import Trace
from backend.optimizations.held import bytes_by_device
from backend.optimizations.lengths import cache_places
from backend.plan import GeneratePlan
from backend.worker.busy import step_busy_s
from backend.worker.caches import Caches
from backend.worker.compiling import Compiling, compile_config
from backend.worker.evidence import find_all
from backend.worker.loader import Bench
from backend.worker.lookups import Lookups
from backend.worker.marks import Marks, Window
from backend.worker.meter import CudaMeter, LateMeter, Meter, sliding_layers
from backend.worker.outbox import Outbox
from backend.worker.own import OwnLoop
from backend.worker.prompt import Prompt, read_prompt
from backend.worker.sampling import Sampling
from backend.worker.shapes import pad, padding_counts, sizes
from backend.worker.stream import Streamer
from backend.worker.telemetry import MemoryMeter, Sampler
from backend.worker.trace import trace
from backend.worker.warmup import WarmUp, past_window

TRACE_TOKENS = 4


class Decoder:
    """One loaded model's way to make tokens. Keeps what may be used again: warmed shapes, the static cache."""

    def __init__(self, bench: Bench, outbox: Outbox) -> None:
        self.bench, self.outbox = bench, outbox
        self.cancelled = threading.Event()
        self.counts: dict[str, float] = dict(bench.counts)
        self._caches = Caches(bench.model.config)
        self._sliding = sliding_layers(bench.model.config)
        self._own = OwnLoop(bench.model, bench.pad, bench.eos, self.counts)
        self._compiling = Compiling(bench.model, self.counts)
        self._meter = MemoryMeter(bench.plan.device)
        self._warm: dict[tuple[Any, ...], dict[str, float]] = {}  # what was warmed up -> with how much

    @property
    def _cuda(self) -> bool:
        return self.bench.plan.device == "cuda"

    # --- settings and the loop --------------------------------------------------------------------

    def _settings(self, job: Generate, tokens: int, ignore_eos: bool) -> GenerationConfig:
        compiled = compile_config(job.plan.generate)
        sampling: dict[str, Any] = {"do_sample": False}
        if job.temperature > 0:
            sampling = {
                "do_sample": True, "temperature": job.temperature, "top_k": job.top_k, "top_p": job.top_p,
            }  # fmt: skip
        return GenerationConfig(
            max_new_tokens=tokens,
            min_new_tokens=None,
            eos_token_id=None if ignore_eos else (self.bench.eos or None),
            pad_token_id=self.bench.pad,
            disable_compile=compiled is None,
            compile_config=compiled,
            prompt_lookup_num_tokens=job.plan.generate.prompt_lookup or None,
            **sampling,
        )

    def _generate(
        self, job: Generate, prompt: Prompt, length: int, tokens: int, ignore_eos: bool, meter: Meter, cache: Any = None
    ) -> torch.Tensor:
        """Make up to `tokens` tokens after `prompt`, told to `meter` one by one; ids of shape (B, P + made)."""
        if cache is None:
            cache = self._caches.make(job.plan.generate, prompt.batch_size, length)
        if job.plan.generate.loop == "own":
            sampling = Sampling(job.temperature, job.top_k, job.top_p)
            with torch.inference_mode():
                return self._own.generate(
                    job.plan.generate, sampling, job.seed, prompt, cache, tokens, ignore_eos, meter
                )
        with torch.inference_mode(), sizes(job.plan.generate.shapes):
            out: torch.Tensor = self.bench.model.generate(
                prompt.ids,
                attention_mask=prompt.mask,
                past_key_values=cache,
                generation_config=self._settings(job, tokens, ignore_eos),
                stopping_criteria=StoppingCriteriaList([meter]),
            )
        return out

    # --- warm-up and run --------------------------------------------------------------------------

    def _warm_up(self, job: Generate, prompt: Prompt, length: int) -> None:
        """Make what a `WarmUp` makes in the shapes of the measured run; what compiles is a phase of its own."""
        plan = job.plan.generate
        shape: tuple[Any, ...] = (plan, prompt.ids.shape, length if "static" in plan.cache else 0)
        past = past_window(prompt, self._window, length, plan.cache)
        shape += (past is not None,)
        if plan.loop == "own":  # which keeps one step, for one way of sampling
            shape += (job.temperature, job.top_k, job.top_p)
            self._warm = {kept: counts for kept, counts in self._warm.items() if kept == shape}
        if shape in self._warm:
            self.counts |= self._warm[shape]
            return
        made: dict[str, float] = {}
        warming = WarmUp(lambda one, n: self._make(job, one, length, n), prompt, past, self._window, length, made)
        if plan.compile_mode:
            with (
                self.outbox.phasing("compile", plan.compile_mode) as steps,
                self._compiling.watched(steps, cold=True),
            ):
                warming.compile(steps.step, self.cancelled.is_set)
        with self.outbox.phasing("warmup") as steps, self._compiling.watched(steps, cold=False):
            warming.perform(steps.step, self.cancelled.is_set)
        self.counts |= made
        if not self.cancelled.is_set():
            self._compiling.warmed_up()
            self._warm[shape] = made

    @property
    def _window(self) -> int:
        """Tokens that a sliding layer sees, 0 where none slides."""
        config = self.bench.model.config.get_text_config(decoder=True)
        return (getattr(config, "sliding_window", None) or 0) if any(self._sliding) else 0

    def _fills(self, plan: GeneratePlan, prompt: Prompt) -> Window | None:
        """When the window is full: a growing cache keeps one token less than a layer sees, a static one as many."""
        if not self._window or plan.cache == "unwindowed":
            return None
        return Window(prompt.ids.shape[1], self._window if "static" in plan.cache else self._window - 1)

    def run(self, job: Generate) -> None:
        """Warm up if asked and needed, run once, and send everything up to `Finished`."""
        plan = job.plan.generate
        read = read_prompt(self.bench, job)
        prompt = pad(read, plan.shapes, self.bench.pad)
        length = cache_places(plan.shapes, read.tokens, job.max_new_tokens)
        self._caches.require_groups(plan, job.batch_size, prompt.tokens)
        before = {axis.name: axis.baseline(self.bench.model) for axis in axes()}
        settings = self._compiling.settings
        notes = prompt.notes + self._compiling.begin(job.plan, job.batch_size, length)
        if self._compiling.settings != settings:
            self._warm.clear()
        if job.warmup:
            self._warm_up(job, prompt, length)
        cache = self._caches.make(job.plan.generate, job.batch_size, length)
        torch.manual_seed(job.seed)
        sampler = Sampler(self._meter)
        stop = self.cancelled.is_set
        kind: Any = functools.partial(CudaMeter if self._cuda else Meter, prompt_tokens=prompt.tokens)
        if job.plan.generate.loop == "own":
            kind = functools.partial(LateMeter, cuda=self._cuda)
        meter = kind(cache, self._sliding, job.batch_size, sampler, stop)
        self.outbox.send(Started(prompt.tokens, job.batch_size, job.max_new_tokens, notes, length))
        marks = Marks(lambda: len(meter.rows), self._fills(plan, prompt), self._cuda)
        streamer = Streamer(meter, sampler, self.bench.tokenizer, self.outbox, marks)
        with self.outbox.phasing("run"), Lookups() as lookups:
            if self._cuda:
                torch.cuda.synchronize()
                torch.cuda.reset_peak_memory_stats()
            sampler.start()
            streamer.start()
            begin_s = time.perf_counter()
            meter.start()
            marks.start(begin_s)
            try:
                self._generate(job, prompt, length, job.max_new_tokens, job.ignore_eos, meter, cache)
            finally:
                if self._cuda:
                    torch.cuda.synchronize()
                wall_s = time.perf_counter() - begin_s
                marks.stop()
                sampler.stop()
                streamer.close()
        extra = {"weight_bytes": float(self.bench.weight_bytes)} | sampler.figures()
        made = streamer.ids
        text = self.bench.tokenizer.decode(made, skip_special_tokens=True)
        reason = "cancelled" if stop() else "eos" if len(made) < job.max_new_tokens else "length"
        compiled = self._compiling.ledger()
        counts = self.counts | lookups.counts(len(made), meter.steps) | padding_counts(prompt)
        counts |= {f"kv_{device}_bytes": float(size) for device, size in bytes_by_device(cache).items()}
        findings = []
        if job.prove and reason != "cancelled":
            once_more = functools.cache(lambda: self._trace(job, prompt, length))
            seen = Seen(self.bench.model, cache, job.plan, None, once_more, counts)
            with self.outbox.phasing("prove") as steps:
                findings = find_all(seen, before, steps.step)
                if self._cuda:
                    extra |= step_busy_s(lambda n: self._make(job, prompt, length, n), job.max_new_tokens)
        self.outbox.send(
            Finished(
                reason=reason,  # type: ignore[arg-type]
                text=text if text.startswith(streamer.text) else streamer.text,  # viewers hold its beginning
                ttft_s=meter.seconds(meter.rows[0]) if meter.rows else 0.0,
                wall_s=wall_s,
                peak_memory_bytes=sampler.peak,
                memory_label=self._meter.label,
                clock=meter.clock,
                findings=findings,
                extra=extra | counts,
                compiled=compiled,
            )
        )

    def _trace(self, job: Generate, prompt: Prompt, length: int) -> Trace:
        """A few tokens once more under the profiler, in the shapes of the run and with a fresh cache."""
        tokens = min(TRACE_TOKENS, job.max_new_tokens)
        return trace(lambda: self._make(job, prompt, length, tokens), self._cuda)

    def _make(self, job: Generate, prompt: Prompt, length: int, tokens: int) -> int:
        """So many tokens that nobody measures, in the shapes of the run and with a fresh cache; returns how many."""
        self._generate(job, prompt, length, tokens, True, _Unmeasured(self.cancelled.is_set, prompt.ids))
        return tokens


class _Unmeasured(Meter):
    """Lets a generation be ended early; measures nothing."""

    def __init__(self, stop: Any, ids: torch.Tensor) -> None:
        self._asked = stop
        self._answers = (
            torch.zeros(ids.shape[0], dtype=torch.bool, device=ids.device),
            torch.ones(ids.shape[0], dtype=torch.bool, device=ids.device),
        )

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        return self._answers[int(self._asked())]

    def mark(self) -> None:
        """For the own loop, which says by itself when a token was made."""

    def tell(self, mark: Any, token: int) -> None:
        """The same."""

    def stopping(self) -> bool:
        """The same."""
        return bool(self._asked())
