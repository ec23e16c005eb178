"""The warm-up of a run: what its shapes need is loaded, chosen, compiled and allocated before it is measured.

At least three prompts and three decode steps, because the first ones load kernels, choose among them, compile and fill
allocators. Where the run will pass a sliding window, some of these steps are past it: a full window needs other
kernels, other masks and one more graph. A prompt almost as long as the window gets there; that costs less than the run
itself, which has to get as far.
"""

import time
from collections.abc import Callable
from typing import Any

import torch

from tokendyno.backend import counts
from tokendyno.backend.plan import CacheKind
from tokendyno.backend.predict import lengths
from tokendyno.backend.predict.kv import GROUP
from tokendyno.backend.predict.lengths import WARM_UP_PROMPTS, warm_up_tokens
from tokendyno.backend.worker.group import own_group
from tokendyno.backend.worker.prompt import Prompt

CHEAP_S = 1.0
"""The prompt is prefilled three times only if the first time took less than this. A longer one runs each kernel
thousands of times anyway, and somebody would wait for it."""


def past_window(prompt: Prompt, window: int, length: int, cache: CacheKind) -> Prompt | None:
    """A prompt that ends just before a window of that many tokens is full; None where the run never fills it, or its
    own prompt does. `length`: tokens of the whole run. Some quantized caches need whole groups."""
    tokens = lengths.past_window(prompt.tokens, window, length, GROUP if cache.quantized else 1)
    if not tokens:
        return None
    ids = prompt.ids[:, :1].repeat(1, tokens)
    return Prompt(ids, torch.ones_like(ids))


class WarmUp:
    """The warm-up of one run.

    generate  generates that many tokens after a prompt
    """

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
        try:
            self._generate(prompt, tokens)
        except torch.OutOfMemoryError:
            if prompt is self._prompt:
                raise
            self._past = None  # a longer prompt than the run's did not fit: the run itself may
            return
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
