"""Which ids captured passes over a prompt read: told by the tensors that the model's embedding was given meanwhile."""

import contextlib
from collections.abc import Sequence
from typing import Any

import torch

from backend.counts import RunCounts


class CapturedReads:
    """Of one model. `GraphCalls` tells it of captures and replays.

    A graph reads the same memory at each replay, so what lies there after a run is what its last replay has read.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._read: dict[int, list[Any]] = {}  # graph -> ids (B, tokens) of each call of the embedding
        self._hook: Any = None
        self._replayed: list[int] = []

    def begin(self) -> None:
        """Forget earlier replays."""
        self._replayed.clear()

    def begin_capture(self, graph: int) -> None:
        """From now on the embedding is called for this graph."""
        read = self._read[graph] = []

        def note(_: object, given: Sequence[Any]) -> None:
            read.append(given[0])

        with contextlib.suppress(AttributeError, NotImplementedError):  # of a model that names no embedding
            self._hook = self._model.get_input_embeddings().register_forward_pre_hook(note, prepend=True)

    def end_capture(self) -> None:
        """The graph is complete, or failed."""
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def replayed(self, graph: int) -> None:
        """That graph read the prompt, or a part of it."""
        self._replayed.append(graph)

    @property
    def received(self) -> Any:
        """Ids (B, tokens) that the replays read, in their order; None where none did, or they read other rows."""
        every = [ids for graph in self._replayed for ids in self._read.get(graph, [])]
        if not every or any(len(ids) != len(every[0]) for ids in every):
            return None
        return torch.cat(every, -1)

    def counts(self, prompt: Any) -> RunCounts:
        """How often a graph was replayed for the prompt (B, P), the positions that it covered, and those of them that
        hold the prompt's ids."""
        received, same = self.received, 0
        if not self._replayed:
            return RunCounts()
        if received is None:  # of compiled code, which calls no embedding
            return RunCounts(prompt_replays=float(len(self._replayed)))
        if received.shape == prompt.shape:
            same = int((received == prompt).all(0).sum())
        return RunCounts(
            prompt_replays=float(len(self._replayed)),
            replayed_positions=float(received.shape[-1]),
            same_replayed_positions=float(same),
        )
