"""Tokens of a loaded model, one by one as they come, or all together."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import wait
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Stop = Literal["", "eos", "length"]
"""Why a text ended with this token; "" where it goes on."""


class Likely(NamedTuple):
    """One of the likeliest tokens. `logprob`: natural logarithm of its probability."""

    id: int
    text: str
    logprob: float


@dataclass(frozen=True, slots=True)
class Token:
    """A generated token.

    text     what it adds to the text: "" until the character that it belongs to is complete, and of special tokens
    stop     why the text ends here, "" where it goes on
    logprob  natural logarithm of its probability, before temperature and filters; None where it was not asked for
    top      the likeliest tokens in its place, the likeliest first; empty where they were not asked for
    """

    index: int
    id: int
    text: str
    stop: Stop = ""
    logprob: float | None = None
    top: tuple[Likely, ...] = ()


@dataclass(frozen=True, slots=True)
class Generated:
    """A generated text, with the `ids` of its tokens; `tokens` where log-probabilities were asked for."""

    text: str
    ids: list[int]
    prompt_tokens: int
    stop: Stop
    tokens: list[Token] = field(default_factory=list)

    def __str__(self) -> str:
        return self.text


class TokenStream:
    """Iterates over the tokens of one text while the model's thread generates them. Closing it, by `close` or as a
    context manager, or dropping it, ends the generation after the token in flight. Use it from one thread at a time.

    prompt_ids  what the model reads
    Iterating raises InputError, or RunFailed where something broke.
    """

    def __init__(
        self,
        prompt_ids: list[int],
        max_new_tokens: int,
        stop_ids: frozenset[int],
        pieces: Any,
        tokenizer: Any,
        logprobs: int | None,
    ) -> None:
        self.prompt_ids = prompt_ids
        self._max_new_tokens, self._stop_ids, self._logprobs = max_new_tokens, stop_ids, logprobs
        self._tokenizer, self._pieces = tokenizer, pieces
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()  # None or an exception ends it
        self._closed = threading.Event()
        self._index, self._over = 0, False

    def begin(self, start: Callable[[Callable[[Any], object], Callable[[], bool]], Any]) -> "TokenStream":
        """Begin to generate. `start` is called with what receives each token and what says whether to stop, and returns
        a future."""
        events = self._events
        self._future = start(events.put, self._closed.is_set)
        self._future.add_done_callback(lambda future: events.put(future.exception()))
        return self

    def wait(self) -> None:
        """Wait for the last token, without waking up for each."""
        wait([self._future])

    def close(self) -> None:
        """End the generation. Iteration ends too."""
        self._closed.set()
        self._over = True

    def __iter__(self) -> "TokenStream":
        return self

    def __next__(self) -> Token:
        event = self._next()
        if event is None:
            raise StopIteration
        return self._token(event)

    def ids(self) -> tuple[list[int], Stop]:
        """The ids of the tokens that are left, and why the text ended."""
        ids = [event.id for event in iter(self._next, None)]
        return ids, self._stop(ids[-1], self._index + len(ids)) if ids else ""

    def _next(self) -> Any:
        """The next token as the model's thread reports it; None at the end."""
        event = None if self._over else self._events.get()
        self._over = event is None or isinstance(event, BaseException)
        if isinstance(event, BaseException):
            raise event
        return event

    def _stop(self, token: int, count: int) -> Stop:
        """Why the text ends after `count` tokens, of which `token` is the last."""
        return "eos" if token in self._stop_ids else "length" if count == self._max_new_tokens else ""

    def _token(self, event: Any) -> Token:
        index, self._index = self._index, self._index + 1
        decode, top = self._tokenizer.decode, event.likeliest[: self._logprobs or 0]
        return Token(
            index,
            event.id,
            self._pieces.piece(event.id),
            self._stop(event.id, self._index),
            event.nats,
            tuple(Likely(token, decode([token]), nats) for token, nats in top),
        )

    def __enter__(self) -> "TokenStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self._closed.set()
