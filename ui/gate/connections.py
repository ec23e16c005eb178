"""Connections: how many may be open, at all and from one address, and how long one may take to ask for something.

uvicorn bounds neither: a client that opens connections and sends nothing, or a header that never ends, would keep them
until no file can be opened any more.
"""

import asyncio
from collections import Counter
from typing import Any

from backend.hosting.limits import Limits

REQUEST_S = 15.0
"""How long a connection may take from its beginning, or from the end of a response, to the end of the next header."""

MAX_HEADER_BYTES = 64 * 1024
HEADER_END = b"\r\n\r\n"
LOOK_EVERY_S = 5.0


def bound_connections(server: Any, limits: Limits) -> None:
    """From now on the server of Gradio (a `uvicorn.Server`) takes no connections over the limits."""
    base: Any = server.config.http_protocol_class
    open_by_address: Counter[str] = Counter()

    class Bounded(base):  # type: ignore[misc]
        """A connection that is closed at once if there are too many, and later if it asks for nothing."""

        counted = ""
        idle_s = 0.0
        header_bytes = 0
        header_end = b""

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            address = self.client[0] if self.client else ""
            most = limits.address_connections
            if open_by_address.total() >= limits.connections or (most and open_by_address[address] >= most):
                transport.abort()
                return
            self.counted = address or "-"
            open_by_address[self.counted] += 1
            self.loop.call_later(LOOK_EVERY_S, self.look)

        def connection_lost(self, exc: Exception | None) -> None:
            if self.counted:
                open_by_address[self.counted] -= 1
                if not open_by_address[self.counted]:
                    del open_by_address[self.counted]
                self.counted = ""
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            before = self.cycle
            if before is None or not before.more_body:  # what comes is a header
                found = (self.header_end + data).find(
                    HEADER_END
                )  # what follows it is a body, in one piece with the header
                self.header_bytes += len(data) if found < 0 else found
                self.header_end = data[-len(HEADER_END) + 1 :]
                if self.header_bytes > MAX_HEADER_BYTES:
                    self.transport.abort()
                    return
            super().data_received(data)
            if self.cycle is not before:
                self.header_bytes, self.header_end = 0, b""

        @property
        def waiting(self) -> bool:
            """Whether no request is being received or answered."""
            return self.cycle is None or bool(self.cycle.response_complete)

        def look(self) -> None:
            if not self.counted:
                return
            self.idle_s = self.idle_s + LOOK_EVERY_S if self.waiting else 0.0
            if self.idle_s >= REQUEST_S:
                self.transport.abort()
            else:
                self.loop.call_later(LOOK_EVERY_S, self.look)

    server.config.http_protocol_class = Bounded
