"""Runs a plan's generation: prompt, cache, warm-up, the measured run."""

import functools
import threading
import time
from typing import Any

import torch
from transformers import CompileConfig, GenerationConfig, StoppingCriteriaList

from backend.messages import Finished, Generate, Started
from backend.optimizations import Seen, axes
from backend.optimizations.base import Trace
from backend.worker.caches import Caches
from backend.worker.evidence import find_all
from backend.worker.loader import Bench
from backend.worker.meter import CudaMeter, Meter, sliding_layers
from backend.worker.outbox import Outbox
from backend.worker.prompt import Prompt, read_prompt
from backend.worker.stream import Streamer
from backend.worker.telemetry import MemoryMeter, Sampler
from backend.worker.trace import trace

WARMUP_TOKENS = 8
TRACE_TOKENS = 4


class Decoder:
    """One loaded model's way to make tokens. Keeps what may be used again: warmed shapes, the static cache."""

    def __init__(self, bench: Bench, outbox: Outbox) -> None:
        self.bench, self.outbox = bench, outbox
        self.cancelled = threading.Event()
        self.counts: dict[str, float] = {}
        self._caches = Caches(bench.model.config)
        self._sliding = sliding_layers(bench.model.config)
        self._meter = MemoryMeter(bench.plan.device)
        self._warm: set[tuple[Any, ...]] = set()

    @property
    def _cuda(self) -> bool:
        return self.bench.plan.device == "cuda"

    # --- settings and the loop --------------------------------------------------------------------

    def _settings(self, job: Generate, tokens: int, ignore_eos: bool) -> GenerationConfig:
        compile_config = None
        if job.plan.generate.compile_mode is not None:
            compile_config = CompileConfig(mode=job.plan.generate.compile_mode)
            compile_config._compile_all_devices = True  # else a CPU is skipped without a word
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
            disable_compile=compile_config is None,
            compile_config=compile_config,
            **sampling,
        )

    def _generate(
        self, job: Generate, prompt: Prompt, length: int, tokens: int, ignore_eos: bool, meter: Meter, cache: Any = None
    ) -> torch.Tensor:
        """Make up to `tokens` tokens after `prompt`, told to `meter` one by one; ids of shape (B, P + made)."""
        if cache is None:
            cache = self._caches.make(job.plan.generate, prompt.batch_size, length)
        with torch.inference_mode():
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
        """Run a few steps in the shapes of the measured run: compiled plans first in a phase of their own, and
        past the sliding window if the run will pass it, because a filled window is one more graph."""
        plan = job.plan.generate
        shape = (plan, prompt.ids.shape, length if "static" in plan.cache else 0)
        if shape in self._warm:
            return
        window = getattr(self.bench.model.config.get_text_config(decoder=True), "sliding_window", None) or 0
        crossing = plan.compile_mode is not None and any(self._sliding) and prompt.tokens < window < length
        prompts = [prompt]
        if crossing:
            most = min(window - 2, length - WARMUP_TOKENS - 2)
            longer = prompt.ids[:, :1].repeat(1, most)
            prompts.append(Prompt(longer, torch.ones_like(longer)))
        passes = (("compile", plan.compile_mode), ("warmup", "")) if plan.compile_mode else (("warmup", ""),)
        for phase, note in passes:
            with self.outbox.phasing(phase, note) as steps:  # type: ignore[arg-type]
                for i, one in enumerate(prompts):
                    if self.cancelled.is_set():
                        return
                    tokens = max(2, min(WARMUP_TOKENS, length - one.tokens))
                    self._generate(job, one, length, tokens, True, _Unmeasured(self.cancelled.is_set, one.ids))
                    steps.step((i + 1) / len(prompts))
        if not self.cancelled.is_set():
            self._warm.add(shape)

    def run(self, job: Generate) -> None:
        """Warm up if asked and needed, run once, and send everything up to `Finished`."""
        prompt = read_prompt(self.bench, job)
        length = prompt.tokens + job.max_new_tokens
        before = {axis.name: axis.baseline(self.bench.model) for axis in axes()}
        if job.warmup:
            self._warm_up(job, prompt, length)
        cache = self._caches.make(job.plan.generate, job.batch_size, length)
        torch.manual_seed(job.seed)
        sampler = Sampler(self._meter)
        stop = self.cancelled.is_set
        meter = (CudaMeter if self._cuda else Meter)(cache, self._sliding, job.batch_size, sampler, stop)
        self.outbox.send(Started(prompt.tokens, job.batch_size, job.max_new_tokens, prompt.notes))
        streamer = Streamer(meter, sampler, self.bench.tokenizer, self.outbox)
        with self.outbox.phasing("run"):
            if self._cuda:
                torch.cuda.synchronize()
                torch.cuda.reset_peak_memory_stats()
            sampler.start()
            streamer.start()
            begin_s = time.perf_counter()
            meter.start()
            try:
                self._generate(job, prompt, length, job.max_new_tokens, job.ignore_eos, meter, cache)
            finally:
                if self._cuda:
                    torch.cuda.synchronize()
                wall_s = time.perf_counter() - begin_s
                sampler.stop()
                streamer.close()
        extra = {"weight_bytes": float(self.bench.weight_bytes)}
        if self._cuda:
            extra["allocator_peak_bytes"] = float(torch.cuda.max_memory_allocated())
            extra["allocator_reserved_bytes"] = float(torch.cuda.max_memory_reserved())
        made = streamer.ids
        text = self.bench.tokenizer.decode(made, skip_special_tokens=True)
        reason = "cancelled" if stop() else "eos" if len(made) < job.max_new_tokens else "length"
        findings = []
        if reason != "cancelled":
            once_more = functools.cache(lambda: self._trace(job, prompt, length))
            seen = Seen(self.bench.model, cache, job.plan, None, once_more, self.counts)
            findings = find_all(seen, before)
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
                extra=extra | self.counts,
            )
        )

    def _trace(self, job: Generate, prompt: Prompt, length: int) -> Trace:
        """A few tokens once more under the profiler, in the shapes of the run and with a fresh cache."""
        tokens = min(TRACE_TOKENS, job.max_new_tokens)

        def make() -> int:
            self._generate(job, prompt, length, tokens, True, _Unmeasured(self.cancelled.is_set, prompt.ids))
            return tokens

        return trace(make, self._cuda)


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
