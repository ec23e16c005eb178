"""Bodies: no more bytes than the mode allows, and none that trickle in for ever."""

import asyncio

from ui.gate.asgi import Message, Receive, Refused, Scope, header

WHOLE_BODY_S = 20.0
"""How long a body may take to arrive."""


def bounded(scope: Scope, receive: Receive, most: int) -> Receive:
    """`receive` that raises Refused once the body is larger than `most` bytes, or late. At once where it says so."""
    stated = header(scope, b"content-length")
    if stated and header(scope, b"transfer-encoding"):  # a proxy in between may read its end elsewhere
        raise Refused(
            400, "A request has either a length or comes in parts. Send it again.", [(b"connection", b"close")]
        )
    if stated and (not stated.isdecimal() or len(stated) > 18 or int(stated) > most):
        raise _too_large(most)
    seen, complete, deadline_s = 0, False, asyncio.get_running_loop().time() + WHOLE_BODY_S

    async def receive_bounded() -> Message:
        nonlocal seen, complete
        if complete:  # what follows is the end of the connection, which may be far away
            return await receive()
        try:
            async with asyncio.timeout_at(deadline_s):
                message = await receive()
        except TimeoutError:
            raise Refused(408, f"The request did not arrive within {WHOLE_BODY_S:.0f} s. Send it again.") from None
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if seen > most:
                raise _too_large(most)
        return message

    return receive_bounded


def _too_large(most: int) -> Refused:
    sentence = f"No more than {most:,} bytes may be sent here. Shorten the prompt, or choose a smaller file."
    return Refused(413, sentence, [(b"connection", b"close")])
