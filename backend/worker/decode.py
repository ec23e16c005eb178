"""Runs a plan's generation: prompt, cache, warm-up, the measured run."""

import threading
import time
from typing import Any

import torch
from transformers import CompileConfig, DynamicCache, GenerationConfig, StaticCache, StoppingCriteriaList

from backend.errors import InputError
from backend.messages import Finished, Generate, Started
from backend.optimizations import Seen, axes
from backend.plan import GeneratePlan
from backend.worker.evidence import find_all
from backend.worker.loader import Bench
from backend.worker.meter import CudaMeter, Meter, sliding_layers
from backend.worker.outbox import Outbox
from backend.worker.stream import Streamer
from backend.worker.telemetry import MemoryMeter, Sampler

STOCK_SENTENCE = "The quick brown fox jumps over the lazy dog. "
WARMUP_TOKENS = 8


class Decoder:
    """One loaded model's way to make tokens. Keeps what may be used again: warmed shapes, the static cache."""

    def __init__(self, bench: Bench, outbox: Outbox) -> None:
        self.bench, self.outbox = bench, outbox
        self.cancelled = threading.Event()
        self._sliding = sliding_layers(bench.model.config)
        self._meter = MemoryMeter(bench.plan.device)
        self._warm: set[tuple[Any, ...]] = set()
        self._static: tuple[int, int, Any] | None = None

    # --- the prompt -------------------------------------------------------------------------------

    def prompt(self, job: Generate) -> tuple[torch.Tensor, list[str]]:
        """Ids of shape (B, P) on the model's device, and remarks. InputError if they cannot fit."""
        notes = [self.bench.remark] if self.bench.remark else []
        text = job.prompt
        if job.prompt_tokens and not text.strip():
            text = STOCK_SENTENCE
            notes.append(f"synthetic prompt: a stock sentence repeated to {job.prompt_tokens:,} tokens")
        ids = self.bench.tokenizer(text)["input_ids"]
        if not ids:
            raise InputError("The prompt has no tokens. Write some text to continue.")
        if job.prompt_tokens:
            ids = (ids * (job.prompt_tokens // len(ids) + 1))[: job.prompt_tokens]
        most = _max_positions(self.bench.model.config)
        total = len(ids) + job.max_new_tokens
        if most and total > most:
            fewer = f" or ask for at most {most - len(ids):,} new tokens" if len(ids) < most else ""
            raise InputError(
                f"The prompt has {len(ids):,} tokens; with {job.max_new_tokens:,} new ones that is {total:,}, but the "
                f"model has {most:,} positions. Shorten the prompt{fewer}."
            )
        vocab = self.bench.model.get_input_embeddings().weight.shape[0]
        if max(ids) >= vocab:
            raise InputError(
                f"The tokenizer gave id {max(ids)}, but the model has only {vocab} embeddings. This folder's tokenizer "
                "belongs to another model: put the right tokenizer files into it."
            )
        return torch.tensor([ids] * job.batch_size, device=self.bench.model.device), notes

    # --- cache and settings -----------------------------------------------------------------------

    def _cache(self, plan: GeneratePlan, batch_size: int, length: int) -> Any:
        config = self.bench.model.config.get_text_config(decoder=True)
        match plan.cache:
            case "dynamic":
                return DynamicCache(config=config)
            case "unwindowed":
                return DynamicCache()
            case "static":
                # Kept between runs of one shape: compiled graphs hold the addresses of its tensors.
                if self._static is None or self._static[:2] != (batch_size, length):
                    self._static = None
                    self._static = (batch_size, length, StaticCache(config=config, max_cache_len=length))
                else:
                    with torch.inference_mode():
                        self._static[2].reset()
                return self._static[2]

    def _settings(self, job: Generate, tokens: int, ignore_eos: bool) -> GenerationConfig:
        compile_config = None
        if job.plan.generate.compile_mode is not None:
            compile_config = CompileConfig(mode=job.plan.generate.compile_mode)
            compile_config._compile_all_devices = True  # else a CPU is skipped without a word
        sampling: dict[str, Any] = {"do_sample": False}
        if job.temperature > 0:
            sampling = {"do_sample": True, "temperature": job.temperature, "top_k": 0, "top_p": 1.0}
        return GenerationConfig(
            max_new_tokens=tokens,
            min_new_tokens=None,
            eos_token_id=None if ignore_eos else (self.bench.eos or None),
            pad_token_id=self.bench.pad,
            disable_compile=compile_config is None,
            compile_config=compile_config,
            **sampling,
        )

    def _generate(self, ids: torch.Tensor, cache: Any, settings: GenerationConfig, meter: Meter | None) -> torch.Tensor:
        criteria = StoppingCriteriaList([meter] if meter is not None else [])
        with torch.inference_mode():
            out: torch.Tensor = self.bench.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                past_key_values=cache,
                generation_config=settings,
                stopping_criteria=criteria,
            )
        return out

    # --- warm-up and run --------------------------------------------------------------------------

    def _warm_up(self, job: Generate, ids: torch.Tensor, length: int) -> None:
        """Run a few steps in the shapes of the measured run: compiled plans first in a phase of their own, and
        past the sliding window if the run will pass it, because a filled window is one more graph."""
        mode = job.plan.generate.compile_mode
        shape = (job.plan.generate, ids.shape, length if job.plan.generate.cache == "static" else 0)
        if shape in self._warm:
            return
        window = getattr(self.bench.model.config.get_text_config(decoder=True), "sliding_window", None) or 0
        crossing = mode is not None and any(self._sliding) and ids.shape[1] < window < length
        prompts = [ids]
        if crossing:
            most = min(window - 2, length - WARMUP_TOKENS - 2)
            prompts.append(ids[:, :1].repeat(1, most))
        passes = (("compile", mode or ""), ("warmup", "")) if mode is not None else (("warmup", ""),)
        for phase, note in passes:
            with self.outbox.phasing(phase, note) as steps:  # type: ignore[arg-type]
                for i, prompt in enumerate(prompts):
                    if self.cancelled.is_set():
                        return
                    tokens = max(2, min(WARMUP_TOKENS, length - prompt.shape[1]))
                    stop = _Stop(self.cancelled.is_set, prompt)
                    settings = self._settings(job, tokens, ignore_eos=True)
                    self._generate(prompt, self._cache(job.plan.generate, ids.shape[0], length), settings, stop)
                    steps.step((i + 1) / len(prompts))
        if not self.cancelled.is_set():
            self._warm.add(shape)

    def run(self, job: Generate) -> None:
        """Warm up if asked and needed, run once, and send everything up to `Finished`."""
        ids, notes = self.prompt(job)
        length = ids.shape[1] + job.max_new_tokens
        before = {axis.name: axis.baseline(self.bench.model) for axis in axes()}
        if job.warmup:
            self._warm_up(job, ids, length)
        cache = self._cache(job.plan.generate, job.batch_size, length)
        settings = self._settings(job, job.max_new_tokens, job.ignore_eos)
        torch.manual_seed(job.seed)
        sampler = Sampler(self._meter)
        cuda = self.bench.plan.device == "cuda"
        stop = self.cancelled.is_set
        meter = (CudaMeter if cuda else Meter)(cache, self._sliding, job.batch_size, sampler, stop)
        self.outbox.send(Started(ids.shape[1], job.batch_size, job.max_new_tokens, notes))
        streamer = Streamer(meter, sampler, self.bench.tokenizer, self.outbox)
        with self.outbox.phasing("run"):
            if cuda:
                torch.cuda.synchronize()
                torch.cuda.reset_peak_memory_stats()
            sampler.start()
            streamer.start()
            begin_s = time.perf_counter()
            meter.start()
            try:
                self._generate(ids, cache, settings, meter)
            finally:
                if cuda:
                    torch.cuda.synchronize()
                wall_s = time.perf_counter() - begin_s
                sampler.stop()
                streamer.close()
        made = streamer.ids
        text = self.bench.tokenizer.decode(made, skip_special_tokens=True)
        reason = "cancelled" if stop() else "eos" if len(made) < job.max_new_tokens else "length"
        findings = [] if reason == "cancelled" else find_all(Seen(self.bench.model, cache, job.plan), before)
        extra = {"weight_bytes": float(self.bench.weight_bytes)}
        if cuda:
            extra["allocator_peak_bytes"] = float(torch.cuda.max_memory_allocated())
            extra["allocator_reserved_bytes"] = float(torch.cuda.max_memory_reserved())
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
                extra=extra,
            )
        )


class _Stop(Meter):
    """Ends a warm-up early when the run is cancelled; measures nothing."""

    def __init__(self, stop: Any, ids: torch.Tensor) -> None:
        self._asked = stop
        self._answers = (
            torch.zeros(ids.shape[0], dtype=torch.bool, device=ids.device),
            torch.ones(ids.shape[0], dtype=torch.bool, device=ids.device),
        )

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        return self._answers[int(self._asked())]


def _max_positions(config: Any) -> int:
    text = config.get_text_config(decoder=True)
    return int(getattr(text, "max_position_embeddings", None) or getattr(text, "n_positions", None) or 0)
