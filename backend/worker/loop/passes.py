"""Forward passes captured as CUDA graphs, one for each shape of their inputs, which share one pool of memory."""

from collections.abc import Callable
from typing import Any

import torch

from tokendyno.backend.worker.loop.cuda_graph import capture


class CapturedPasses:
    """A function of tensors, captured once for each shape of them and replayed from then on.

    What it returns lies where it was captured, and holds until the next call. Graphs of several shapes share a pool:
    the tensors that one needs on the way may lie where another's do, so the pool is as large as the largest needs.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._graphs: dict[Any, _Pass] = {}
        self._pool: Any = None

    def __call__(self, **inputs: Any) -> Any:
        """Copy the inputs to where the graph of their shapes reads them, and replay it."""
        shapes = tuple((name, one.shape) for name, one in inputs.items())
        if shapes not in self._graphs:
            if self._pool is None:
                self._pool = torch.cuda.graph_pool_handle()
            self._graphs[shapes] = _Pass(self._function, inputs, self._pool)
        return self._graphs[shapes](inputs)


class _Pass:
    """The graph of one shape: the tensors that it reads, and what it leaves."""

    def __init__(self, function: Callable[..., Any], inputs: dict[str, Any], pool: Any) -> None:
        self._function = function
        self._inputs = {name: one.clone() for name, one in inputs.items()}
        self._result: Any = None
        self._replay = capture(self._run, self._forget, pool)

    def __call__(self, inputs: dict[str, Any]) -> Any:
        for name, one in inputs.items():
            self._inputs[name].copy_(one)
        self._replay()
        return self._result

    def _run(self) -> None:
        self._result = self._function(**self._inputs)

    def _forget(self) -> None:
        self._result = None  # of a pass before the captured one: not in the pool


def without_idle_mask(inputs: dict[str, Any]) -> dict[str, Any]:
    """The inputs of a model without a mask that hides nothing, which a captured graph could not read."""
    return {name: one for name, one in inputs.items() if name != "attention_mask" or not bool(one.all())}
