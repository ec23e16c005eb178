"""The Content-Security-Policy: the page runs its own scripts only, and talks to this server only.

Gradio writes its settings into the page as inline scripts and builds components with `Function(...)`. Each script of
the page gets a nonce that is new in every response, so that a script or an event handler that somebody injects does
not run; `Function` must stay allowed. Whatever ran all the same could neither send nor fetch anything, since every
other address is blocked.
"""

import asyncio
import secrets
from collections.abc import Callable
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SCRIPT = b"<script"
"""Where the page's own scripts begin. Texts inside them cannot hold it: Gradio escapes every < in its settings."""

HEAD = b"<head>"
POLICY = "content-security-policy"

FIRST = Path(__file__).resolve().parent / "bundle" / "frames.js"
"""Runs before Gradio's own scripts, which keep the functions that they find."""

SPACES = "https://huggingface.co https://*.huggingface.co https://*.hf.space"
"""Whose pages show a Space in a frame."""


def policy(nonce: str = "", framed: bool = False) -> str:
    """The policy of a response. `nonce`: of the scripts in it; `framed`: the page is shown in a frame of Spaces."""
    inline, frames = f" 'nonce-{nonce}'" if nonce else "", f" {SPACES}" if framed else ""
    return "; ".join(
        (
            "default-src 'self'",
            f"script-src 'self' 'unsafe-eval'{inline}",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "media-src 'self' data: blob:",
            "connect-src 'self' data: blob:",
            "worker-src 'self' blob:",
            "object-src 'none'",
            "base-uri 'self'",
            "form-action 'self'",
            f"frame-ancestors 'self'{frames}",
        )
    )


class PolicyMiddleware:
    """Adds the headers to every response, and to an HTML page its first script and the nonce of each script. An HTML
    page is held back until it is complete, and `finish` changes it first; everything else passes as it comes."""

    def __init__(
        self, app: ASGIApp, framed: bool = False, finish: Callable[[Scope, bytes], bytes] | None = None
    ) -> None:
        self._app, self._framed, self._finish = app, framed, finish
        self._head = HEAD + SCRIPT + b">" + FIRST.read_bytes() + b"</script>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        page: Message | None = None
        parts: list[bytes] = []

        async def send_on(message: Message) -> None:
            nonlocal page
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["x-content-type-options"], headers["referrer-policy"] = "nosniff", "same-origin"
                if POLICY not in headers:
                    headers[POLICY] = policy(framed=self._framed)
                    attached = "content-disposition" in headers  # a report, which no browser shows under this address
                    if headers.get("content-type", "").startswith("text/html") and not attached:
                        page = message
                        return
            elif page is not None:
                parts.append(message.get("body", b""))
                if message.get("more_body", False):
                    return
                nonce, html, headers = secrets.token_urlsafe(16), b"".join(parts), MutableHeaders(scope=page)
                if self._finish is not None:
                    html = await asyncio.to_thread(self._finish, scope, html)
                html = html.replace(HEAD, self._head, 1)
                message["body"] = html.replace(SCRIPT, SCRIPT + f' nonce="{nonce}"'.encode())
                headers[POLICY] = policy(nonce, self._framed)
                del headers["content-length"]
                if scope["method"] != "HEAD":
                    headers["content-length"] = str(len(message["body"]))
                await send(page)
            await send(message)

        await self._app(scope, receive, send_on)
