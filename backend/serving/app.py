"""The routes of `tokendyno serve`."""

import asyncio
import contextlib
import hmac
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tokendyno.backend.library.model import Model
from tokendyno.backend.redact import redact
from tokendyno.backend.serving.answers import Writer, error_answer, event
from tokendyno.backend.serving.metrics import CONTENT_TYPE, Metrics, Outcome
from tokendyno.backend.serving.schema import Chat, Completion, Refused, read
from tokendyno.backend.serving.stream import Generation, Turns
from tokendyno.ui.gate.routes import Hosts

MAX_BODY = 4 << 20
BODY_S = 30.0
"""A body that takes longer to arrive is not waited for."""
RETRY_S = 1

T = TypeVar("T")


class Served(msgspec.Struct):
    """A model, as `/v1/models` tells it."""

    id: str
    created: int
    arm: dict[str, str]
    max_model_len: int
    object: str = "model"
    owned_by: str = "tokendyno"


@dataclass
class Service:
    """One arm, and who may use it. `key`: what clients must send; "": nothing, and then requests to other names than
    `hosts` are refused."""

    model: Model
    name: str
    max_length: int
    turns: Turns
    key: str = ""
    hosts: Hosts = field(default_factory=Hosts)
    metrics: Metrics = field(default_factory=Metrics)
    started: int = field(default_factory=lambda: int(time.time()))

    def app(self) -> Starlette:
        """What uvicorn runs."""
        routes = [
            Route("/health", self._health),
            Route("/metrics", self._guarded(self._metrics)),
            Route("/v1/models", self._guarded(self._models)),
            Route("/v1/models/{name:path}", self._guarded(self._one_model)),
            Route("/v1/completions", self._guarded(self._completion), methods=["POST"]),
            Route("/v1/chat/completions", self._guarded(self._chat), methods=["POST"]),
        ]
        handlers: dict[Any, Any] = {
            Refused: self._refused,
            HTTPException: self._refused,
            ClientDisconnect: self._left,
            Exception: self._refused,
        }
        return Starlette(routes=routes, exception_handlers=handlers)

    # --- routes -----------------------------------------------------------------------------------

    async def _health(self, request: Request) -> Response:
        status = "stopping" if self.turns.closed else "failed" if self.model.failure else "ok"
        return _json({"status": status}, 200 if status == "ok" else 503)

    async def _metrics(self, request: Request) -> Response:
        text = self.metrics.text(self.turns.waiting, len(self.turns.running))
        return Response(text, media_type=CONTENT_TYPE)

    async def _models(self, request: Request) -> Response:
        return _json({"object": "list", "data": [self._served()]})

    async def _one_model(self, request: Request) -> Response:
        self._check_model(request.path_params["name"])
        return _json(self._served())

    async def _completion(self, request: Request) -> Response:
        return await self._answer(request, read(await _body(request), Completion))

    async def _chat(self, request: Request) -> Response:
        return await self._answer(request, read(await _body(request), Chat))

    async def _answer(self, request: Request, body: Completion | Chat) -> Response:
        self._check_model(body.model or self.name)
        generation = Generation(body, self.model, self.max_length, self.turns, self.metrics)
        await _unless_left(request, generation.begin())
        writer = Writer(body, self.name, generation, self.model.tokenizer)
        if body.stream:
            return Streamed(self._until_broken(writer), generation)
        try:
            return Response(await _unless_left(request, writer.whole()), media_type="application/json")
        finally:
            generation.leave()

    async def _until_broken(self, writer: Writer) -> AsyncIterator[bytes]:
        """The events; an error is one too, since the status has been sent."""
        try:
            async for data in writer.events():
                yield data
        except Refused as refused:
            self._count(refused)
            yield event(error_answer(refused))

    # --- who may ask, and for what ----------------------------------------------------------------

    def _guarded(self, route: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """The route for those who send the key; where there is none, for programs but not for pages of other sites."""

        async def guarded(request: Request) -> Response:
            if not self.key:
                self.hosts.check(request)
                return await route(request)
            scheme, _, token = request.headers.get("authorization", "").partition(" ")
            right = hmac.compare_digest(token.strip().encode("latin-1"), self.key.encode())
            if scheme.lower() != "bearer" or not right:
                sentence = "This server needs its key, as Authorization: Bearer KEY (TOKENDYNO_API_KEY where it runs)."
                raise Refused(sentence, 401, code="invalid_api_key")
            return await route(request)

        return guarded

    def _check_model(self, name: str) -> None:
        if name != self.name:
            sentence = f"This server has no model {name[:64]!r}; it serves {self.name!r}."
            raise Refused(sentence, 404, "model", "model_not_found")

    def _served(self) -> Served:
        return Served(self.name, self.started, self.model.choices, self.max_length)

    # --- errors -----------------------------------------------------------------------------------

    async def _refused(self, request: Request, error: Exception) -> Response:
        match error:
            case Refused():
                refused = error
            case HTTPException(status_code=status, detail=detail):
                sentences = {404: f"There is no {request.url.path[:64]} here.", 405: f"This takes no {request.method}."}
                refused = Refused(sentences.get(status, detail), status)
            case _:  # uvicorn logs it
                refused = Refused(f"Something broke: {redact(str(error))[:200] or type(error).__name__}.", 500)
        if request.method == "POST":
            self._count(refused)
        answer = _json(error_answer(refused), refused.status)
        if refused.status == 401:
            answer.headers["WWW-Authenticate"] = "Bearer"
        if refused.status in (429, 503):
            answer.headers["Retry-After"] = str(RETRY_S)
        if refused.status == 408:
            answer.headers["Connection"] = "close"  # the rest of the body is not read
        return answer

    async def _left(self, request: Request, error: Exception) -> Response:
        return Response(status_code=499)  # nobody reads it

    def _count(self, refused: Refused) -> None:
        outcomes: dict[int, Outcome] = {429: "full", 500: "failed", 503: "stopping"}
        self.metrics.requests[outcomes.get(refused.status, "refused")] += 1


class Streamed(StreamingResponse):
    """Server-sent events. Whatever ends them ends the generation."""

    def __init__(self, events: AsyncIterator[bytes], generation: Generation) -> None:
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self._generation = generation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Starlette cancels it once the client has left."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._generation.leave()


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


async def _body(request: Request) -> bytes:
    """The body. Refused where it is too slow, or too large: clients read that only once they have sent all of it."""
    body, size = bytearray(), 0
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                size += len(chunk)
                if size <= MAX_BODY:
                    body += chunk
    except TimeoutError:
        raise Refused(f"The body did not arrive within {BODY_S:.0f} s.", 408) from None
    if size > MAX_BODY:
        raise Refused(f"The body has {size:,} bytes, over the limit of {MAX_BODY:,}. Shorten the prompt.", 413)
    return bytes(body)


async def _unless_left(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which ends with ClientDisconnect once the client has left."""

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, watching = asyncio.create_task(work), asyncio.create_task(left())
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        for task in (working, watching):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task
