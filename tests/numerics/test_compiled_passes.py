"""Prompts that are read by compiled passes: one graph for each length, and the text of `generate`, whatever was read
before. Captured ones: tests/gpu/test_prefill.py."""

import pytest
import torch

from tests.support.decode_loop import GREEDY, Told, greedy, prompt
from tests.support.tiny_models import CONFIGS, tiny
from tokendyno.backend.worker.loop.cache import StaticSlotCache
from tokendyno.backend.worker.loop.loop import DecodeLoop
from tokendyno.backend.worker.runners.token_loops import cached_tokens

NEW = 6
TRACED = [
    pytest.param(name, marks=pytest.mark.slow if name == "gemma3_text" else pytest.mark.full)
    for name in CONFIGS
    if name != "gpt_oss"
]
"""Gemma 3's windows and norms are the most that a trace meets."""


@pytest.mark.parametrize("architecture", TRACED)
def test_compiled_passes_are_one_graph_for_each_length_and_give_the_same_text(
    architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traced as for any compiler, and run as it is written: Inductor's code is in the full tier and on a GPU."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile
    monkeypatch.setattr(torch, "compile", lambda read, mode, dynamic: compiled(read, backend="eager", dynamic=dynamic))
    model = tiny(architecture)
    cache, loop = StaticSlotCache(model.config, 60), DecodeLoop(model, 0, [], "default", prefill_compiled=True)
    for inputs in (prompt(5), prompt(20), prompt(5), prompt(20, 1)):
        with torch.inference_mode():
            cache.reset()  # as before each run
            ids = loop.generate(inputs.ids, inputs.mask, cache, NEW, Told(), GREEDY, 0, True)
        assert torch.equal(ids, greedy(model, inputs, NEW))
        assert cached_tokens(cache) - int(cache.step) == inputs.ids.shape[1]
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1 + 2, "a step, and a prompt of each length"
    assert not torch._dynamo.utils.counters["graph_break"]
    torch._dynamo.reset()
