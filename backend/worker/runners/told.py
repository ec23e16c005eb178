"""A generation that somebody reads along: each token is told as it comes, and nothing is measured."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import torch
from transformers import LogitsProcessor

from tokendyno.backend.worker.prove.profile import mark_step
from tokendyno.backend.worker.runners.loop import UnmeasuredLoop


@dataclass(frozen=True, slots=True)
class Told:
    """A token. `nats`: its log-probability, and that of the likeliest ones with their ids, the likeliest first; None
    and empty where nobody asked. They are of what the model says, before temperature and filters."""

    id: int
    nats: float | None = None
    likeliest: tuple[tuple[int, float], ...] = ()


class Teller(UnmeasuredLoop):
    """Tells the tokens of one generation, of either loop.

    tell_one  takes each token, in the thread that generates
    likely    how many of the likeliest tokens are told with each; 0: none, and no log-probability
    read      where the custom loop keeps those of a token, by its number
    """

    def __init__(
        self,
        ids: torch.Tensor,
        tell_one: Callable[[Told], object],
        stop: Callable[[], bool],
        ends: Collection[int],
        likely: int,
        read: Callable[[int], tuple[list[int], list[float]]],
    ) -> None:
        super().__init__(stop, ids)
        self._tell_one, self._ends, self.likely, self._read = tell_one, ends, likely, read
        self._length, self._told, self._ended = ids.shape[1], 0, False
        self.processor = Distributions() if likely else None

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """From `generate`, after each step. Shapes: input_ids (1, length so far); returns (1,) bool."""
        mark_step()
        rows = self.processor.take() if self.processor is not None else {}
        for place, token in enumerate(input_ids[0, self._length :].tolist(), self._length):
            self._pass_on(self._of_row(token, rows[place]) if self.likely else Told(token))
        self._length = input_ids.shape[1]
        return self._answers[int(self.stopping())]

    def tell(self, event: Any, ids: list[int]) -> None:
        """From the custom loop, once a token is known to count."""
        if not self.likely:
            self._pass_on(Told(ids[0]))
            return
        found, nats = self._read(self._told)
        self._pass_on(Told(ids[0], nats[0], tuple(zip(found, nats[1:], strict=True))))

    def stopping(self) -> bool:
        return self._ended or bool(self._stop())

    def _of_row(self, token: int, nats: torch.Tensor) -> Told:
        found = nats.topk(self.likely)
        return Told(token, float(nats[token]), tuple(zip(found.indices.tolist(), found.values.tolist(), strict=True)))

    def _pass_on(self, one: Told) -> None:
        if not self._ended:  # a step with drafts may come to tokens behind the last
            self._told += 1
            self._ended = one.id in self._ends
            self._tell_one(one)


class Distributions(LogitsProcessor):  # type: ignore[misc]
    """Keeps what `generate` chooses from: a row (V,) of log-probabilities for each place in the text, drafts included.
    Drafting asks too, before the model has said anything: what is said last of a place counts."""

    def __init__(self) -> None:
        self._rows: dict[int, torch.Tensor] = {}

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Shapes: input_ids (1, length so far), scores (1, V) float32."""
        self._rows[input_ids.shape[1]] = scores[0].float().log_softmax(-1)
        return scores

    def take(self) -> dict[int, torch.Tensor]:
        """The rows of the step that has ended."""
        rows, self._rows = self._rows, {}
        return rows
