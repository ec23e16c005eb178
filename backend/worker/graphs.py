"""A decode step captured by hand in one CUDA graph, and tokens copied out behind the computation."""

from collections.abc import Callable
from typing import Any

import torch

WARMUP_STEPS = 3


def captured(step: Callable[[], None], rewind: Callable[[], None]) -> Callable[[], None]:
    """The replay of `step`, which works on tensors that never move.

    It is run a few times first, on another stream as capture asks for: libraries set themselves up, compilers compile.
    `rewind` puts it back to the start before each; what it left in its tensors after that is the caller's to undo.
    Raises RuntimeError where a step waits for the device or moves memory: then it cannot be captured.
    """
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(WARMUP_STEPS):
            rewind()
            step()
    torch.cuda.current_stream().wait_stream(aside)
    rewind()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    replay: Callable[[], None] = graph.replay
    return replay


class CopiedOut:
    """Ids on the host. On CUDA row n goes there on another stream, as soon as it exists and while the next is made."""

    def __init__(self, out: Any) -> None:
        self._out = out
        self._aside: Any = None
        if out.is_cuda:
            self._aside = torch.cuda.Stream()
            self._host = torch.empty(out.shape, dtype=out.dtype, pin_memory=True)
            self._done: list[Any] = []

    def send(self, row: int, after: Any = None) -> None:
        """Row `row` of `out`, shape (B,), has been written by work that is already in the stream; `after`: an event
        that stands behind it there, if there is one, which saves another."""
        if self._aside is None:
            return
        if isinstance(after, torch.cuda.Event):
            self._aside.wait_event(after)
        else:
            self._aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._aside):
            self._host[row].copy_(self._out[row], non_blocking=True)
            done = torch.cuda.Event()
            done.record()
        self._done.append(done)

    def read(self, row: int) -> list[int]:
        """Ids of that row; waits for it, and for nothing after it."""
        where = self._out
        if self._aside is not None:
            self._done[row].synchronize()
            where = self._host
        return [int(i) for i in where[row].tolist()]
