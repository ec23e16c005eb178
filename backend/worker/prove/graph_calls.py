"""Counts, while a run is measured, which of the model's matrices each step gave to Inductor's code and to CUDA graphs.

A compiled graph receives the weights that it works on as inputs. So the matrices among the inputs of a step's graphs,
of all matrices of the model, are the share of its work that was compiled; nothing is concluded from what was asked for.
Graphs of another backend are not Inductor's, and the graphs of flex_attention have no weights. A graph's weights are
looked up once, in the warm-up; after that a call costs a few dictionary lookups.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tokendyno.backend.counts import GraphSteps
from tokendyno.backend.worker.prove.tensor_bytes import inner_tensors, triton_weights

NOTHING: frozenset[int] = frozenset()


class GraphCalls:
    """Of one model. Entered around whatever may compile, capture or run; `begin` starts the count of a measured run."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._numbers: dict[int, int] = {}  # address of a weight -> number of its matrix
        self._bytes: list[int] = []
        self._graphs: dict[int, _Graph] = {}
        self._captures: dict[int, frozenset[int]] = {}  # captured by us: matrices of the compiled graphs inside
        self._capturing: int | None = None
        self._running: frozenset[int] | None = None  # matrices of the compiled graph that is running
        self._plain: list[tuple[Any, str, Any]] = []
        self.begin(_no_step)

    def begin(self, step: Callable[[], int]) -> None:
        """Forget earlier steps. `step` tells the number of the step that is being computed."""
        self._step = step
        self._compiled: dict[int, frozenset[int]] = {}
        self._replayed: dict[int, frozenset[int]] = {}
        self._manual: set[int] = set()
        self._prompt_replays = 0
        numbers: dict[int, int] = {}
        self._bytes = []
        for matrix in matrices(self._model):
            if numbers.setdefault(_address(matrix), len(self._bytes)) == len(self._bytes):
                self._bytes.append(matrix.nbytes)
        if numbers != self._numbers:
            self.forget()
        self._numbers = numbers

    def rest(self) -> None:
        """Let go of the run whose steps were counted, and so of its cache."""
        self._step = _no_step

    def forget(self) -> None:
        """Let go of compiled graphs, which are to be freed or belong to other weights."""
        self._graphs.clear()

    def __enter__(self) -> "GraphCalls":
        code = sys.modules.get("torch._inductor.output_code")  # not loaded where nothing was compiled
        if code is not None:
            self._patch(code.CompiledFxGraph, "__call__", self._counting_calls)
        self._patch(torch.cuda.CUDAGraph, "capture_begin", self._noting_begin)
        self._patch(torch.cuda.CUDAGraph, "capture_end", self._noting_end)
        self._patch(torch.cuda.CUDAGraph, "replay", self._counting_replays)
        return self

    def __exit__(self, *exc: object) -> None:
        for owner, name, plain in reversed(self._plain):
            setattr(owner, name, plain)
        self._plain.clear()

    def _patch(self, owner: Any, name: str, counting: Callable[[Any], Any]) -> None:
        plain = getattr(owner, name)
        self._plain.append((owner, name, plain))
        setattr(owner, name, counting(plain))

    def _counting_calls(self, plain: Any) -> Any:
        def call(graph: Any, inputs: Sequence[Any]) -> Any:
            found = self._matrices_of(graph, inputs)
            if self._capturing is not None:
                self._captures[self._capturing] |= found
            self._add(self._compiled, found)
            self._running = found
            try:
                return plain(graph, inputs)
            finally:
                self._running = None

        return call

    def _noting_begin(self, plain: Any) -> Any:
        def capture_begin(graph: Any, *args: Any, **kwargs: Any) -> None:
            if self._running is None:
                self._capturing, self._captures[id(graph)] = id(graph), NOTHING
            plain(graph, *args, **kwargs)

        return capture_begin

    def _noting_end(self, plain: Any) -> Any:
        def capture_end(graph: Any) -> None:
            self._capturing = None
            plain(graph)

        return capture_end

    def _counting_replays(self, plain: Any) -> Any:
        def replay(graph: Any) -> None:
            if self._running is not None:  # Inductor's own
                self._add(self._replayed, self._running)
            else:
                step = self._step()
                self._manual.add(step)
                self._prompt_replays += step == 0
                self._add(self._compiled, self._captures.get(id(graph), NOTHING))
            plain(graph)

        return replay

    def _add(self, steps: dict[int, frozenset[int]], found: frozenset[int]) -> None:
        step = self._step()
        known = steps.get(step, NOTHING)
        if known is not found:
            steps[step] = known | found if known else found

    def _matrices_of(self, graph: Any, inputs: Sequence[Any]) -> frozenset[int]:
        known = self._graphs.get(id(graph))
        if known is None:
            places = [i for i, one in enumerate(inputs) if _address(one) in self._numbers]
            known = self._graphs[id(graph)] = _Graph(graph, places)
        if not known.places:
            return NOTHING
        key = id(inputs[known.places[0]]), id(inputs[known.places[-1]])  # layers may share a graph
        found = known.matrices.get(key)
        if found is None:
            ours = [self._numbers.get(_address(inputs[i])) for i in known.places]
            found = known.matrices[key] = frozenset(number for number in ours if number is not None)
        return found

    def counts(self, steps: Sequence[int]) -> GraphSteps:
        """Of those steps of the measured run: a decoder's steps after the prefill, all passes of an encoder."""
        compiled, replayed = ([of.get(step, NOTHING) for step in steps] for of in (self._compiled, self._replayed))
        read = sum(self._bytes[number] for step in compiled for number in step)
        every = sum(self._bytes) * len(steps)
        return GraphSteps(
            counted_steps=len(steps),
            matrices=len(self._bytes),
            compiled_steps=sum(map(bool, compiled)),
            compiled_matrices=sum(map(len, compiled)),
            compiled_share=read / every if every else 0.0,
            replayed_steps=sum(map(bool, replayed)),
            replayed_matrices=sum(map(len, replayed)),
            manual_replays=len(self._manual & set(steps)),
        )

    def of_prompt(self) -> tuple[int, int]:
        """Of the pass over the prompt: replays, and matrices in compiled graphs."""
        return self._prompt_replays, len(self._compiled.get(0, NOTHING))


def _no_step() -> int:
    return 0


class _Graph:
    """A compiled graph, kept so that its id stays its own; where weights are among its inputs, and which."""

    def __init__(self, graph: Any, places: list[int]) -> None:
        self.graph, self.places = graph, places
        self.matrices: dict[tuple[int, int], frozenset[int]] = {}


def matrices(model: Any) -> list[Any]:
    """The plain tensor of each weight matrix, packed or not, without embeddings: a step only looks a row up in them."""
    found = []
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding):
            continue
        own = [one for one in module._parameters.values() if one is not None and one.ndim > 1]
        found += [max(inner_tensors(one), key=lambda part: part.nbytes) for one in own]
        known = {id(one) for one in own}
        found += [parts[0] for parts in triton_weights(module).values() if id(parts[0]) not in known]
    return found


def _address(one: Any) -> int:
    """Of a tensor's storage; 0 for what has none."""
    if not isinstance(one, torch.Tensor) or one.device.type == "meta":
        return 0
    try:
        return int(one.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):
        return 0
