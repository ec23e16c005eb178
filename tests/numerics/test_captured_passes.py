"""Prompts that are read by captured or compiled passes: the text is that of `generate`, whatever was read before, and
the host knows what a replay has done. On a GPU: tests/gpu/test_prefill.py."""

from typing import Any

import pytest
import torch

from tests.support.decode_loop import GREEDY, Told, greedy, prompt
from tests.support.replayed_code import replayed_on_a_cpu
from tests.support.tiny_models import CONFIGS, STATES, WINDOW, tiny
from tokendyno.backend.worker.loop.cache import StaticSlotCache
from tokendyno.backend.worker.loop.loop import DecodeLoop
from tokendyno.backend.worker.loop.sampling import Sampling
from tokendyno.backend.worker.runners.decode import cached_tokens

NEW = 6
TEXTS = (prompt(5), prompt(20), prompt(5), prompt(WINDOW), prompt(WINDOW + 3))
DENSE = [name for name in CONFIGS if name != "gpt_oss"]


class Made:
    """A loop whose steps and prompts are captured, on one cache."""

    def __init__(self, architecture: str, monkeypatch: pytest.MonkeyPatch, length: int = 60) -> None:
        self.model = tiny(architecture)
        self.cache = StaticSlotCache(self.model.config, length)
        self.graphs = replayed_on_a_cpu(monkeypatch, self.model, lambda: self.cache)
        self.loop = DecodeLoop(self.model, 0, [], None, True, {}, prefill_graphs=True)

    def __call__(self, asked: Any, how: Sampling = GREEDY, seed: int = 0, **more: Any) -> Any:
        with torch.inference_mode():
            self.cache.reset()  # as before each run
            return self.loop.generate(asked.ids, asked.mask, self.cache, NEW, Told(), how, seed, True, **more)


@pytest.mark.parametrize("architecture", [*DENSE, *STATES, "zaya"])
def test_the_text_is_that_of_generate_for_every_length_in_any_order(
    architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(architecture, monkeypatch)
    for asked in TEXTS:
        assert torch.equal(made(asked), greedy(made.model, asked, NEW))
        assert cached_tokens(made.cache) - int(made.cache.step) == asked.ids.shape[1]
    assert len(made.graphs.pools) == 1 + 4, "a step, and a prompt of each length"
    assert len(set(map(id, made.graphs.pools[1:]))) == 1 and made.graphs.pools[1] is not None
    assert made.graphs.replays == len(TEXTS) * NEW, "the prompt, and a step for each token after the first"


def test_padded_prompts_have_graphs_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made("llama", monkeypatch)
    for padded in (4, 0, 7, 4):
        asked = prompt(20, 3, padded=padded)
        assert torch.equal(made(asked), greedy(made.model, asked, NEW))
    assert len(made.graphs.pools) == 1 + 2, "with a mask, and without"


def test_the_seed_of_a_sampled_text_is_this_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    made, how = Made("llama", monkeypatch), Sampling(1.0, 20, 0.9)
    plain = DecodeLoop(made.model, 0, [])
    for seed in (1, 2, 1):
        with torch.inference_mode():
            cache = StaticSlotCache(made.model.config, 60)
            wanted = plain.generate(TEXTS[0].ids, TEXTS[0].mask, cache, NEW, Told(), how, seed, True)
        assert torch.equal(made(TEXTS[0], how, seed), wanted)


IN_CI, FULL = pytest.mark.slow, pytest.mark.full
TRACED = [
    pytest.param(name, graphs, marks=IN_CI if (name, graphs) == ("gemma3_text", True) else FULL)
    for name in DENSE
    for graphs in (False, True)
]
"""Gemma 3's windows and norms are the most that a trace meets."""


@pytest.mark.parametrize(("architecture", "graphs"), TRACED)
def test_compiled_passes_are_one_graph_for_each_length_and_give_the_same_text(
    architecture: str, graphs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traced as for any compiler, and run as it is written: Inductor's code is in the full tier and on a GPU."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    plain = torch.compile
    monkeypatch.setattr(torch, "compile", lambda one, mode, dynamic: plain(one, backend="eager", dynamic=dynamic))
    made = Made(architecture, monkeypatch)
    made.loop = DecodeLoop(made.model, 0, [], "default", graphs, {}, prefill_graphs=graphs, prefill_compiled=True)
    for asked in (TEXTS[0], TEXTS[1], TEXTS[0], prompt(20, 1)):
        assert torch.equal(made(asked), greedy(made.model, asked, NEW))
        assert cached_tokens(made.cache) - int(made.cache.step) == asked.ids.shape[1]
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1 + 2, "a step, and a prompt of each length"
    assert not torch._dynamo.utils.counters["graph_break"]
    torch._dynamo.reset()
