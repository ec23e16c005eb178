"""What viewers pull, up to twelve times a second each: answered here, past Gradio's layers, which take most of the time
that such a request costs."""

import asyncio
import inspect
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.responses import JSONResponse

from tokendyno.ui.live.pace import PACE

THREADS = 16
"""A pull of a run that has to be read from the disk may take a while."""


class Pulls:
    """The `pull` of each component of a `gr.Blocks` that takes a question and nothing else, by the component's id."""

    def __init__(self, blocks: Any) -> None:
        found: dict[int, Any] = {number: getattr(block, "pull", None) for number, block in blocks.blocks.items()}
        self.functions: dict[int, Callable[[Any], str]] = {
            number: pull
            for number, pull in found.items()
            if getattr(pull, "_is_server_fn", False) and len(inspect.signature(pull).parameters) == 1
        }
        self._threads = ThreadPoolExecutor(THREADS, "pull")

    async def answer(self, sent: dict[str, Any]) -> JSONResponse | None:
        """The answer to what was sent for a component; None if it is no such pull."""
        number = sent.get("component_id")
        pull = self.functions.get(number) if isinstance(number, int) and sent.get("fn_name") == "pull" else None
        if pull is None:
            return None
        begin_s = time.monotonic()

        def work() -> JSONResponse:
            try:
                return JSONResponse(pull(sent.get("data")))
            except StopIteration as error:  # a future cannot hold it: the viewer would never be answered
                raise RuntimeError("a pull looked for what is not there") from error

        response = await asyncio.get_running_loop().run_in_executor(self._threads, work)
        PACE.took(time.monotonic() - begin_s)
        return response
