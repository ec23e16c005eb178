"""Requests of one address: so many are answered at a time, further ones wait, so that nobody has all of the server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class Lines:
    """A line for each address that has a request in it. `most`: answered at a time; None: all."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._lines: dict[str, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[Callable[[], None]]:
        """Wait for this request's turn; "" never waits. It ends with the context, or as soon as what is handed out is
        called: a turn lasts while an answer is made, not while somebody takes their time to read it."""
        if not address or self._most is None:
            yield lambda: None
            return
        line, many = self._lines.get(address) or (asyncio.Semaphore(self._most), 0)
        self._lines[address] = line, many + 1
        held = False

        def end() -> None:
            nonlocal held
            if held:
                held = False
                line.release()

        try:
            await line.acquire()
            held = True
            yield end
        finally:
            end()
            line, many = self._lines.pop(address)
            if many > 1:
                self._lines[address] = line, many - 1
