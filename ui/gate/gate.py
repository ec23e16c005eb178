"""The gate: host and origin, route, body, visitor, session, in this order. What passes carries its visitor in its
scope, and names a session that is that visitor's alone."""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from backend.errors import InputError
from backend.hosting.visitor import Visitor
from ui.errors import log_unexpected
from ui.gate.asgi import App, Message, Receive, Refused, Scope, Send, answer, refuse, whole_body
from ui.gate.body import bounded
from ui.gate.hosts import Hosts
from ui.gate.lines import Lines
from ui.gate.login import login_page, logout_page, read_form, safe_query
from ui.gate.pulls import Pulls
from ui.gate.routes import exists, open_to_all, without_gradios_own
from ui.gate.sessions import Sessions
from ui.gate.visitors import Visitors
from ui.visitor import KEY

log = logging.getLogger("tokendyno.gate")

LOGIN, LOGOUT = "/login", "/logout"
GREETED = ("/", "/config")
"""Where a guest takes a cookie: browsers ask for the first before anything else, `gradio_client` for the second."""
MAX_LOGIN_BYTES = 4_096
HASHING = 2
"""Passwords that are hashed at a time, each with 16 MiB; further ones wait."""

NO_COOKIE = (
    "This page tells visitors apart by a cookie, and none was sent. Allow cookies for this site, then reload the page."
)


class OwnAnswers(Protocol):
    """Addresses that are answered without Gradio, for visitors only (`ui.files.Files`)."""

    def serves(self, method: str, path: str) -> bool: ...

    async def answer(self, scope: Scope, receive: Receive, send: Send, visitor: Visitor) -> None: ...


class Gate:
    """ASGI middleware. `hosts`: the names of this server; `visitors`: who is who; `sessions`: whose browser tabs are
    whose; `pulls`: what is answered without Gradio; `mcp`: whether MCP clients are served; `files`: what else
    is answered without Gradio."""

    def __init__(
        self, app: App, hosts: Hosts, visitors: Visitors, sessions: Sessions | None = None,
        pulls: Pulls | None = None, mcp: bool = False, files: OwnAnswers | None = None,
    ) -> None:  # fmt: skip
        self._app, self._hosts, self._visitors = app, hosts, visitors
        self._sessions = sessions or Sessions(visitors.limits)
        self._pulls = pulls or Pulls()
        self._mcp, self._files = mcp, files
        self._lines = Lines(visitors.limits.address_requests)
        self._hashing = asyncio.Semaphore(HASHING)

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
            await self._pass(scope, receive, send_on)
        except Refused as refused:
            if begun:
                raise
            await refuse(send, refused)
        except InputError as error:  # the file of users cannot be read
            log.error("%s", error)
            if begun:
                raise
            await refuse(send, Refused(503, "Logins do not work now. The server's log says why."))
        except Exception:  # Gradio looks up what a request names without a check; handlers' own errors do not come here
            if begun or scope["method"] != "POST":
                raise
            log_unexpected(log, "a request could not be carried out")
            await refuse(send, Refused(400, "This page and its server do not match. Reload the page."))

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._hosts.check(scope)
        scope["headers"] = [each for each in scope["headers"] if each[0] != b"range"]  # Gradio fails on several ranges
        path, method = scope["path"], scope["method"]
        if self._visitors.must_log_in and path in (LOGIN, LOGOUT) and method in ("GET", "HEAD", "POST"):
            await self._account(scope, bounded(scope, receive, MAX_LOGIN_BYTES), send)
            return
        own = self._files if self._files is not None and self._files.serves(method, path) else None
        if own is None and not exists(method, path, self._mcp):
            raise Refused(404, "There is nothing at this address.")
        receive = bounded(scope, receive, self._visitors.limits.body_bytes)
        visitor = self._visitors.find(scope)
        if visitor is None and self._visitors.must_log_in and not open_to_all(path):
            if path == "/" and method != "POST":
                await _go(send, _with(LOGIN, safe_query(scope["query_string"])))
                return
            raise Refused(401, "Log in first, or send a token as Authorization: Bearer.")
        if visitor is None and not self._visitors.must_log_in and path in GREETED:
            visitor, cookie = self._visitors.new_guest(scope)
            send = _adding(send, cookie)
        named = own is None and self._sessions.concerns(method, path)
        if visitor is None and (named or own is not None):
            raise Refused(401, NO_COOKIE)
        if visitor is not None:
            scope[KEY] = visitor
            receive = await self._sessions.rewrite(scope, receive, visitor) if named else receive
        if path == "/":
            scope["query_string"] = without_gradios_own(scope["query_string"])
        if own is not None and visitor is not None:
            async with self._lines.turn(visitor.address) as end_turn:
                await own.answer(scope, receive, _calling(end_turn, send), visitor)
            return
        async with self._lines.turn(visitor.address if visitor and method == "POST" else "") as end_turn:
            send = _calling(end_turn, send)
            left = await self._pulls.answer(scope, receive, send)
            if left is not None:
                await self._app(scope, left, send)

    # --- logins -----------------------------------------------------------------------------------

    async def _account(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == LOGOUT:
            await self._log_out(scope, send)
            return
        query = safe_query(scope["query_string"])
        if scope["method"] != "POST":
            page, headers = login_page(query)
            await answer(send, 200, page, "text/html; charset=utf-8", headers)
            return
        form = read_form(await whole_body(receive))
        status, alert = 401, "This user name and password do not belong together. Try again."
        try:
            async with self._hashing:
                name, password = form.get("name", ""), form.get("password", "")
                cookie = await asyncio.to_thread(self._visitors.log_in, scope, name, password)
            if cookie is not None:
                await _go(send, _with("/", query), cookie)
                return
        except Refused as refused:
            status, alert = refused.status, refused.sentence
        page, headers = login_page(query, alert)
        await answer(send, status, page, "text/html; charset=utf-8", headers)

    async def _log_out(self, scope: Scope, send: Send) -> None:
        visitor = self._visitors.find(scope)
        if scope["method"] == "POST":
            await _go(send, LOGIN, self._visitors.log_out(scope))
        elif visitor is None:
            await _go(send, LOGIN)
        else:
            page, headers = logout_page(visitor.name)
            await answer(send, 200, page, "text/html; charset=utf-8", headers)


async def _go(send: Send, path: str, cookie: tuple[bytes, bytes] | None = None) -> None:
    """Redirect, relative to the present address, so that it also holds behind a proxy's sub-path."""
    target = "." + path if path.startswith("/") else path
    await answer(send, 303, b"", "text/plain", [(b"location", target.encode()), *([cookie] if cookie else [])])


def _with(path: str, query: str) -> str:
    return f"{path}?{query}" if query else path


def _calling(first: Callable[[], None], send: Send) -> Send:
    async def call_and_send(message: Message) -> None:
        first()
        await send(message)

    return call_and_send


def _adding(send: Send, cookie: tuple[bytes, bytes]) -> Send:
    async def send_with_cookie(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), cookie, (b"cache-control", b"no-store")]
        await send(message)

    return send_with_cookie
