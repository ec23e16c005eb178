"""The gate: host and origin, route, body, visitor, session, in this order. What passes carries its visitor in its
scope, and names a session that is that visitor's alone."""

import asyncio
import inspect
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from weakref import WeakValueDictionary

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tokendyno.backend.errors import InputError
from tokendyno.backend.redact import redact
from tokendyno.ui.errors import log_unexpected
from tokendyno.ui.files import Files
from tokendyno.ui.gate.routes import PULL, Hosts, exists, open_to_all, without_gradios_own
from tokendyno.ui.gate.sessions import Sessions, bounded, with_body
from tokendyno.ui.gate.visitors import Visitors, go
from tokendyno.ui.live.pace import PACE
from tokendyno.ui.visitor import KEY

log = logging.getLogger("tokendyno.gate")

GREETED = ("/", "/config")
"""Where a guest takes a cookie: browsers ask for the first before anything else, `gradio_client` for the second."""
MAX_LOGIN_BYTES = 4_096

NO_COOKIE = (
    "This page tells visitors apart by a cookie, and none was sent. Allow cookies for this site, then reload the page."
)


class Turns:
    """Requests of one address: so many (`most`; None: all) are answered at a time, further ones wait, so that nobody
    has all of the server."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._by_address: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        """Wait for this request's turn; "" never waits. It ends with the context, or as soon as what is handed out is
        called: a turn lasts while an answer is made, not while somebody takes their time to read it."""
        async with AsyncExitStack() as stack:
            if address and self._most is not None:
                turns = self._by_address.setdefault(address, asyncio.Semaphore(self._most))
                await stack.enter_async_context(turns)
            yield stack.aclose


class Gate:
    """ASGI middleware. `blocks`: the page (`gr.Blocks`); `hosts`: the names of this server; `visitors`: who is who;
    `mcp`: whether MCP clients are served; `files`: what else is answered without Gradio."""

    def __init__(
        self, app: ASGIApp, blocks: Any, hosts: Hosts, visitors: Visitors, mcp: bool = False, files: Files | None = None
    ) -> None:
        self._app, self._hosts, self._visitors = app, hosts, visitors
        self._mcp, self._files = mcp, files
        self._sessions, self._pulls = Sessions(visitors.limits, blocks), Pulls(blocks)
        self._turns = Turns(visitors.limits.address_requests)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # websockets: closed without a word, since nothing here speaks them
        begun = False

        async def send_on(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            response = await self._pass(Request(scope, receive), send_on)
        except ClientDisconnect:
            return
        except Exception as error:  # a handler's own errors do not come here
            if begun:
                raise
            if isinstance(error, HTTPException):
                refused = error
            elif isinstance(error, InputError):  # the file of users cannot be read
                log.error("%s", error)
                refused = HTTPException(503, "Logins do not work now. The server's log says why.")
            elif scope["method"] == "POST":  # Gradio looks up what a request names without a check
                log_unexpected(log, "a request could not be carried out")
                refused = HTTPException(400, "This page and its server do not match. Reload the page.")
            else:
                raise
            response = JSONResponse({"detail": redact(refused.detail)}, refused.status_code, refused.headers)
        if response is not None:
            response.headers["cache-control"] = "no-store"
            await response(scope, receive, send)

    async def _pass(self, request: Request, send: Send) -> Response | None:
        """The answer to a request; None if Gradio gave it. HTTPException says why it goes no further."""
        scope, method, path = request.scope, request.method, request.scope["path"]
        self._hosts.check(request)
        headers = MutableHeaders(scope=scope)
        del headers["range"]  # Gradio fails on several ranges
        if "cookie" in headers:  # no cookie of ours is quoted, and Python takes seconds to read a long one that is
            headers["cookie"] = headers["cookie"].replace('"', "")
        if self._visitors.must_log_in and path in ("/login", "/logout") and method in ("GET", "HEAD", "POST"):
            answer = self._visitors.login if path == "/login" else self._visitors.logout
            return await answer(bounded(request, MAX_LOGIN_BYTES))
        files = self._files if self._files is not None and self._files.serves(method, path) else None
        if files is None and not exists(method, path, self._mcp):
            raise HTTPException(404, "There is nothing at this address.")
        request = bounded(request, self._visitors.limits.body_bytes)
        visitor = self._visitors.find(request)
        if visitor is None and self._visitors.must_log_in and not open_to_all(path):
            if path == "/" and method != "POST":
                return go("/login", request)
            raise HTTPException(401, "Log in first, or send a token as Authorization: Bearer.")
        if visitor is None and not self._visitors.must_log_in:
            if path in GREETED:
                visitor, cookie = self._visitors.new_guest(request)
                send = _with_cookie(send, cookie)
            elif files is not None and files.previews(path):  # whoever previews a link keeps no cookie
                visitor, _ = self._visitors.new_guest(request)
        if path == "/":
            scope["query_string"] = without_gradios_own(scope["query_string"])
        if visitor is not None:
            scope[KEY] = visitor
        body: Any = None
        names_session = method == "POST" or self._sessions.names_one(path)
        if files is not None or names_session:
            if visitor is None:
                raise HTTPException(401, NO_COOKIE)
            if files is None and method == "POST":
                body = await self._sessions.read(request, visitor)
            elif files is None:
                self._sessions.rename(request, visitor)
        waits = method == "POST" or files is not None
        async with self._turns.turn(visitor.address if visitor and waits else "") as end_turn:
            if files is not None and visitor is not None:
                return await files.answer(request, visitor)
            if path.rstrip("/") == PULL and (response := await self._pulls.answer(body)):
                return response
            receive = request.receive if method != "POST" else with_body(request, body)
            await self._app(scope, receive, _first(end_turn, send))
        return None


def _first(begin: Callable[[], Awaitable[None]], send: Send) -> Send:
    async def begin_and_send(message: Message) -> None:
        await begin()
        await send(message)

    return begin_and_send


def _with_cookie(send: Send, cookie: str) -> Send:
    async def send_with_cookie(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.append("set-cookie", cookie)
            headers["cache-control"] = "no-store"
        await send(message)

    return send_with_cookie


# --- pulls ---------------------------------------------------------------------------------------

# What viewers pull, up to twelve times a second each, is answered here, past Gradio's layers, which take most of the
# time that such a request costs.


THREADS = 16
"""A pull of a run that has to be read from the disk may take a while."""


class Pulls:
    """The `pull` of each component of a `gr.Blocks` that takes a question and nothing else, by the component's id."""

    def __init__(self, blocks: Any) -> None:
        pulls: dict[int, Any] = {number: getattr(block, "pull", None) for number, block in blocks.blocks.items()}
        self.functions: dict[int, Callable[[Any], str]] = {
            number: pull
            for number, pull in pulls.items()
            if getattr(pull, "_is_server_fn", False) and len(inspect.signature(pull).parameters) == 1
        }
        self._threads = ThreadPoolExecutor(THREADS, "pull")

    async def answer(self, body: dict[str, Any]) -> JSONResponse | None:
        """The answer to what was sent for a component; None if it is no such pull."""
        number = body.get("component_id")
        pull = self.functions.get(number) if isinstance(number, int) and body.get("fn_name") == "pull" else None
        if pull is None:
            return None
        begin_s = time.monotonic()

        def work() -> JSONResponse:
            try:
                return JSONResponse(pull(body.get("data")))
            except StopIteration as error:  # a future cannot hold it: the viewer would never be answered
                raise RuntimeError("a pull looked for what is not there") from error

        response = await asyncio.get_running_loop().run_in_executor(self._threads, work)
        PACE.took(time.monotonic() - begin_s)
        return response
