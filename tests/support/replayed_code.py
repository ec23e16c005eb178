"""In place of CUDA graphs where there is no GPU: a replay is the captured code once more, unseen by whoever watches it.

As in a replay, no hook of the model is called, nothing changes but tensors (what the host noted is put back), and a
profile shows no operator that the host calls by itself. What only a GPU shows (addresses, synchronization, memory) is
in tests/gpu/.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import pytest
import torch

from tokendyno.backend.worker.loop import loop, passes

NOTED = ("empty", "cumulative_length_int", "has_previous_state")
"""What a layer of the custom loop's cache notes on the host."""


class Graphs:
    """Everything that was captured. pools: those that captures were given; replays: how many there were so far."""

    def __init__(self, model: Any, cache: Callable[[], Any]) -> None:
        self.model, self.cache = model, cache
        self.pools: list[Any] = []
        self.replays = 0

    def capture(self, step: Callable[[], None], rewind: Callable[[], None], pool: Any = None) -> Callable[[], None]:
        """As in `tokendyno.backend.worker.loop.cuda_graph`."""
        self.pools.append(pool)
        rewind()
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()
        step()
        graph.capture_end()

        def run() -> None:
            self.replays += 1
            with self._unseen():
                step()

        graph.run = run
        return lambda: graph.replay()

    @contextmanager
    def _unseen(self) -> Iterator[None]:
        cache, embedding = self.cache(), self.model.get_input_embeddings()
        hooks, embedding._forward_pre_hooks = embedding._forward_pre_hooks, OrderedDict()
        layers = [
            (one, {name: copy(getattr(one, name)) for name in NOTED if hasattr(one, name)}) for one in cache.layers
        ]
        slots = [(one, one.decoding) for one in cache.slots]
        try:
            with torch.profiler.record_function("## Call CompiledFxGraph in place of a replay"):
                yield
        finally:
            embedding._forward_pre_hooks = hooks
            for layer, noted in layers:
                vars(layer).update(noted)
            for one, decoding in slots:
                one.decoding = decoding


class Graph:
    """A CUDA graph, whose methods a counter may wrap."""

    run: Callable[[], None]

    def capture_begin(self, *pool: Any) -> None:
        pass

    def capture_end(self) -> None:
        pass

    def replay(self) -> None:
        self.run()


def replayed_on_a_cpu(monkeypatch: pytest.MonkeyPatch, model: Any, cache: Callable[[], Any]) -> Graphs:
    """From now on. `cache`: the custom loop's, once there is one."""
    made = Graphs(model, cache)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", object)
    for module in (loop, passes):
        monkeypatch.setattr(module, "capture", made.capture)
    return made
