"""Meters whose clock runs on the device, and a meter for a loop that learns its tokens late.

On CUDA an event is recorded in the stream right after the token, without waiting. Its time is read later, and the ids
are copied in batches, by another thread on another stream: the measured path is never synchronized.
"""

import time
from typing import Any

import torch

from tokendyno.backend.worker.measure.meter import Meter, TokenRow


class CudaMeter(Meter):
    """`Meter` with CUDA events."""

    clock = "CUDA events"

    def __init__(
        self, cache: Any, sliding: list[bool], batch_size: int, sampler: Any, stop: Any, prompt_tokens: int = 0
    ) -> None:
        super().__init__(cache, sliding, batch_size, sampler, stop, prompt_tokens)
        self._go, self._end = self._go.cuda(), self._end.cuda()
        self._aside = torch.cuda.Stream()
        with torch.cuda.stream(self._aside):
            self._go.cpu()  # its first use takes memory, and time that is no token's
        self._newest: tuple[int, Any] | None = None
        self._read: tuple[int, Any] = (0, None)

    def start(self) -> None:
        self.begin = torch.cuda.Event(enable_timing=True)
        self.begin.record()

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        new = self._new(input_ids)
        held = self._cache_bytes(), self._sampler.latest
        self.rows.extend([TokenRow(event, 0, *held) for _ in range(new)])
        self._newest = (len(self.rows), input_ids)
        return self._end if self._stop() else self._go

    def ready(self) -> int:
        newest = self._newest
        if newest is None:
            return 0
        self.rows[newest[0] - 1].event.synchronize()
        self._read = newest
        return newest[0]

    def seconds(self, row: TokenRow) -> float:
        return float(self.begin.elapsed_time(row.event)) / 1e3

    def tokens(self, first: int, end: int) -> list[int]:
        count, ids = self._read
        offset = ids.shape[1] - count
        with torch.cuda.stream(self._aside):
            found: list[int] = ids[0, offset + first : offset + end].tolist()
        return found


class LateMeter(Meter):
    """For the custom decode loop, which reads a token a few steps after it was generated.

    The loop takes an `event` as soon as a step is in the stream, and calls `tell` with it once the token is read and
    known to count: a row that exists is complete.
    """

    def __init__(
        self, cache: Any, sliding: list[bool], batch_size: int, sampler: Any, stop: Any, cuda: bool = False
    ) -> None:
        super().__init__(cache, sliding, batch_size, sampler, stop)
        self._cuda = cuda
        self.clock = CudaMeter.clock if cuda else Meter.clock

    def event(self) -> Any:
        """Now, on this meter's clock: a step was launched."""
        self.launched += 1
        if not self._cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def start(self) -> None:
        self.begin = self.event()
        self.launched = 0

    def tell(self, event: Any, ids: list[int]) -> None:
        """The tokens that existed at `event`, one a row; that of sequence 0 is kept."""
        self.steps += 1
        self.rows.append(TokenRow(event, ids[0], self._cache_bytes(), self._sampler.latest))

    def stopping(self) -> bool:
        """Whether to end the generation with the token that was told last."""
        return bool(self._stop())

    def seconds(self, row: TokenRow) -> float:
        return float(self.begin.elapsed_time(row.event)) / 1e3 if self._cuda else super().seconds(row)
