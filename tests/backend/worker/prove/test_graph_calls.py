"""What reached compiled code and CUDA graphs is told by the weights among a graph's inputs, step by step."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tokendyno.backend.worker.prove.graph_calls import GraphCalls  # noqa: E402


class Layers(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Two layers with a matrix and a vector each, an embedding, and a head tied to it."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(4, 8)
        self.layers = torch.nn.ModuleList([torch.nn.Linear(8, 8), torch.nn.Linear(8, 16)])
        self.head = torch.nn.Linear(8, 4, bias=False)
        self.head.weight = self.words.weight


class Graph:
    """In place of Inductor's compiled graph and of a CUDA graph: does what it is told to."""

    act: Callable[[], None] = staticmethod(lambda: None)

    def __call__(self, inputs: list[Any]) -> None:
        self.act()
        inputs.clear()  # as compiled code does

    def replay(self) -> None:
        pass

    def capture_begin(self, pool: Any = None) -> None:
        pass

    def capture_end(self) -> None:
        pass


@pytest.fixture
def model() -> Any:
    return Layers()


@pytest.fixture
def calls(model: Any, monkeypatch: pytest.MonkeyPatch) -> GraphCalls:
    code = pytest.importorskip("torch._inductor.output_code")
    monkeypatch.setattr(code, "CompiledFxGraph", Graph)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    return GraphCalls(model)


def inputs(*layers: Any) -> list[Any]:
    """Those of a graph: a number, an activation, vectors, and the weights of layers."""
    return [3, torch.ones(1, 8), *[part for layer in layers for part in layer.parameters()]]


def test_steps_that_no_graph_or_a_graph_without_weights_was_called_in_count_as_none(
    model: Any, calls: GraphCalls
) -> None:
    step, flex = 0, Graph()
    calls.begin(lambda: step)
    with calls:
        flex(inputs())
    found = calls.counts(range(4))
    assert (found.counted_steps, found.matrices, found.compiled_matrices, found.compiled_steps) == (4, 3, 0, 0)
    assert found.compiled_share == 0 and found.replayed_steps == 0 and found.manual_replays == 0


def test_every_step_answers_for_itself_and_so_does_every_matrix(model: Any, calls: GraphCalls) -> None:
    step, first, both = 0, Graph(), Graph()
    calls.begin(lambda: step)
    with calls:
        both(inputs(model.layers, model.head))  # the prefill
        for step in (1, 2, 3):
            first(inputs(model.layers[0]))
            if step == 2:
                both(inputs(model.layers[0], model.layers[1], model.head))
    both(inputs(model.layers))
    found = calls.counts(range(1, 4))
    assert (found.compiled_steps, found.compiled_matrices) == (3, 1 + 3 + 1)
    assert found.compiled_share == pytest.approx((64 + (64 + 128 + 32) + 64) / (3 * (64 + 128 + 32)))


def test_a_replay_inside_a_compiled_graph_is_inductors_and_any_other_is_ours(model: Any, calls: GraphCalls) -> None:
    step, compiled, recorded, own = 0, Graph(), Graph(), Graph()
    compiled.act = lambda: recorded.replay()
    calls.begin(lambda: step)
    with calls:
        compiled(inputs(model.layers[0]))
        step = 1
        own.replay()
    found = calls.counts(range(2))
    assert (found.replayed_steps, found.replayed_matrices, found.manual_replays) == (1, 1, 1)
    assert found.compiled_matrices == 1, "nothing compiled was captured by us"


def test_compiled_code_that_we_captured_counts_at_each_replay_until_another_capture(
    model: Any, calls: GraphCalls
) -> None:
    compiled, own = Graph(), Graph()
    with calls:
        own.capture_begin()
        compiled(inputs(model.layers[0], model.layers[1]))
        own.capture_end()
        Graph()(inputs(model.head))
    for captured in (2, 0):
        calls.begin(lambda: 1)
        with calls:
            own.replay()
        assert calls.counts(range(1, 3)).compiled_matrices == captured
        assert calls.counts(range(1, 3)).manual_replays == 1
        with calls:
            own.capture_begin()
            own.capture_end()
