"""The warm-up of a run: what is made in its shapes before the first token that counts.

At least three prompts and three steps, because the first ones load kernels, choose among them, compile and fill
allocators. And where the run will pass a sliding window, some of them past it: a window that is full is other kernels,
other masks and one more graph. A prompt nearly as long as the window gets there; it costs less than the run itself,
which has to come that far too.
"""

import time
from collections.abc import Callable, MutableMapping
from typing import Any

import torch

from backend.predict.kv import GROUP
from backend.worker.prompt import Prompt

TOKENS = 8
LEAST = 3
CHEAP_S = 1.0
"""A prompt is read three times only if the first time took less. One that takes longer runs each kernel thousands of
times by itself, and would be waited for."""


def past_window(prompt: Prompt, window: int, length: int, cache: str) -> Prompt | None:
    """A prompt that ends just before a window of so many tokens is full; None where the run does not pass it, or begins
    behind it. `length`: tokens of the whole run. Some quantized caches take whole groups alone."""
    if not prompt.tokens < window < length:
        return None
    tokens = max(1, min(window - 2, length - TOKENS))
    if cache.startswith("quantized") and tokens > GROUP:
        tokens -= tokens % GROUP
    ids = prompt.ids[:, :1].repeat(1, tokens)
    return Prompt(ids, torch.ones_like(ids))


class WarmUp:
    """Of one run. Writes what it made into `counts`.

    warmup_prompts, warmup_steps  prompts that were read, and tokens after them
    warmup_window_steps           of these, the ones past the window; 0 where there is none, or the run ends before it

    make      makes so many tokens after a prompt
    """

    def __init__(
        self, make: Callable[[Prompt, int], Any], prompt: Prompt, past: Prompt | None, window: int, length: int,
        counts: MutableMapping[str, float],
    ) -> None:  # fmt: skip
        self._make, self._prompt, self._past, self._window, self._length = make, prompt, past, window, length
        self._counts = counts
        counts.update(warmup_prompts=0.0, warmup_steps=0.0, warmup_window_steps=0.0)

    def compile(self, told: Callable[[float], None], cancelled: Callable[[], bool]) -> None:
        """Once through every shape, the run's own first: what is compiled first is what the others are compared to."""
        prompts = [one for one in (self._prompt, self._past) if one is not None]
        for i, one in enumerate(prompts):
            if not cancelled():
                self._perform(one)
                told((i + 1) / len(prompts))

    def perform(self, told: Callable[[float], None], cancelled: Callable[[], bool]) -> None:
        """Past the window first, so that the run finds memory as its own prompt leaves it."""
        if self._past is not None and not cancelled():
            self._perform(self._past)
            if self._prompt.ids.is_cuda:
                torch.cuda.empty_cache()  # a longer prompt than the run's would count as the run's memory
            told(0.5)
        begin_s = time.perf_counter()
        while not cancelled():
            self._perform(self._prompt)
            few = self._counts["warmup_prompts"] < LEAST and time.perf_counter() - begin_s < CHEAP_S
            if not few and self._counts["warmup_steps"] >= LEAST:
                return
            told(0.5)

    def _perform(self, prompt: Prompt) -> None:
        tokens = max(2, min(max(TOKENS, self._window + TOKENS - 2 - prompt.tokens if prompt is self._past else 0),
                            self._length - prompt.tokens))  # fmt: skip
        try:
            self._make(prompt, tokens)
        except torch.OutOfMemoryError:
            if prompt is self._prompt:
                raise
            self._past = None  # a longer prompt than the run's did not fit: the run itself may
            return
        self._counts["warmup_prompts"] += 1
        self._counts["warmup_steps"] += tokens - 1
        if self._window:
            self._counts["warmup_window_steps"] += max(0, min(tokens - 1, prompt.tokens + tokens - self._window))
