"""What the parts of the gate share: ASGI's types, headers, and short answers."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

import msgspec

from backend.redact import redact

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]


class Refused(Exception):
    """The request goes no further: an HTTP status, and one sentence that says why."""

    def __init__(self, status: int, sentence: str, headers: Iterable[Header] = ()) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, tuple(headers)


def header(scope: Scope, name: bytes) -> str:
    """A header of the request, "" where it is missing. Of several the first: none that matters here may repeat."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def cookies(scope: Scope) -> dict[str, str]:
    """The cookies of the request; none where they cannot be read."""
    found: dict[str, str] = {}
    for part in header(scope, b"cookie")[:16_384].split(";"):
        jar: SimpleCookie = SimpleCookie()
        try:
            jar.load(part.strip())
        except CookieError:
            continue
        found |= {name: morsel.value for name, morsel in jar.items() if name not in found}
    return found


def set_cookie(name: str, value: str, max_age_s: int, *, framed: bool, secure: bool) -> Header:
    """A cookie that no script can read. `framed`: the page is shown in a frame of another site, as on a Space, where
    only a secure cookie in a partition of its own is kept."""
    where = "; Secure; SameSite=None; Partitioned" if framed else "; SameSite=Lax" + "; Secure" * secure
    return b"set-cookie", f"{name}={value}; Path=/; Max-Age={max_age_s}; HttpOnly{where}".encode()


async def whole_body(receive: Receive) -> bytes:
    """The body of a request; b"" of one that is gone."""
    parts = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


async def answer(send: Send, status: int, body: bytes, kind: str, headers: Iterable[Header] = ()) -> None:
    """A whole response. Nothing of what the gate says may be kept by a cache."""
    always = [
        (b"content-type", kind.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": [*always, *headers]})
    await send({"type": "http.response.body", "body": body})


async def refuse(send: Send, refused: Refused) -> None:
    """Say why, in the form in which Gradio's clients expect an error."""
    body = msgspec.json.encode({"detail": redact(refused.sentence)})
    await answer(send, refused.status, body, "application/json", refused.headers)
