"""Takes the time of every token where the token exists, inside `generate`, and the bytes of the cache.

`generate` calls its stopping criteria right after a token was chosen. On a CPU the token then exists and a
clock is read. On CUDA it exists when the device gets there: an event is recorded in the stream, without
waiting. Its time is read later and the ids are copied in batches, by another thread on another stream.
"""

import time
from dataclasses import dataclass
from typing import Any

import torch
from transformers import StoppingCriteria
from transformers.cache_utils import DynamicCache, DynamicSlidingWindowLayer

COUNT_ALL_EVERY = 64


@dataclass(slots=True)
class Row:
    """One token as it was seen: `mark` is a time in seconds or a CUDA event, by the meter's clock."""

    mark: Any
    token: int
    kv_sliding: int
    kv_full: int
    memory_bytes: int


def sliding_layers(config: Any) -> list[bool]:
    """For each layer that caches anything, whether it slides: as transformers itself reads the config."""
    fresh = DynamicCache(config=config.get_text_config(decoder=True))
    return [isinstance(layer, DynamicSlidingWindowLayer) for layer in fresh.layers]


class Meter(StoppingCriteria):  # type: ignore[misc]
    """Watches one generation. `rows` grows from the generating thread; other threads read a prefix of it.

    sampler   has `latest`, the newest memory sample
    stop      called before each token's answer: True ends the generation with this token
    """

    clock = "host clock after the step"

    def __init__(self, cache: Any, sliding: list[bool], batch_size: int, sampler: Any, stop: Any) -> None:
        self.rows: list[Row] = []
        self._cache, self._sliding, self._sampler, self._stop = cache, sliding, sampler, stop
        self._go = torch.zeros(batch_size, dtype=torch.bool)
        self._end = torch.ones(batch_size, dtype=torch.bool)
        self._pairs: tuple[list[tuple[Any, int]], list[tuple[Any, int]]] | None = None
        self._uneven = False
        self.begin: Any = None

    def start(self) -> None:
        """Time 0 is now."""
        self.begin = time.perf_counter()

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """Shapes: input_ids (B, length so far); returns (B,) bool, True = finished."""
        mark = time.perf_counter()
        sliding, full = self._held()
        self.rows.append(Row(mark, int(input_ids[0, -1]), sliding, full, self._sampler.latest))
        return self._end if self._stop() else self._go

    def _held(self) -> tuple[int, int]:
        """(sliding, full) bytes in the cache's tensors now.

        Layers of one kind hold equally much: one of each is read and multiplied. All are counted for the first two
        tokens and then for every 64th; a cache for which this does not hold is counted whole from there on.
        """
        n = len(self.rows)
        if self._pairs is None or n < 2 or n % COUNT_ALL_EVERY == 0:
            return self._count_all()
        sliding, full = (sum(_bytes(layer) * many for layer, many in pairs) for pairs in self._pairs)
        return sliding, full

    def _count_all(self) -> tuple[int, int]:
        layers = list(zip(self._cache.layers, self._sliding, strict=False))
        kinds = [[layer for layer, slides in layers if slides], [layer for layer, slides in layers if not slides]]
        even = all(len({_bytes(layer) for layer in kind}) <= 1 for kind in kinds)
        self._uneven = self._uneven or not even
        sliding, full = ([(kind[0], len(kind))] if kind else [] for kind in kinds)
        self._pairs = None if self._uneven else (sliding, full)
        return sum(map(_bytes, kinds[0])), sum(map(_bytes, kinds[1]))

    def ready(self) -> int:
        """How many rows, from the first, can be read now. May wait for the device, never for the next token."""
        return len(self.rows)

    def seconds(self, row: Row) -> float:
        """When a row's token existed, since `start`."""
        return float(row.mark - self.begin)

    def tokens(self, first: int, end: int) -> list[int]:
        """Ids of tokens `first` to `end`, which the last `ready` allowed."""
        return [row.token for row in self.rows[first:end]]


class CudaMeter(Meter):
    """The same with device events; never synchronizes on the measured path."""

    clock = "CUDA events"

    def __init__(self, cache: Any, sliding: list[bool], batch_size: int, sampler: Any, stop: Any) -> None:
        super().__init__(cache, sliding, batch_size, sampler, stop)
        self._go, self._end = self._go.cuda(), self._end.cuda()
        self._aside = torch.cuda.Stream()
        self._newest: tuple[int, Any] | None = None
        self._read: tuple[int, Any] = (0, None)

    def start(self) -> None:
        self.begin = torch.cuda.Event(enable_timing=True)
        self.begin.record()

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        mark = torch.cuda.Event(enable_timing=True)
        mark.record()
        sliding, full = self._held()
        self.rows.append(Row(mark, 0, sliding, full, self._sampler.latest))
        self._newest = (len(self.rows), input_ids)
        return self._end if self._stop() else self._go

    def ready(self) -> int:
        newest = self._newest
        if newest is None:
            return 0
        self.rows[newest[0] - 1].mark.synchronize()
        self._read = newest
        return newest[0]

    def seconds(self, row: Row) -> float:
        return float(self.begin.elapsed_time(row.mark)) / 1e3

    def tokens(self, first: int, end: int) -> list[int]:
        count, ids = self._read
        offset = ids.shape[1] - count
        with torch.cuda.stream(self._aside):
            found: list[int] = ids[0, offset + first : offset + end].tolist()
        return found


def _bytes(layer: Any) -> int:
    return 0 if layer.keys is None else int(layer.keys.nbytes + layer.values.nbytes)
