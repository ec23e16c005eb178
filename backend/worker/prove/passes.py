"""Counts passes through the model during generation, and the positions that they are given, whoever makes them."""

from collections.abc import Sequence
from typing import Any

from backend.plan import GeneratePlan


class PassCounter:
    """Counts calls of the model's input embedding while it is entered; costs two additions a pass.

    count      None where that would change or miss what runs: in compiled code, and in graphs that are replayed
    positions  of a row, summed over the passes; None where `count` is
    first      ids (B, P) of the first pass: those of the prompt, with drafts behind them; None where `count` is, or 0
    """

    def __init__(self, model: Any, plan: GeneratePlan) -> None:
        hidden = plan.compile_mode is not None or plan.cuda_graphs == "manual"
        self._embedding = None if hidden else model.get_input_embeddings()
        self.count: int | None = None if hidden else 0
        self.positions = self.count
        self.first: Any = None

    def __enter__(self) -> "PassCounter":
        if self._embedding is not None:
            self._hook = self._embedding.register_forward_pre_hook(self._add, prepend=True)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._embedding is not None:
            self._hook.remove()

    def _add(self, _: object, given: Sequence[Any]) -> None:
        assert self.count is not None and self.positions is not None
        if not self.count:
            self.first = given[0]
        self.count += 1
        self.positions += given[0].shape[-1]
