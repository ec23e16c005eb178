"""Rows of tokens, also of several in one step."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import DynamicCache

from tokendyno.backend.worker.measure.meter import Meter
from tokendyno.backend.worker.measure.stream import latencies_s


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
