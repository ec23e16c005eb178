"""Takes the time of every token where the token exists, inside `generate`, and the bytes of the cache.

`generate` calls its stopping criteria right after a token was chosen. On a CPU the token then exists and a
clock is read. On CUDA it exists when the device gets there: an event is recorded in the stream and the token
is copied to pinned memory behind it, without waiting; both are read later, off the measured path.
"""

import time
from dataclasses import dataclass
from typing import Any

import torch
from transformers import StoppingCriteria
from transformers.cache_utils import DynamicCache, DynamicSlidingWindowLayer


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
        """(sliding, full) bytes in the cache's tensors now."""
        sliding = full = 0
        for layer, slides in zip(self._cache.layers, self._sliding, strict=False):
            keys = layer.keys
            if keys is None:
                continue
            if slides:
                sliding += keys.nbytes + layer.values.nbytes
            else:
                full += keys.nbytes + layer.values.nbytes
        return sliding, full

    def ready(self, done: int) -> int:
        """How many rows, from the first, can be read without waiting. `done`: those already read."""
        return len(self.rows)

    def seconds(self, row: Row) -> float:
        """When a row's token existed, since `start`."""
        return float(row.mark - self.begin)

    def token(self, index: int) -> int:
        """Id of a token that is `ready`."""
        return self.rows[index].token


class CudaMeter(Meter):
    """The same with device events; never synchronizes on the measured path."""

    clock = "CUDA events"

    def __init__(self, cache: Any, sliding: list[bool], batch_size: int, sampler: Any, stop: Any, most: int) -> None:
        super().__init__(cache, sliding, batch_size, sampler, stop)
        self._go, self._end = self._go.cuda(), self._end.cuda()
        self._tokens = torch.zeros(most, dtype=torch.long, pin_memory=True)

    def start(self) -> None:
        self.begin = torch.cuda.Event(enable_timing=True)
        self.begin.record()

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        i = len(self.rows)
        mark = torch.cuda.Event(enable_timing=True)
        mark.record()
        self._tokens[i : i + 1].copy_(input_ids[0, -1:], non_blocking=True)
        copied = torch.cuda.Event()
        copied.record()
        sliding, full = self._held()
        self.rows.append(Row((mark, copied), 0, sliding, full, self._sampler.latest))
        return self._end if self._stop() else self._go

    def ready(self, done: int) -> int:
        count = len(self.rows)
        while done < count and self.rows[done].mark[1].query():
            done += 1
        return done

    def seconds(self, row: Row) -> float:
        return float(self.begin.elapsed_time(row.mark[0])) / 1e3

    def token(self, index: int) -> int:
        return int(self._tokens[index])
