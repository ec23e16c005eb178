"""What each of several ranks or devices holds of a run, with its memory over time."""

from collections.abc import Sequence
from typing import Any

from tokendyno.backend.messages import RankMemory
from tokendyno.backend.worker.measure.memory import Sampler
from tokendyno.backend.worker.prove.tensor_bytes import bytes_on, cache_tensors, weight_tensors

SAMPLES = 200
"""About as many memory samples of each are kept."""


def of_rank(weight_bytes: int, kv_bytes: int, sampler: Sampler) -> RankMemory:
    """What this process, one of several ranks, holds."""
    return RankMemory(weight_bytes, kv_bytes, sampler.peak, *_columns(sampler.history))


def of_devices(model: Any, cache: Any, sampler: Sampler) -> list[RankMemory]:
    """What each GPU holds over which the layers of this process are spread."""
    weights, cached, found = list(weight_tensors(model)), list(cache_tensors(cache)), []
    for index, history in enumerate([sampler.history, *sampler.beside]):
        held = bytes_on(weights, index), bytes_on(cached, index), max(size for _, size in history)
        found.append(RankMemory(*held, *_columns(history), of="device"))
    return found


def _columns(history: Sequence[tuple[float, int]]) -> tuple[list[float], list[int]]:
    """Seconds and bytes of some samples."""
    some = history[:: max(1, len(history) // SAMPLES)]
    return [t_s for t_s, _ in some], [size for _, size in some]
