"""A text as it is generated for a client: its turn, its tokens from the model's thread, and where it stops."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tokendyno.backend.config import MAX_NEW_TOKENS
from tokendyno.backend.errors import InputError, RunFailed
from tokendyno.backend.library.model import Model
from tokendyno.backend.library.tokens import Token, TokenStream
from tokendyno.backend.serving.metrics import Metrics, Outcome
from tokendyno.backend.serving.schema import Chat, Completion, Refused
from tokendyno.backend.units import plural

Finish = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Piece:
    """What a text grows by. `tokens`: those that have come since the last piece; `finish`: why it ends here."""

    text: str
    tokens: list[Token] = field(default_factory=list)
    finish: Finish | None = None


class StopTexts:
    """Passes a text on up to where a stop begins, or may begin."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops, self._pending = stops, ""

    def feed(self, text: str) -> tuple[str, bool]:
        """What can be passed on, and whether a stop was met: of several the one that ends first."""
        text = self._pending + text
        met = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        if met:
            return text[: min(met)[1]], True
        begun = max((self._begun(text, stop) for stop in self._stops), default=0)
        self._pending = text[len(text) - begun :]
        return text[: len(text) - begun], False

    def rest(self) -> str:
        """What was held back, once no more comes."""
        return self._pending

    @staticmethod
    def _begun(text: str, stop: str) -> int:
        """How many characters at the end of a text are the beginning of a stop."""
        return next((size for size in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:size])), 0)


class Turns:
    """`at_once` texts at a time, in the order in which their prompts were read; `most_waiting` others may wait.

    inside  requests that wait or run
    closed  running texts end, and nothing begins
    """

    def __init__(self, most_waiting: int, at_once: int = 1) -> None:
        self._most_inside, self._places = most_waiting + at_once, asyncio.Semaphore(at_once)
        self.inside = 0
        self.running: set[Generation] = set()
        self.closed = False

    @property
    def waiting(self) -> int:
        """Requests that wait, or whose prompt is read."""
        return self.inside - len(self.running)

    def enter(self) -> None:
        """Take a place in the queue. Refused where it is full."""
        self._check_open()
        if self.inside >= self._most_inside:
            waiting = plural(self.waiting, "request")
            sentence = f"The queue is full: {waiting} waiting, as many as --queue allows. Try again later."
            raise Refused(sentence, 429, code="queue_full")
        self.inside += 1

    async def begin(self, generation: "Generation") -> None:
        """Wait for its turn."""
        await self._places.acquire()
        self.running.add(generation)
        self._check_open()

    def leave(self, generation: "Generation") -> None:
        """Let the next one begin."""
        self.inside -= 1
        if generation in self.running:
            self.running.remove(generation)
            self._places.release()

    def _check_open(self) -> None:
        if self.closed:
            raise Refused("This server is stopping and takes no further requests.", 503, code="stopping")


class Generation:
    """The text of one request. All of it happens in the event loop, but for a thread that waits for tokens: a client
    that reads slowly keeps nobody waiting."""

    def __init__(
        self, request: Completion | Chat, model: Model, max_length: int, turns: Turns, metrics: Metrics
    ) -> None:
        self.prompt_ids: list[int] = []
        self.tokens = 0
        self._request, self._model, self._max_length = request, model, max_length
        self._turns, self._metrics = turns, metrics
        self._stops, self._pending = StopTexts(request.stops), list[Token]()
        self._pieces: asyncio.Queue[Piece | Exception] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._first: asyncio.Future[float] = self._loop.create_future()  # when the first token came
        self._stream: TokenStream | None = None
        self._last: Piece | None = None
        self._over = False

    async def begin(self) -> None:
        """Read the prompt, wait for its turn and for the first token. Refused where there is none."""
        arrived_s = time.perf_counter()
        self._turns.enter()
        try:
            request = self._request
            self.prompt_ids = await asyncio.to_thread(
                self._model.prompt_ids, request.prompt_given, request.reasoning_effort
            )
            await self._turns.begin(self)
            self._stream = self._model.stream(
                self.prompt_ids, max_new_tokens=self._most_new(), logprobs=request.likely, **request.sampling()
            )
            threading.Thread(target=self._pump, args=(self._stream,), daemon=True).start()
            first_s = await self._first
        except Exception as error:
            self._end()
            raise refused(error) from None
        except asyncio.CancelledError:
            self._end("left")
            raise
        self._metrics.prompt_tokens += len(self.prompt_ids)
        self._metrics.first_token_s.observe(first_s - arrived_s)

    async def pieces(self) -> AsyncIterator[Piece]:
        """The text as it comes. Refused where it breaks off."""
        while True:
            piece = await self._pieces.get()
            if isinstance(piece, Exception):
                raise refused(piece)
            yield piece
            if piece.finish:
                break

    def leave(self) -> None:
        """Nobody reads on: end it."""
        self._end("left")

    def cut(self) -> None:
        """End it, since the server stops."""
        self._fail(Refused("This server stopped before the text was complete.", 503, code="stopping"))

    def _most_new(self) -> int:
        """Tokens to generate at most."""
        prompt, most_new = len(self.prompt_ids), self._request.most_new
        room = self._max_length - prompt
        if room < (most_new or 1):
            new = f" and {most_new:,} new ones were asked for" if most_new else ""
            raise Refused(
                f"The prompt has {plural(prompt, 'token')}{new}; this server takes {self._max_length:,} together "
                "(--max-length). Shorten the prompt, or ask for fewer tokens.",
                param="prompt" if room < 1 else "max_tokens",
                code="context_length_exceeded",
            )
        return min(room, MAX_NEW_TOKENS) if most_new is None else most_new

    def _pump(self, stream: TokenStream) -> None:
        """Hand tokens to the event loop, in a thread of its own; at the end of the server the loop may be closed."""
        with contextlib.suppress(RuntimeError):
            try:
                for token in stream:
                    self._loop.call_soon_threadsafe(self._take, token, time.perf_counter())
                self._loop.call_soon_threadsafe(self._complete)
            except Exception as error:
                self._loop.call_soon_threadsafe(self._fail, error)

    def _take(self, token: Token, now_s: float) -> None:
        if self._over:
            return
        self.tokens += 1
        self._metrics.completion_tokens += 1
        if not self._first.done():
            self._first.set_result(now_s)
        self._pending.append(token)
        text, met = self._stops.feed(token.text)
        finish: Finish | None = "stop" if met or token.stop == "eos" else "length" if token.stop else None
        if finish and not met:
            text += self._stops.rest()
        if finish and self.tokens > 1:
            self._metrics.each_token_s.observe((now_s - self._first.result()) / (self.tokens - 1))
        if finish:
            self._last = Piece(text, self._pending, finish)
        elif text:
            self._pieces.put_nowait(Piece(text, self._pending))
            self._pending = []
        if met:
            self._complete()

    def _complete(self) -> None:
        """The text is whole: the model's thread has ended without finding that scores are noise, or a stop was met."""
        if self._over:
            return
        if self._last is None:
            self._fail(RunFailed("The generation ended early. Try again."))
        else:
            self._pieces.put_nowait(self._last)
            self._end(self._last.finish)

    def _fail(self, error: Exception) -> None:
        if self._over:
            return
        if self._first.done():
            self._pieces.put_nowait(error)
        else:
            self._first.set_exception(error)
        self._end()

    def _end(self, outcome: Outcome | None = None) -> None:
        """Give the turn to the next one. `outcome`: for the metrics, unless whoever answers with an error counts it."""
        if self._over:
            return
        self._over = True
        if self._stream is not None:
            self._stream.close()
        self._turns.leave(self)
        if outcome is not None:
            self._metrics.requests[outcome] += 1


def refused(error: Exception) -> Refused:
    """What a client is told of an error. Raises one that is a fault of tokendyno's."""
    match error:
        case Refused():
            return error
        case InputError():
            name = str(error).partition(" ")[0]  # sentences about a field begin with it
            return Refused(str(error), param=name if name in Chat.__struct_fields__ else None)
        case RunFailed():
            return Refused(str(error), 500)
        case _:
            raise error
