"""At least three prompts and three steps, and past the window where the run goes there; no more than that."""

from typing import Any

import pytest
import torch

from tokendyno.backend.plan import DYNAMIC, CacheKind
from tokendyno.backend.worker.prompt import Prompt
from tokendyno.backend.worker.runners import decode
from tokendyno.backend.worker.runners.decode import WarmUp, past_window


def prompt(tokens: int) -> Prompt:
    ids = torch.arange(tokens)[None] + 3
    return Prompt(ids, torch.ones_like(ids))


class Recorder:
    """Records what is generated."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int]] = []
        self.reported: list[float] = []

    def __call__(self, prompt: Prompt, tokens: int) -> None:
        self.calls.append((prompt.tokens, tokens))

    def warm(self, tokens: int, new: int, window: int, compiled: bool = False, cache: CacheKind = DYNAMIC) -> None:
        length, own_prompt = tokens + new, prompt(tokens)
        warm_up = WarmUp(self, own_prompt, past_window(own_prompt, window, length, cache), window, length)
        if compiled:
            warm_up.compile(self.reported.append, lambda: False)
        warm_up.perform(self.reported.append, lambda: False)
        self.counts = warm_up.done


@pytest.mark.parametrize("new", [1, 2, 3, 5, 8, 100])
@pytest.mark.parametrize("tokens", [1, 30, 200])
@pytest.mark.parametrize("window", [0, 9, 128])
@pytest.mark.parametrize("compiled", [False, True])
def test_three_prompts_and_three_steps_at_least_and_past_the_window(
    tokens: int, new: int, window: int, compiled: bool
) -> None:
    recorder = Recorder()
    recorder.warm(tokens, new, window, compiled)
    counts = recorder.counts
    assert len(recorder.calls) >= 3
    assert counts.warmup_steps == sum(n - 1 for _, n in recorder.calls) >= 3
    assert recorder.calls[-1][0] == tokens, "the run's own shape comes last"
    assert all(length + n <= max(tokens + new, tokens + 2) for length, n in recorder.calls), (
        "a static cache has no more"
    )
    reaches = bool(window) and tokens + new > window
    assert bool(counts.warmup_window_steps) is (reaches or (bool(window) and tokens + 2 > window))
    if reaches and new >= 8 and window - 2 <= tokens + new - 8:
        assert counts.warmup_window_steps >= 3


def test_a_run_that_ends_before_the_window_pays_for_none() -> None:
    recorder = Recorder()
    recorder.warm(10, 20, 128)
    assert {length for length, _ in recorder.calls} == {10}


def test_a_long_prompt_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "CHEAP_S", 0.0)
    recorder = Recorder()
    recorder.warm(10, 20, 0)
    assert recorder.calls == [(10, 8)]
    short = Recorder()
    short.warm(10, 2, 0)
    assert short.counts.warmup_steps >= 3, "but three steps are always made"


def test_a_cancel_ends_it() -> None:
    recorder: Any = Recorder()
    answers = iter([False, True, True])
    WarmUp(recorder, prompt(5), None, 0, 100).perform(recorder.reported.append, lambda: next(answers))
    assert len(recorder.calls) == 1
