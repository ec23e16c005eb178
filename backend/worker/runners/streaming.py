"""A text whose tokens are handed on as they come, and nothing is measured."""

import dataclasses
from collections.abc import Callable, Collection
from typing import Any

import torch
from transformers import LogitsProcessor

from tokendyno.backend.messages import Generate
from tokendyno.backend.worker.prove.profile import mark_step
from tokendyno.backend.worker.runners.course import Course
from tokendyno.backend.worker.runners.decode import Decoding, Unmeasured


@dataclasses.dataclass(frozen=True, slots=True)
class Token:
    """A token. `nats`: its log-probability, and that of the likeliest ones with their ids, the likeliest first; None
    and empty where nobody asked. They are of what the model says, before temperature and filters."""

    id: int
    nats: float | None = None
    likeliest: tuple[tuple[int, float], ...] = ()


def stream(
    course: Course,
    job: Generate,
    take: Callable[[Token], object],
    stop: Callable[[], bool],
    ends: Collection[int],
    likely: int,
) -> None:
    """Generate one text. NotFinite at the end where one of its tokens was chosen from noise.

    take    takes each token, in this thread
    stop    asked at each token: True ends the text
    ends    ids that end it, beside the model's own
    likely  how many of the likeliest tokens come with each; 0: none, and no log-probability
    """
    session, decoding = course.session, course.generation
    assert isinstance(decoding, Decoding)
    task = decoding.prepare(job)
    course.make_ready(task)
    cache = decoding.cache(task)
    torch.manual_seed(job.seed)
    session.best.forget()
    listener = _Listener(task.prompt.ids, take, stop, ends, likely)
    decoding.loop.generate(dataclasses.replace(task, listener=listener), cache, listener)
    session.compiling.publish()
    session.best.check()


class _Listener(Unmeasured):
    """A `generation.TokenListener` that hands on the tokens of one generation, of either loop."""

    likeliest: Any = None

    def __init__(
        self,
        ids: torch.Tensor,
        take: Callable[[Token], object],
        stop: Callable[[], bool],
        ends: Collection[int],
        likely: int,
    ) -> None:
        super().__init__(stop, ids)
        self._take, self._ends, self.likely = take, ends, likely
        self._length, self._taken, self._ended = ids.shape[1], 0, False
        self.processor = _Distributions() if likely else None

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """From `generate`, after each step. Shapes: input_ids (1, length so far); returns (1,) bool."""
        mark_step()
        rows = self.processor.take() if self.processor is not None else {}
        for place, token in enumerate(input_ids[0, self._length :].tolist(), self._length):
            self._hand_on(_of_row(token, rows[place], self.likely) if self.likely else Token(token))
        self._length = input_ids.shape[1]
        return self._answers[int(self.stopping())]

    def tell(self, event: Any, ids: list[int]) -> None:
        """From the custom loop, once a token is known to count."""
        if not self.likely:
            self._hand_on(Token(ids[0]))
            return
        likeliest, nats = self.likeliest(self._taken)
        self._hand_on(Token(ids[0], nats[0], tuple(zip(likeliest, nats[1:], strict=True))))

    def stopping(self) -> bool:
        return self._ended or super().stopping()

    def _hand_on(self, token: Token) -> None:
        if not self._ended:  # a step with drafts may come to tokens behind the last
            self._taken += 1
            self._ended = token.id in self._ends
            self._take(token)


def _of_row(token: int, nats: torch.Tensor, likely: int) -> Token:
    """A token with its log-probability and those of the likeliest, from log-probabilities (V,)."""
    best = nats.topk(likely)
    return Token(token, float(nats[token]), tuple(zip(best.indices.tolist(), best.values.tolist(), strict=True)))


class _Distributions(LogitsProcessor):  # type: ignore[misc]
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
