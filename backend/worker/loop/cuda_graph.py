"""A decode step captured as one CUDA graph, and its tokens copied to the host without holding up the next step."""

import functools
import gc
from collections.abc import Callable
from typing import Any

import torch

WARMUP_STEPS = 3


@functools.cache
def side_stream() -> Any:
    """The one stream for warming up before a capture: cuBLAS allocates a workspace for each stream."""
    return torch.cuda.Stream()


def capture(step: Callable[[], None], rewind: Callable[[], None], pool: Any = None) -> Callable[[], None]:
    """Run `step`, whose tensors never move, a few times on a side stream, each followed by `rewind`; then capture it.

    Returns the replay. `pool`: memory that graphs share which never run at once. RuntimeError where a step waits for
    the host.
    """
    side = side_stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARMUP_STEPS):
            step()
            rewind()
    torch.cuda.current_stream().wait_stream(side)
    graph, collects = torch.cuda.CUDAGraph(), gc.isenabled()
    gc.disable()  # it could destroy an earlier graph, which ends the capture and the process
    try:
        with torch.cuda.graph(graph, pool, capture_error_mode="thread_local"):  # a thread of NCCL asks for its events
            step()
    finally:
        if collects:
            gc.enable()
    return lambda: graph.replay()  # looked up at each step, so that replays can be counted


class HostCopy:
    """Token ids (steps, B) on the host. On CUDA each row is copied on a side stream while the next one is computed."""

    def __init__(self, device_ids: Any) -> None:
        self._device_ids = device_ids
        self._side: Any = None
        if device_ids.is_cuda:
            self._side = torch.cuda.Stream()
            self._host_ids = torch.empty(device_ids.shape, dtype=device_ids.dtype, pin_memory=True)
            self._copied: list[Any] = []

    def send(self, row: int, after: Any = None) -> None:
        """Copy a row whose computation is already in the stream. `after`: a CUDA event recorded behind it, if there is
        one, which saves recording another."""
        if self._side is None:
            return
        if isinstance(after, torch.cuda.Event):
            self._side.wait_event(after)
        else:
            self._side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._side):
            self._host_ids[row].copy_(self._device_ids[row], non_blocking=True)
            copied = torch.cuda.Event()
            copied.record()
        self._copied.append(copied)

    def read(self, row: int) -> list[int]:
        """The ids of a row. Waits for its copy and for nothing later."""
        ids = self._device_ids
        if self._side is not None:
            self._copied[row].synchronize()
            ids = self._host_ids
        return [int(i) for i in ids[row].tolist()]
