"""Bodies: no more bytes than the mode allows, none that trickle in for ever, and none that name a file."""

import asyncio
import json
from typing import Any, NoReturn

from ui.gate.asgi import Message, Receive, Refused, Scope, header

WHOLE_BODY_S = 20.0
"""How long a body may take to arrive."""

MAX_DEPTH = 32
"""How many objects and lists of a body may lie within each other; the page sends fewer than ten."""


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


def read_json(body: bytes) -> Any:
    """The value of a JSON body that names no file. Refused for any other body.

    Before Gradio calls a handler it looks at every value, at any depth, for objects that describe a file by its "path",
    and fetches or copies that file. Nobody sends files to this page, so such objects are refused, whatever else they
    hold (`is_file_obj` and its kin in `gradio_client.utils`). What is handed on must be written anew from the value
    returned here: of two keys of the same name, another reader might take the other one.
    """
    try:
        value = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise Refused(400, "This request cannot be read. Reload the page.") from None
    level = [value]
    for _ in range(MAX_DEPTH):
        if any(isinstance(each, dict) and isinstance(each.get("path"), str) for each in level):
            raise Refused(400, "This page takes no files, and this request names one. Send the text itself.")
        level = [
            part
            for each in level
            if isinstance(each, dict | list)
            for part in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return value
    raise Refused(400, f"No more than {MAX_DEPTH} levels may lie within each other here. Send a flatter value.")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _too_large(most: int) -> Refused:
    sentence = f"No more than {most:,} bytes may be sent here. Shorten the prompt, or choose a smaller file."
    return Refused(413, sentence, [(b"connection", b"close")])
