"""What is sent to Gradio: in time, not too large, naming no file, and a session that is the visitor's alone.

Gradio knows a browser tab by a word that the browser chose, and asks nobody whose it is. With another visitor's word
one could read the answers to that visitor's events, or end them. So Gradio never sees the word itself: the gate sends
on a digest of it and of the visitor, which nobody else can bring about. Of a request to Gradio only the fields that the
page sends are kept; others, such as the id of an event, name things of other visitors.

Gradio also keeps, for every session, the answers that nobody has fetched. The oldest are forgotten here, those of the
address with the most sessions first; and an address may wait for so many answers only.
"""

import asyncio
import hashlib
import hmac
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, NoReturn

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive

from tokendyno.backend.hosting.limits import Limits
from tokendyno.backend.hosting.visitor import Visitor
from tokendyno.ui.gate.routes import HEARTBEAT, JOIN, MCP, PULL, STREAM

WHOLE_BODY_S = 20.0
"""How long a body may take to arrive."""

MAX_DEPTH = 32
"""How many objects and lists of a body may lie within each other; the page sends fewer than ten."""

SHARED = "viewers"
"""What a viewer pulls is the run's and no session's. Gradio would keep a copy of the whole page for each viewer, so all
of them share one, in which nothing is ever changed."""

FIELDS = ("data", "event_data", "fn_index", "trigger_id", "session_hash", "component_id", "fn_name")
MAX_WORD = 64
LEFT_S = 60.0
"""After so long nobody waits for an answer: the tab was closed."""


# --- bodies ---------------------------------------------------------------------------------------


def bounded(request: Request, max_bytes: int) -> Request:
    """The same request, whose body raises HTTPException once it is larger than `max_bytes`, or late."""
    length = request.headers.get("content-length", "0")
    too_large = HTTPException(
        413,
        f"No more than {max_bytes:,} bytes may be sent here. Shorten the prompt, or choose a smaller file.",
        {"Connection": "close"},
    )
    if "content-length" in request.headers and "transfer-encoding" in request.headers:
        # a proxy in between may read its end elsewhere
        sentence = "A request has either a length or comes in parts. Send it again."
        raise HTTPException(400, sentence, {"Connection": "close"})
    if int(length) > max_bytes:
        raise too_large
    seen, complete, deadline_s = 0, False, asyncio.get_running_loop().time() + WHOLE_BODY_S

    async def receive() -> Message:
        nonlocal seen, complete
        if complete:  # what follows is the end of the connection, which may be far away
            return await request.receive()
        try:
            async with asyncio.timeout_at(deadline_s):
                message = await request.receive()
        except TimeoutError:
            sentence = f"The request did not arrive within {WHOLE_BODY_S:.0f} s. Send it again."
            raise HTTPException(408, sentence) from None
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if seen > max_bytes:
                raise too_large
        return message

    return Request(request.scope, receive)


def read_json(body: bytes) -> Any:
    """The value of a JSON body that names no file. HTTPException for any other body.

    Before Gradio calls a handler it looks at every value, at any depth, for objects that describe a file by its "path",
    and fetches or copies that file. Nobody sends files to this page, so such objects are refused, whatever else they
    hold (`is_file_obj` and its kin in `gradio_client.utils`). What is handed on must be written anew from the value
    returned here: of two keys of the same name, another reader might take the other one.
    """
    try:
        value = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise HTTPException(400, "This request cannot be read. Reload the page.") from None
    level = [value]
    for _ in range(MAX_DEPTH):
        if any(isinstance(each, dict) and isinstance(each.get("path"), str) for each in level):
            raise HTTPException(400, "This page takes no files, and this request names one. Send the text itself.")
        level = [
            part
            for each in level
            if isinstance(each, dict | list)
            for part in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return value
    raise HTTPException(400, f"No more than {MAX_DEPTH} levels may lie within each other here. Send a flatter value.")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def with_body(request: Request, value: Any) -> Receive:
    """Receives this value as the body of a request, and then what follows it."""
    body = json.dumps(value, separators=(",", ":")).encode()
    headers = MutableHeaders(scope=request.scope)
    del headers["transfer-encoding"]
    headers["content-length"] = str(len(body))
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return left.pop() if left else await request.receive()

    return receive


# --- sessions -------------------------------------------------------------------------------------


class Sessions:
    """Whose each session is. `blocks`: the `gr.Blocks` whose queue keeps their answers, and has no interface for it
    (Gradio 6.31)."""

    def __init__(self, limits: Limits, blocks: Any) -> None:
        self._limits, self._blocks, self._key = limits, blocks, secrets.token_bytes(32)
        self._by_address: dict[str, OrderedDict[str, float]] = {}  # of each session when it last asked for something

    def name(self, visitor: Visitor, word: str) -> str:
        """What Gradio knows a visitor's session by."""
        owner_and_word = f"{visitor.owner}\0{word}".encode("utf-8", "surrogatepass")
        return hmac.new(self._key, owner_and_word, hashlib.sha256).hexdigest()[:32]

    def keep(self, address: str, name: str) -> None:
        """This session will get an answer; the oldest may have to go. HTTPException where too many are waited for."""
        sessions, now_s = self._by_address.setdefault(address, OrderedDict()), time.monotonic()
        max_waiting = self._limits.address_events or float("inf")
        if self._waiting(sessions) >= max_waiting:
            closed = [session for session, at_s in sessions.items() if at_s < now_s - LEFT_S]  # with their tabs
            for session in closed:
                self._forget(address, session)
            if self._waiting(sessions) >= max_waiting:
                raise HTTPException(
                    429, "Too many requests from this address wait for an answer. Try again in a minute."
                )
        self._by_address[address] = sessions
        sessions[name] = now_s
        sessions.move_to_end(name)
        while sum(map(len, self._by_address.values())) > self._limits.sessions:
            busiest = max(self._by_address, key=lambda owner: len(self._by_address[owner]))
            self._forget(busiest, next(iter(self._by_address[busiest])))

    def _waiting(self, names: Iterable[str]) -> int:
        """Events of these sessions that are not answered, or whose answer was not fetched."""
        return sum(len(self._blocks._queue.pending_event_ids_session.get(name, ())) for name in names)

    def _forget(self, address: str, name: str) -> None:
        del self._by_address[address][name]
        if not self._by_address[address]:
            del self._by_address[address]
        queue = self._blocks._queue
        for number in queue.pending_event_ids_session.pop(name, ()):
            event = queue.event_ids_to_events.pop(number, None)
            if event is not None:
                event.alive = False
        queue.pending_messages_per_session.pop(name, None)

    # --- requests ---------------------------------------------------------------------------------

    def names_one(self, path: str) -> bool:
        """Whether a request without a body names a session."""
        return path.rstrip("/") == STREAM or path.startswith(HEARTBEAT)

    def rename(self, request: Request, visitor: Visitor) -> None:
        """Put the visitor's own session into such a request."""
        scope = request.scope
        if scope["path"].startswith(HEARTBEAT):
            scope["path"] = HEARTBEAT + self.name(visitor, scope["path"].removeprefix(HEARTBEAT).rstrip("/"))
            scope["raw_path"] = scope["path"].encode()
            return
        words = request.query_params.getlist("session_hash")
        if len(words) != 1 or not words[0]:
            raise HTTPException(400, "This address names no session. Reload the page.")
        name = self.name(visitor, words[0])
        if name not in self._blocks._queue.pending_messages_per_session:  # Gradio would begin to answer, and break off
            raise HTTPException(404, "This session has ended, or never began. Reload the page.")
        scope["query_string"] = f"session_hash={name}".encode()

    async def read(self, request: Request, visitor: Visitor) -> Any:
        """What a request sends to Gradio, with the visitor's own session in it."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise HTTPException(415, "A request must be JSON, with the header Content-Type: application/json.")
        value, path = read_json(await request.body()), request.scope["path"].rstrip("/")
        if path == MCP:  # whose clients name no session
            return value
        if not isinstance(value, dict) or not isinstance(word := value.get("session_hash"), str | None):
            raise HTTPException(400, "This request cannot be read. Reload the page.")
        fields = {name: value[name] for name in FIELDS if name in value}
        if word is not None:
            if len(word) > MAX_WORD:
                raise HTTPException(400, f"The name of a session may have {MAX_WORD} characters. Reload the page.")
            fields["session_hash"] = SHARED if path == PULL else self.name(visitor, word)
            if path == JOIN:
                self.keep(visitor.address, fields["session_hash"])
        return fields
