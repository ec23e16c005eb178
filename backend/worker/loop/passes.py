"""Forward passes captured as CUDA graphs, one for each shape of their inputs, in one pool of memory."""

from collections.abc import Callable
from typing import Any

import torch

from tokendyno.backend.worker.loop.cuda_graph import capture


class CapturedPasses:
    """A function of tensors, captured once for each combination of their shapes and replayed from then on.

    Its result stays in the captured memory and is valid until the next call. All graphs share a pool, where temporary
    tensors of one may overlap those of another, so the pool is as large as the largest graph needs.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._graphs: dict[Any, _Pass] = {}
        self._pool: Any = None

    def __call__(self, **inputs: Any) -> Any:
        """Copy the inputs to where the graph of their shapes reads them, and replay it."""
        shapes = tuple((name, tensor.shape) for name, tensor in inputs.items())
        if shapes not in self._graphs:
            if self._pool is None:
                self._pool = torch.cuda.graph_pool_handle()
            self._graphs[shapes] = _Pass(self._function, inputs, self._pool)
        return self._graphs[shapes](inputs)


class _Pass:
    """The graph of one combination of shapes, with its inputs and its result."""

    def __init__(self, function: Callable[..., Any], inputs: dict[str, Any], pool: Any) -> None:
        self._function = function
        self._inputs = {name: tensor.clone() for name, tensor in inputs.items()}
        self._result: Any = None
        self._replay = capture(self._run, self._forget, pool)

    def __call__(self, inputs: dict[str, Any]) -> Any:
        for name, tensor in inputs.items():
            self._inputs[name].copy_(tensor)
        self._replay()
        return self._result

    def _run(self) -> None:
        self._result = self._function(**self._inputs)

    def _forget(self) -> None:
        self._result = None  # of a warm-up pass, outside the pool


def without_idle_mask(inputs: dict[str, Any]) -> dict[str, Any]:
    """The inputs of a model, without an attention mask that hides nothing: a captured graph could not find that out."""
    return {name: tensor for name, tensor in inputs.items() if name != "attention_mask" or not bool(tensor.all())}
