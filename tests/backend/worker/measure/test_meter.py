"""A meter notices layers of a static cache that do not stay where they are."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import DynamicCache, StaticCache

from tests.support.tiny_models import tiny
from tokendyno.backend.worker.measure.meter import Meter

STEPS = 20


def moved(cache: Any, spare: dict[int, list[Any]], first: int = 0) -> set[int]:
    """Layers that a run of `STEPS` found moved; from step `first` on, those of `spare` are in one of two places."""
    meter = Meter(cache, [False] * 2, 1, SimpleNamespace(latest=0), lambda: False)
    meter.start()
    for step in range(STEPS):
        for layer in range(2):
            cache.update(torch.zeros(1, 2, 1, 8), torch.zeros(1, 2, 1, 8), layer)
        for layer, places in spare.items() if step >= first else ():
            cache.layers[layer].keys = places[step % 2]
        meter(torch.zeros(1, step + 1, dtype=torch.long), None)
    return meter.moved


@pytest.mark.parametrize("first", [0, 1, STEPS // 2])
@pytest.mark.parametrize("layers", [(0,), (1,), (0, 1)])
def test_a_layer_that_goes_to_and_fro_has_moved(layers: tuple[int, ...], first: int) -> None:
    cache = StaticCache(tiny("llama").config, STEPS)
    spare = {layer: [torch.zeros(1, 2, STEPS, 8) for _ in range(2)] for layer in layers}
    assert moved(cache, spare, first) == set(layers)


def test_a_static_cache_stays_and_a_growing_one_does_not() -> None:
    config = tiny("llama").config
    assert moved(StaticCache(config, STEPS), {}) == set()
    assert moved(DynamicCache(config=config), {}) == {0, 1}
