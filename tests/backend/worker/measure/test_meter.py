"""Rows of tokens, also of several in one step, and layers of a static cache that do not stay where they are."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import DynamicCache, StaticCache

from tests.support.tiny_models import tiny
from tokendyno.backend.worker.measure.meter import Meter
from tokendyno.backend.worker.measure.stream import latencies_s

STEPS = 20


def moved(cache: Any, spare: dict[int, list[Any]], first: int = 0) -> int:
    """Layers that have moved in a run of `STEPS`; from step `first` on, those of `spare` are in one of two places."""
    meter = Meter(cache, [False] * 2, 1, SimpleNamespace(latest=0), lambda: False)
    meter.start()
    for step in range(STEPS):
        for layer in range(2):
            cache.update(torch.zeros(1, 2, 1, 8), torch.zeros(1, 2, 1, 8), layer)
        for layer, places in spare.items() if step >= first else ():
            cache.layers[layer].keys = places[step % 2]
        meter(torch.zeros(1, step + 1, dtype=torch.long), None)
    return meter.moved_layers()


@pytest.mark.parametrize("first", [0, 1, STEPS // 2])
@pytest.mark.parametrize("layers", [(0,), (1,), (0, 1)])
def test_a_layer_that_goes_to_and_fro_has_moved(layers: tuple[int, ...], first: int) -> None:
    cache = StaticCache(tiny("llama").config, STEPS)
    spare = {layer: [torch.zeros(1, 2, STEPS, 8) for _ in range(2)] for layer in layers}
    assert moved(cache, spare, first) == len(layers)


def test_a_static_cache_stays_and_a_growing_one_does_not() -> None:
    config = tiny("llama").config
    assert moved(StaticCache(config, STEPS), {}) == 0
    assert moved(DynamicCache(config=config), {}) == 2


# --- several tokens in one step ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("t_s", "last_s", "prefill", "expected"),
    [
        ([1.0, 1.5, 2.5], 0.0, True, [1.0, 0.5, 1.0]),
        ([2.0, 2.0, 3.0, 3.0, 3.0], 1.0, False, [0.5, 0.5, 1 / 3, 1 / 3, 1 / 3]),
        ([1.0, 1.0, 3.0], 0.0, True, [1.0, 0.0, 2.0]),
        ([4.0], 3.0, False, [1.0]),
        ([], 3.0, False, []),
    ],
)
def test_a_step_is_shared_by_its_tokens(t_s: list[float], last_s: float, prefill: bool, expected: list[float]) -> None:
    latencies = latencies_s(t_s, last_s, prefill)
    assert latencies == pytest.approx(expected)
    assert sum(latencies) == pytest.approx(t_s[-1] - last_s if t_s else 0)


def metered(lengths: list[int], prompt_tokens: int, cache: Any = None) -> Meter:
    """A meter that saw texts of these lengths, one after the other."""
    cache = cache or DynamicCache()
    meter = Meter(cache, [False], 1, SimpleNamespace(latest=7), lambda: False, prompt_tokens)
    meter.start()
    for length in lengths:
        before = cache.get_seq_length()
        new = torch.zeros(1, 1, length - 1 - before, 8)
        cache.update(new, new, 0)
        meter(torch.arange(length)[None], None)
    return meter


def test_every_token_of_a_step_is_a_row_with_its_own_id() -> None:
    meter = metered([6, 7, 10, 11], 4)
    assert meter.tokens(0, meter.ready()) == [4, 5, 6, 7, 8, 9, 10]
    assert meter.steps == 4
    times = [meter.seconds(row) for row in meter.rows]
    assert times[0] == times[1] < times[2] < times[3] == times[4] == times[5] < times[6]
    token_bytes = 2 * 8 * 4
    assert [row.kv.full for row in meter.rows] == [token_bytes * cached for cached in (5, 5, 6, 9, 9, 9, 10)]
