"""Creates the KV cache that a plan asks for."""

from collections.abc import Callable
from typing import Any

import torch

from tokendyno.backend.errors import InputError
from tokendyno.backend.optimizations.axes.cache import CONFIG, LENGTH, cache_construct
from tokendyno.backend.plan import GeneratePlan
from tokendyno.backend.predict.kv import GROUP
from tokendyno.backend.worker.patch.quantized import saturate_fp8_cache, unpack_with_torch


class Caches:
    """Caches of one model. A static one on the device is kept between runs of the same shape: compiled and captured
    graphs hold the addresses of its tensors. `fixed`: builds it from config, length and whether it is in 8 bits,
    instead of what the plan's kind says.
    """

    def __init__(self, config: Any, fixed: Callable[[Any, int, bool], Any] | None = None) -> None:
        self._config = config.get_text_config(decoder=True)
        self._build_fixed = fixed
        self._cached: tuple[tuple[str, int, int], Any] | None = None

    @property
    def cached(self) -> Any:
        """The static cache that is kept; None without one."""
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
        """InputError if the keys of a prompt do not divide into whole quantization groups. hqq groups the batch
        together, optimum-quanto each row; later the cache quantizes 128 tokens at a time, which always divide."""
        if not plan.cache.grouped:
            return
        config = self._config
        head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        numbers = head * (getattr(config, "num_key_value_heads", None) or config.num_attention_heads)
        rows = batch_size if plan.cache.backend == "hqq" else 1
        if prompt_tokens * numbers * rows % GROUP:
            raise InputError(
                f"This cache is quantized in groups of {GROUP} numbers, but {prompt_tokens:,} prompt tokens with "
                f"{numbers} numbers each do not divide evenly into groups. Use a prompt length that is a multiple of "
                f"{GROUP} tokens (--prompt-tokens), or cache=quantized-fp8."
            )


def cached_tokens(cache: Any) -> int:
    """Tokens that a cache has seen, as its layers count them: a window may hold fewer."""
    growing = (layer for layer in cache.layers if hasattr(layer, "get_seq_length"))  # linear attention counts no tokens
    return max((int(layer.get_seq_length()) for layer in growing), default=0)
