"""Connections: how many may be open, at all and from one address, how long one may take to ask for something, and how
much of what was asked for may wait to be read.

uvicorn bounds the size of a header and nothing else until a request is there: a client that opens connections and sends
nothing would keep them until no file can be opened any more (`limit_concurrency` counts at a request), and one that
asks for reports and never reads would fill the memory.
"""

import asyncio
import contextlib
import fcntl
import socket
import struct
import termios
import time
from collections import Counter
from functools import partial
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from tokendyno.backend.hosting.limits import Limits
from tokendyno.backend.hosting.visitor import counted_address

REQUEST_S = 15.0
"""How long a connection may take from its beginning, or from the end of a response, to the end of the next header."""

STALL_S = 30.0
"""How long a connection may take to read `STALL_BYTES` of an answer that waits for it."""

STALL_BYTES = 16 * 1024
"""With `STALL_S` half a KiB/s: no link on which the page could be used is slower."""

MAX_HEADER_BYTES = 64 * 1024
LOOK_EVERY_S = 5.0
"""How often a connection is looked at; one that has read nothing for so long counts as one that has stopped."""


def bound_connections(server: Any, limits: Limits) -> None:
    """From now on the server of Gradio (a `uvicorn.Server`) takes no connections over the limits."""
    server.config.ws_protocol_class = None  # with a package for them, websockets would not be counted, nor their ends
    server.config.h11_max_incomplete_event_size = MAX_HEADER_BYTES
    server.config.http_protocol_class = partial(Connection, Connections(limits))


class Connections:
    """All connections: how many each address has open, and those with an answer that waits to be read."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: Counter[str] = Counter()
        self.readers: set[Connection] = set()

    def add(self, address: str) -> bool:
        """Count a connection of this address, unless there are too many."""
        limit = self._limits.address_connections
        if self._open.total() >= self._limits.connections or (limit and self._open[address] >= limit):
            return False
        self._open[address] += 1
        return True

    def remove(self, address: str) -> None:
        self._open -= Counter([address])

    def enforce(self) -> None:
        """Drop connections until what waits to be read, of all and of one address, is within the limits: of the address
        with the most bytes first those that have stopped reading, then those that came last."""
        unread = {connection: connection.note_progress() for connection in self.readers}
        by_address: Counter[str] = Counter()
        for connection, unread_bytes in unread.items():
            by_address[connection.address] += unread_bytes
        most_of_address = self._limits.address_unread_bytes
        while by_address:
            address, unread_bytes = by_address.most_common(1)[0]
            over_address = most_of_address is not None and unread_bytes > most_of_address
            if not over_address and by_address.total() <= self._limits.unread_bytes:
                return
            connections = [reader for reader in self.readers if reader.address == address]
            stopped = [reader for reader in connections if reader.progress_s < time.monotonic() - LOOK_EVERY_S]
            newest = max(connections, key=lambda reader: reader.since_s)
            dropped = min(stopped, key=lambda reader: reader.progress_s, default=newest)
            by_address[address] -= unread[dropped]
            self.readers.discard(dropped)
            dropped.drop()


class CountingTransport:
    """Counts what is written to a transport. Everything else is the transport's own."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport, self.written = transport, 0

    def write(self, data: bytes) -> None:
        self.written += len(data)
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Connection(H11Protocol):
    """A connection that is closed at once if there are too many, and later if it asks for nothing or reads nothing.

    address         the one for which it counts; "" while it does not count
    idle_s          for how long it has asked for nothing
    since_s         when an answer began to wait to be read
    progress_s      when the other end was last seen to have read `STALL_BYTES` more, or all
    progress_bytes  how much it must have read for the next progress
    postponed       whether the next request is looked at only once the answer has been read
    """

    address = ""
    idle_s = since_s = progress_s = 0.0
    progress_bytes = 0
    postponed = False

    def __init__(self, pool: Connections, **options: Any) -> None:
        super().__init__(**options)
        self.pool = pool

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.counting = CountingTransport(transport)
        super().connection_made(self.counting)  # type: ignore[arg-type]
        address = (counted_address(self.client[0]) if self.client else "") or "-"
        if not self.pool.add(address):
            transport.abort()
            return
        self.address = address
        self.loop.call_later(LOOK_EVERY_S, self.look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.address:
            self.pool.remove(self.address)
            self.address = ""
        self.pool.readers.discard(self)
        super().connection_lost(exc)

    def look(self) -> None:
        """Close it if it has asked for nothing or read nothing for too long."""
        if not self.address:
            return
        self.update_backlog()
        reads = self in self.pool.readers
        waits = self.cycle is None or self.cycle.response_complete  # no request is being received or answered
        self.idle_s = self.idle_s + LOOK_EVERY_S if waits and not reads else 0.0
        if reads and time.monotonic() - self.progress_s >= STALL_S:
            self.drop()
        elif self.idle_s >= REQUEST_S:
            self.transport.abort()
        else:
            self.loop.call_later(LOOK_EVERY_S, self.look)

    # --- answers that wait to be read -------------------------------------------------------------

    def unread_bytes(self) -> int:
        """Bytes that wait here, and in the system until the other end has received them."""
        unread = self.transport.get_write_buffer_size()
        with contextlib.suppress(OSError, ValueError):  # no such call on this system; the connection is closed
            number = self.transport.get_extra_info("socket").fileno()
            (sent,) = struct.unpack("i", fcntl.ioctl(number, termios.TIOCOUTQ, bytes(4)))
            unread += sent
        return unread

    def drop(self) -> None:
        """Close without sending what is left, which the system would keep as long as nobody reads it."""
        link = self.transport.get_extra_info("socket")
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def note_progress(self) -> int:
        """Note how far the other end has read, for `progress_s`; returns the bytes that wait."""
        unread_bytes = self.unread_bytes()
        read_bytes = self.counting.written - unread_bytes
        if self not in self.pool.readers or read_bytes >= self.progress_bytes:
            self.progress_s, self.progress_bytes = time.monotonic(), read_bytes + min(unread_bytes, STALL_BYTES)
        return unread_bytes

    def update_backlog(self) -> None:
        """See to it that what waits to be read is counted, and within the limits."""
        if self.note_progress():
            if self not in self.pool.readers:
                self.pool.readers.add(self)
                self.since_s = self.progress_s
            self.pool.enforce()
        else:
            self.pool.readers.discard(self)

    def pause_writing(self) -> None:
        """Nothing more is read either: uvicorn would begin to answer it."""
        super().pause_writing()
        self.flow.pause_reading()
        if self.address:
            self.update_backlog()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.flow.resume_reading()
        if self.postponed:
            self.postponed = False
            super().on_response_complete()

    def on_response_complete(self) -> None:
        """The next request of a connection is looked at once most of the last answer has been read."""
        self.postponed = self.flow.write_paused
        if not self.postponed:
            super().on_response_complete()
