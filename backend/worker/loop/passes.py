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
        """Inputs of such shapes that never move, the replay of a graph that reads them, and its result, alone in a
        list."""
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
