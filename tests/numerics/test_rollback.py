"""Steps that the cache of the custom decode loop has undone leave no trace in the tokens that follow."""

from typing import Any

import pytest
import torch

from tests.support.decode_loop import greedy, prompt
from tests.support.tiny_models import WINDOW, tiny
from tokendyno.backend.worker.loop.cache import StaticSlotCache
from tokendyno.backend.worker.loop.sampling import Sampling
from tokendyno.backend.worker.loop.step import Step

UNDO, LENGTH = 3, 60
TOGETHER = 12
"""Steps before and after: a window of 8 is past its end once more."""


def begun(model: Any, inputs: Any) -> Step:
    step = Step(model, StaticSlotCache(model.config, LENGTH, undo=UNDO), inputs.batch_size, Sampling(), 0)
    step.begin(inputs.ids, inputs.mask, 0, [])
    return step


def taken(step: Step, steps: int) -> None:
    for _ in range(steps):
        step()


def contents(cache: StaticSlotCache) -> list[Any]:
    """What is read of a cache: all but slots that are not filled."""
    tensors = [cache.counters, *(slots.mask for slots in cache.slots)]
    for layer in cache.layers:
        for name in ("conv_states", "recurrent_states"):
            tensors += getattr(layer, name, {}).values()
        if hasattr(layer, "slots"):
            before = layer.slots.filled.index_fill(1, layer.slots.current, False)[:, None, :, None]
            tensors += [torch.where(before, tensor, 0) for tensor in (layer.keys, layer.values)]
    return [tensor.clone() for tensor in tensors if tensor is not None]


@pytest.mark.parametrize("attention", [None, "eager"])
@pytest.mark.parametrize("architecture", ["olmo3", "lfm2", "qwen3_5_text", "falcon_h1", "nemotron_h", "zaya"])
def test_undone_steps_leave_no_trace(architecture: str, attention: str | None) -> None:
    """In a ring that has turned, one that turns in the undone steps, and one with padding in it."""
    model = tiny(architecture, attention)
    for inputs, before in ((prompt(20, 3, padded=4), 2), (prompt(5), 2), (prompt(WINDOW, 3, padded=5), 0)):
        with torch.inference_mode():
            never, step = begun(model, inputs), begun(model, inputs)
            taken(never, before)
            expected = contents(never.cache)
            for undone in (UNDO, 1, 0, 2):
                taken(step, before - int(step.cache.step))
                step.token.fill_(50)  # another text than what follows
                taken(step, undone)
                step.cache.rollback(undone)
                for tensor, untouched in zip(contents(step.cache), expected, strict=True):
                    assert torch.equal(tensor, untouched), undone
                step.positions.copy_(never.positions)
                step.token.copy_(never.token)
            taken(step, TOGETHER - before)
            assert torch.equal(step.out[:TOGETHER].T, greedy(model, inputs, TOGETHER)[:, inputs.ids.shape[1] :])


@pytest.mark.parametrize("steps", [UNDO + 1, -1])
def test_more_steps_than_are_kept_are_refused(steps: int) -> None:
    with torch.inference_mode():
        step = begun(tiny("llama"), prompt(5))
        taken(step, 8)
        with pytest.raises(ValueError, match="8 were taken, and 3 are kept"):
            step.cache.rollback(steps)
