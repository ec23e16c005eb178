"""Counts, while a run is measured, which of the model's matrices each step gave to Inductor's code and to CUDA graphs.

A compiled graph receives the weights that it works on as inputs: the matrices among them, of all matrices of the model,
are the share of its work that was compiled. The graphs of flex_attention have no weights. A graph's weights are looked
up once, in the warm-up; after that a call costs a few dictionary lookups.
"""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple
from unittest import mock

import torch

from tokendyno.backend.counts import GraphSteps
from tokendyno.backend.worker.prove.tensor_bytes import inner_tensors, triton_weights

NOTHING: frozenset[int] = frozenset()


class GraphCalls:
    """Counts for one model. Entered around all that may compile, capture or run; `begin`: a measured run begins.

    capture_s  of the captures of CUDA graphs so far, whoever made them
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._weights: frozenset[int] = NOTHING  # addresses, by which matrices are told apart
        self._graphs: dict[int, _Graph] = {}  # by id
        self._captures: dict[int, frozenset[int]] = {}  # captured by us: matrices of the compiled graphs inside
        self._capturing: int | None = None
        self._running: frozenset[int] | None = None  # matrices of the compiled graph that is running
        self.capture_s = self._capture_begin_s = 0.0
        self._patches = ExitStack()
        self.begin(lambda: 0)

    def begin(self, step: Callable[[], int]) -> None:
        """Forget earlier steps. `step` tells the number of the step that is being computed."""
        self._step = step
        self._compiled: dict[int, frozenset[int]] = {}
        self._replayed: dict[int, frozenset[int]] = {}
        self._manual: set[int] = set()
        self._prompt_replays = 0
        weights = frozenset(map(_address, matrices(self._model)))
        if weights != self._weights:
            self.forget()
        self._weights = weights

    def rest(self) -> None:
        """Let go of the run whose steps were counted, and so of its cache."""
        self._step = lambda: 0

    def forget(self) -> None:
        """Let go of compiled graphs, which are to be freed or belong to other weights."""
        self._graphs.clear()

    def __enter__(self) -> "GraphCalls":
        code = sys.modules.get("torch._inductor.output_code")  # not loaded where nothing was compiled
        if code is not None:
            self._patch(code.CompiledFxGraph, "__call__", self._call)
        self._patch(torch.cuda.CUDAGraph, "capture_begin", self._capture_begin)
        self._patch(torch.cuda.CUDAGraph, "capture_end", self._capture_end)
        self._patch(torch.cuda.CUDAGraph, "replay", self._replay)
        return self

    def __exit__(self, *exc: object) -> None:
        self._patches.close()

    def _patch(self, owner: Any, name: str, around: Callable[..., Any]) -> None:
        """Let `around` be called in place of a method, with the original in front of its arguments."""
        original = getattr(owner, name)
        self._patches.enter_context(mock.patch.object(owner, name, lambda *args, **kw: around(original, *args, **kw)))

    def _call(self, original: Any, graph: Any, inputs: Sequence[Any]) -> Any:
        received = self._matrices_of(graph, inputs)
        if self._capturing is not None:
            self._captures[self._capturing] |= received
        self._add(self._compiled, received)
        self._running = received
        try:
            return original(graph, inputs)
        finally:
            self._running = None

    def _capture_begin(self, original: Any, graph: Any, *args: Any, **kwargs: Any) -> None:
        self._capture_begin_s = time.perf_counter()
        if self._running is None:
            self._capturing, self._captures[id(graph)] = id(graph), NOTHING
        original(graph, *args, **kwargs)

    def _capture_end(self, original: Any, graph: Any) -> None:
        self._capturing = None
        original(graph)
        self.capture_s += time.perf_counter() - self._capture_begin_s

    def _replay(self, original: Any, graph: Any) -> None:
        if self._running is not None:  # Inductor's own
            self._add(self._replayed, self._running)
        else:
            step = self._step()
            self._manual.add(step)
            self._prompt_replays += step == 0
            self._add(self._compiled, self._captures.get(id(graph), NOTHING))
        original(graph)

    def _add(self, steps: dict[int, frozenset[int]], received: frozenset[int]) -> None:
        step = self._step()
        earlier = steps.get(step, NOTHING)
        if earlier is not received:
            steps[step] = earlier | received if earlier else received

    def _matrices_of(self, graph: Any, inputs: Sequence[Any]) -> frozenset[int]:
        compiled = self._graphs.get(id(graph))
        if compiled is None:
            places = [i for i, value in enumerate(inputs) if _address(value) in self._weights]
            compiled = self._graphs[id(graph)] = _Graph(graph, places, {})
        if not compiled.places:
            return NOTHING
        key = id(inputs[compiled.places[0]]), id(inputs[compiled.places[-1]])  # layers may share a graph
        received = compiled.matrices.get(key)
        if received is None:
            addresses = {_address(inputs[i]) for i in compiled.places}
            received = compiled.matrices[key] = self._weights & addresses
        return received

    def counts(self, steps: Sequence[int]) -> GraphSteps:
        """Counts over these steps of the measured run: a decoder's after the prefill, all passes of an encoder."""
        compiled = [self._compiled.get(step, NOTHING) for step in steps]
        replayed = [self._replayed.get(step, NOTHING) for step in steps]
        return GraphSteps(
            counted_steps=len(steps),
            matrices=len(self._weights),
            compiled_steps=sum(map(bool, compiled)),
            compiled_matrices=sum(map(len, compiled)),
            replayed_steps=sum(map(bool, replayed)),
            replayed_matrices=sum(map(len, replayed)),
            manual_replays=len(self._manual & set(steps)),
        )

    def of_prompt(self) -> tuple[int, int]:
        """Of the pass over the prompt: replays, and matrices in compiled graphs."""
        return self._prompt_replays, len(self._compiled.get(0, NOTHING))


class _Graph(NamedTuple):
    """A compiled graph, referred to so that no other gets its id. places: which of its inputs are weights."""

    graph: Any
    places: list[int]
    matrices: dict[tuple[int, int], frozenset[int]]


def matrices(model: Any) -> list[Any]:
    """One plain tensor for each weight matrix, packed or not. Embeddings are left out: a step only looks up rows."""
    weights = []
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding):
            continue
        parameters = [weight for weight in module._parameters.values() if weight is not None and weight.ndim > 1]
        weights += [max(inner_tensors(weight), key=lambda part: part.nbytes) for weight in parameters]
        parameter_ids = set(map(id, parameters))
        weights += [parts[0] for parts in triton_weights(module).values() if id(parts[0]) not in parameter_ids]
    return weights


def _address(value: Any) -> int:
    """Address of a tensor's storage; 0 for anything that has none."""
    if not isinstance(value, torch.Tensor) or value.device.type == "meta":
        return 0
    try:
        return int(value.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):
        return 0
