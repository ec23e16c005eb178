"""What viewers pull, up to twelve times a second each: answered here, past Gradio's layers, which take most of the time
that such a request costs."""

import asyncio
import gzip
import inspect
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from backend.errors import UNDECODABLE
from ui.gate.asgi import Receive, Scope, Send, answer, header
from ui.gate.sessions import PULL, once
from ui.live.pace import PACE

Pull = Callable[[Any], str]

THREADS = 16
"""A pull of a run that has to be read from the disk may take a while."""

COMPRESSED_BYTES = 1_024


class _Question(msgspec.Struct):
    component_id: int
    fn_name: str
    data: Any = None


def pulls_of(blocks: Any) -> dict[int, Pull]:
    """The `pull` of each component of a `gr.Blocks` that takes a question and nothing else, by the component's id."""
    found: dict[int, Any] = {number: getattr(block, "pull", None) for number, block in blocks.blocks.items()}
    return {
        number: pull
        for number, pull in found.items()
        if getattr(pull, "_is_server_fn", False) and len(inspect.signature(pull).parameters) == 1
    }


class Pulls:
    """Answers those of these components; `functions` may be filled later."""

    def __init__(self) -> None:
        self.functions: Mapping[int, Pull] = {}
        self._threads = ThreadPoolExecutor(THREADS, "pull")

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> Receive | None:
        """Answer a request if it is such a pull; otherwise returns where its body can be received once more."""
        if not self.functions or scope["method"] != "POST" or scope["path"].rstrip("/") != PULL:
            return receive
        message = await receive()
        try:
            question = msgspec.json.decode(message.get("body", b""), type=_Question)
        except UNDECODABLE:
            return once(message, receive)
        pull = self.functions.get(question.component_id)
        if pull is None or question.fn_name != "pull":
            return once(message, receive)
        packed, begin_s = "gzip" in header(scope, b"accept-encoding"), time.monotonic()

        def work() -> tuple[bytes, bool]:
            try:
                said = msgspec.json.encode(pull(question.data))
            except StopIteration as error:  # a future cannot hold it: the viewer would never be answered
                raise RuntimeError("a pull looked for what is not there") from error
            small = not packed or len(said) < COMPRESSED_BYTES
            return (said, False) if small else (gzip.compress(said, 1), True)

        body, packed = await asyncio.get_running_loop().run_in_executor(self._threads, work)
        PACE.took(time.monotonic() - begin_s)
        more = [(b"content-encoding", b"gzip"), (b"vary", b"accept-encoding")] if packed else []
        await answer(send, 200, body, "application/json", more)
        return None
