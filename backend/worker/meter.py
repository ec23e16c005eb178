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

from backend.optimizations.held import layer_bytes

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

    Several tokens of one step (speculation) are rows with one mark, and the bytes that the cache held after that step.

    sampler        has `latest`, the newest memory sample
    stop           called before each token's answer: True ends the generation with this token
    prompt_tokens  length of the prompt, padding included; 0: every step makes one token
    """

    clock = "host clock after the step"

    def __init__(
        self, cache: Any, sliding: list[bool], batch_size: int, sampler: Any, stop: Any, prompt_tokens: int = 0
    ) -> None:
        self.rows: list[Row] = []
        self.steps = 0
        self._length = prompt_tokens
        self._cache, self._sliding, self._sampler, self._stop = cache, sliding, sampler, stop
        self._go = torch.zeros(batch_size, dtype=torch.bool)
        self._end = torch.ones(batch_size, dtype=torch.bool)
        self._pairs: tuple[list[tuple[Any, int]], list[tuple[Any, int]]] | None = None
        self._uneven, self._counted_at = False, 0
        self.begin: Any = None

    def start(self) -> None:
        """Time 0 is now."""
        self.begin = time.perf_counter()

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """Shapes: input_ids (B, length so far); returns (B,) bool, True = finished."""
        mark = time.perf_counter()
        new = self._new(input_ids)
        sliding, full = self._held()
        held = sliding, full, self._sampler.latest
        self.rows.extend([Row(mark, token, *held) for token in input_ids[0, -new:].tolist()])
        return self._end if self._stop() else self._go

    def _new(self, input_ids: torch.Tensor) -> int:
        """How many tokens this step made."""
        new = input_ids.shape[1] - self._length if self._length else 1
        self._length, self.steps = input_ids.shape[1], self.steps + 1
        return new

    def _held(self) -> tuple[int, int]:
        """(sliding, full) bytes in the cache's tensors now.

        Layers of one kind hold equally much: one of each is read and multiplied. All are counted for the first two
        tokens and then every 64 tokens; a cache for which this does not hold is counted whole from there on.
        """
        n = len(self.rows)
        if self._pairs is None or n < 2 or n - self._counted_at >= COUNT_ALL_EVERY:
            self._counted_at = n
            return self._count_all()
        sliding, full = (sum(layer_bytes(layer) * many for layer, many in pairs) for pairs in self._pairs)
        return sliding, full

    def _count_all(self) -> tuple[int, int]:
        layers = list(zip(self._cache.layers, self._sliding, strict=False))
        kinds = [[layer for layer, slides in layers if slides], [layer for layer, slides in layers if not slides]]
        even = all(len({layer_bytes(layer) for layer in kind}) <= 1 for kind in kinds)
        self._uneven = self._uneven or not even
        sliding, full = ([(kind[0], len(kind))] if kind else [] for kind in kinds)
        self._pairs = None if self._uneven else (sliding, full)
        return sum(map(layer_bytes, kinds[0])), sum(map(layer_bytes, kinds[1]))

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

    def __init__(
        self, cache: Any, sliding: list[bool], batch_size: int, sampler: Any, stop: Any, prompt_tokens: int = 0
    ) -> None:
        super().__init__(cache, sliding, batch_size, sampler, stop, prompt_tokens)
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
        new = self._new(input_ids)
        sliding, full = self._held()
        held = sliding, full, self._sampler.latest
        self.rows.extend([Row(mark, 0, *held) for _ in range(new)])
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


class LateMeter(Meter):
    """For the own loop, which learns what a token is a few steps after it was made.

    The loop takes a `mark` as soon as a step is in the stream, and tells the token with it once it is read and known
    to count: so a row that is there is complete.
    """

    def __init__(
        self, cache: Any, sliding: list[bool], batch_size: int, sampler: Any, stop: Any, cuda: bool = False
    ) -> None:
        super().__init__(cache, sliding, batch_size, sampler, stop)
        self._cuda = cuda
        self.clock = CudaMeter.clock if cuda else Meter.clock

    def mark(self) -> Any:
        """Now, by this meter's clock."""
        if not self._cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def start(self) -> None:
        self.begin = self.mark()

    def tell(self, mark: Any, token: int) -> None:
        """The token of sequence 0 that existed at `mark`."""
        self.steps += 1
        sliding, full = self._held()
        self.rows.append(Row(mark, token, sliding, full, self._sampler.latest))

    def stopping(self) -> bool:
        """Whether the generation shall end with the token that was told last."""
        return bool(self._stop())

    def seconds(self, row: Row) -> float:
        return float(self.begin.elapsed_time(row.mark)) / 1e3 if self._cuda else super().seconds(row)
