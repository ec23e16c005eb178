"""CUDA graphs: a decode step captured as one, forward passes with one for each shape of their inputs; and tokens that
are copied to the host without holding up the next step."""

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
    the host."""
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


class CapturedPasses:
    """A function of tensors, captured once for each combination of their shapes and replayed from then on.

    Its result stays in the captured memory and is valid until the next call. All graphs share a pool, where temporary
    tensors of one may overlap those of another, so the pool is as large as the largest graph needs.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._graphs: dict[Any, tuple[dict[str, Any], Callable[[], None], list[Any]]] = {}
        self._pool: Any = None

    def __call__(self, **inputs: Any) -> Any:
        """Copy the inputs to where the graph of their shapes reads them, and replay it."""
        shapes = tuple((name, tensor.shape) for name, tensor in inputs.items())
        if shapes not in self._graphs:
            self._graphs[shapes] = self._captured(inputs)
        own_inputs, replay, result = self._graphs[shapes]
        for name, tensor in inputs.items():
            own_inputs[name].copy_(tensor)
        replay()
        return result[0]

    def _captured(self, inputs: dict[str, Any]) -> tuple[dict[str, Any], Callable[[], None], list[Any]]:
        """Inputs of such shapes that never move, the replay of a graph that reads them, and a list of its result."""
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        own_inputs = {name: tensor.clone() for name, tensor in inputs.items()}
        result: list[Any] = []

        def run() -> None:
            result.append(self._function(**own_inputs))

        return own_inputs, capture(run, result.clear, self._pool), result


def without_idle_mask(inputs: dict[str, Any]) -> dict[str, Any]:
    """The inputs of a model, without an attention mask that hides nothing: a captured graph could not find that out."""
    return {name: tensor for name, tensor in inputs.items() if name != "attention_mask" or not bool(tensor.all())}


class HostCopy:
    """Token ids (steps, B) on the host. On CUDA each row is copied on a side stream while the next one is computed."""

    def __init__(self, device_ids: Any) -> None:
        self._device_ids = self._host_ids = device_ids
        self._copied: list[Any] = []  # an event for each row
        self._side: Any = None
        if device_ids.is_cuda:
            self._side = torch.cuda.Stream()
            self._host_ids = torch.empty(device_ids.shape, dtype=device_ids.dtype, pin_memory=True)

    def send(self, row: int) -> None:
        """Copy a row that is already in the stream."""
        if self._side is None:
            return
        self._side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._side):
            self._host_ids[row].copy_(self._device_ids[row], non_blocking=True)
            copied = torch.cuda.Event()
            copied.record()
        self._copied.append(copied)

    def read(self, row: int) -> list[int]:
        """The ids of a row. Waits for its copy and for nothing later."""
        if self._side is not None:
            self._copied[row].synchronize()
        ids: list[int] = self._host_ids[row].tolist()
        return ids
