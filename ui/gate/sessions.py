"""Sessions: Gradio knows a browser tab by a word that the browser chose, and asks nobody whose it is.

With another visitor's word one could read the answers to that visitor's events, or end them. So Gradio never sees the
word itself: the gate sends on a digest of it and of the visitor, which nobody else can bring about. Of a request to
Gradio only the fields that the page sends are kept; others, such as the id of an event, name things of other visitors.
A body that names a file is refused (`ui.gate.body`).

Gradio also keeps, for every session, the answers that nobody has fetched. The oldest are forgotten here, those of the
address with the most sessions first; and an address may wait for so many answers only.
"""

import hashlib
import hmac
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Protocol
from urllib.parse import parse_qsl

from backend.hosting.limits import Limits
from backend.hosting.visitor import Visitor
from ui.gate.asgi import Message, Receive, Refused, Scope, header
from ui.gate.body import read_json
from ui.gate.routes import API, MCP

JOIN, STREAM, HEARTBEAT = f"{API}/queue/join", f"{API}/queue/data", f"{API}/heartbeat/"
PULL, SHARED = f"{API}/component_server", "viewers"
"""What a viewer pulls is the run's and no session's. Gradio would keep a copy of the whole page for each viewer, so all
of them share one, in which nothing is ever changed."""

FIELDS = ("data", "event_data", "fn_index", "trigger_id", "session_hash", "component_id", "fn_name")
MAX_WORD = 64
LEFT_S = 60.0
"""After so long nobody waits for an answer: the tab was closed."""


class Answers(Protocol):
    """What is kept for sessions, by their names."""

    def known(self, name: str) -> bool:
        """Whether a session asked for anything that it fetches as a stream."""
        ...

    def waiting(self, name: str) -> int:
        """Events of a session that are not answered, or whose answer was not fetched."""
        ...

    def forget(self, name: str) -> None:
        """Drop them all."""
        ...


class GradioAnswers:
    """Of a `gr.Blocks`, whose queue has no interface for it (Gradio 6.31)."""

    def __init__(self, blocks: Any) -> None:
        self._blocks = blocks

    def known(self, name: str) -> bool:
        return name in self._blocks._queue.pending_messages_per_session

    def waiting(self, name: str) -> int:
        return len(self._blocks._queue.pending_event_ids_session.get(name, ()))

    def forget(self, name: str) -> None:
        queue = self._blocks._queue
        for number in queue.pending_event_ids_session.pop(name, ()):
            event = queue.event_ids_to_events.pop(number, None)
            if event is not None:
                event.alive = False
        queue.pending_messages_per_session.pop(name, None)


class Sessions:
    """Whose each session is. `answers`: what is kept for them, once there is something."""

    def __init__(self, limits: Limits) -> None:
        self.answers: Answers | None = None
        self._limits, self._key = limits, secrets.token_bytes(32)
        self._by_address: dict[str, OrderedDict[str, float]] = {}  # of each session when it last asked for something

    def name(self, visitor: Visitor, word: str) -> str:
        """What Gradio knows a visitor's session by."""
        said = f"{visitor.owner}\0{word}".encode("utf-8", "surrogatepass")
        return hmac.new(self._key, said, hashlib.sha256).hexdigest()[:32]

    def keep(self, address: str, name: str) -> None:
        """This session will get an answer; the oldest may have to go. Refused where too many are waited for."""
        mine, now_s = self._by_address.setdefault(address, OrderedDict()), time.monotonic()
        if self._waiting(mine) >= (self._limits.address_events or float("inf")):
            for old in [each for each, at_s in mine.items() if at_s < now_s - LEFT_S]:  # tabs that were closed
                self._forget(address, old)
            if self._waiting(mine) >= (self._limits.address_events or float("inf")):
                raise Refused(429, "Too many requests from this address wait for an answer. Try again in a minute.")
        self._by_address[address] = mine
        mine[name] = now_s
        mine.move_to_end(name)
        while sum(map(len, self._by_address.values())) > self._limits.sessions:
            largest = max(self._by_address, key=lambda each: len(self._by_address[each]))
            self._forget(largest, next(iter(self._by_address[largest])))

    def _waiting(self, names: Iterable[str]) -> int:
        return sum(map(self.answers.waiting, names)) if self.answers else 0

    def _forget(self, address: str, name: str) -> None:
        del self._by_address[address][name]
        if not self._by_address[address]:
            del self._by_address[address]
        if self.answers:
            self.answers.forget(name)

    # --- requests ---------------------------------------------------------------------------------

    def concerns(self, method: str, path: str) -> bool:
        """Whether a request has a body, or names a session without one."""
        return method == "POST" or path.rstrip("/") == STREAM or path.startswith(HEARTBEAT)

    async def rewrite(self, scope: Scope, receive: Receive, visitor: Visitor) -> Receive:
        """Put the visitor's own session into a request. Refused for a body that cannot be one."""
        if scope["method"] == "POST":
            return await self._body(scope, receive, visitor)
        if scope["path"].startswith(HEARTBEAT):
            scope["path"] = HEARTBEAT + self.name(visitor, scope["path"].removeprefix(HEARTBEAT).rstrip("/"))
            scope["raw_path"] = scope["path"].encode()
            return receive
        words = [value for key, value in _pairs(scope["query_string"]) if key == "session_hash"]
        if len(words) != 1:
            raise Refused(400, "This address names no session. Reload the page.")
        name = self.name(visitor, words[0])
        if self.answers and not self.answers.known(name):  # Gradio would begin to answer, and break off
            raise Refused(404, "This session has ended, or never began. Reload the page.")
        scope["query_string"] = f"session_hash={name}".encode()
        return receive

    async def _body(self, scope: Scope, receive: Receive, visitor: Visitor) -> Receive:
        if header(scope, b"content-type").partition(";")[0].strip().lower() != "application/json":
            raise Refused(415, "A request must be JSON, with the header Content-Type: application/json.")
        whole, last = bytearray(), False
        while not last:
            message = await receive()
            if message["type"] != "http.request":
                return once(message, receive)
            whole += message.get("body", b"")
            last = not message.get("more_body", False)
        value = read_json(bytes(whole))
        if scope["path"].rstrip("/") != MCP:  # whose clients name no session
            value = self._fields(value, scope["path"], visitor)
        body = json.dumps(value, separators=(",", ":")).encode()
        kept = [(key, value) for key, value in scope["headers"] if key not in (b"content-length", b"transfer-encoding")]
        scope["headers"] = [*kept, (b"content-length", str(len(body)).encode())]
        return once({"type": "http.request", "body": body, "more_body": False}, receive)

    def _fields(self, value: Any, path: str, visitor: Visitor) -> dict[str, Any]:
        if not isinstance(value, dict) or not isinstance(value.get("session_hash"), str | None):
            raise Refused(400, "This request cannot be read. Reload the page.")
        kept = {name: value[name] for name in FIELDS if name in value}
        word: str | None = value.get("session_hash")
        if word is not None:
            if len(word) > MAX_WORD:
                raise Refused(400, f"The name of a session may have {MAX_WORD} characters. Reload the page.")
            name = SHARED if path.rstrip("/") == PULL else self.name(visitor, word)
            kept["session_hash"] = name
            if path.rstrip("/") == JOIN:
                self.keep(visitor.address, name)
        return kept


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query.decode("ascii"), max_num_fields=16)
    except ValueError:
        return []


def once(message: Message, then: Receive) -> Receive:
    """Receives this message, and what comes after it."""
    left = [message]

    async def receive() -> Message:
        return left.pop() if left else await then()

    return receive
