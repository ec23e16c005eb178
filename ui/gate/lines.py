"""Requests of one address: so many are answered at a time, further ones wait, so that nobody has all of the server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Lines:
    """A line for each address that has a request in it. `most`: answered at a time; None: all."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._lines: dict[str, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[None]:
        """Wait for this request's turn; "" never waits."""
        if not address or self._most is None:
            yield
            return
        line, many = self._lines.get(address) or (asyncio.Semaphore(self._most), 0)
        self._lines[address] = line, many + 1
        try:
            async with line:
                yield
        finally:
            line, many = self._lines.pop(address)
            if many > 1:
                self._lines[address] = line, many - 1
