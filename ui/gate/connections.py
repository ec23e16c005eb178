"""Connections: how many may be open, at all and from one address, how long one may take to ask for something, and how
much of what was asked for may wait to be read.

uvicorn bounds none of it: a client that opens connections and sends nothing, or a header that never ends, would keep
them until no file can be opened any more, and one that asks for reports and never reads would fill the memory.
"""

import asyncio
import contextlib
import fcntl
import socket
import struct
import termios
import time
from collections import Counter
from typing import Any, Protocol

from backend.hosting.limits import Limits
from backend.hosting.visitor import counted_address

REQUEST_S = 15.0
"""How long a connection may take from its beginning, or from the end of a response, to the end of the next header."""

STALL_S = 30.0
"""How long a connection may take to read `STALL_BYTES` of an answer that waits for it."""

STALL_BYTES = 16 * 1024
"""With `STALL_S` half a KiB/s: no link on which the page could be used is slower."""

MAX_HEADER_BYTES = 64 * 1024
HEADER_END = b"\r\n\r\n"
LOOK_EVERY_S = 5.0
"""How often a connection is looked at; one that has read nothing for so long counts as one that has stopped."""


class Reader(Protocol):
    """A connection with an answer that waits to be read.

    counted     the address for which it counts
    since_s     since when an answer has been waiting
    progress_s  when the other end was last seen to have read `STALL_BYTES` more, or all
    """

    counted: str
    since_s: float
    progress_s: float

    def note_progress(self) -> int:
        """Note how far the other end has read, for `progress_s`; returns the bytes that wait."""
        ...

    def drop(self) -> None: ...


class Counting:
    """A transport that counts what is written to it. Everything else is the transport's own."""

    def __init__(self, transport: Any) -> None:
        self._transport, self.written = transport, 0

    def write(self, data: bytes) -> None:
        self.written += len(data)
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Backlog:
    """Bytes that wait to be read, of all connections and of those of one address. Past a limit, connections of the
    address with the most bytes are dropped: first those that have stopped reading, then those that came last."""

    def __init__(self, limits: Limits) -> None:
        self._most, self._most_of_address = limits.unread_bytes, limits.address_unread_bytes
        self.readers: set[Reader] = set()

    def enforce(self) -> None:
        """Drop connections until what waits is within the limits."""
        left = {each: each.note_progress() for each in self.readers}
        waiting: Counter[str] = Counter()
        for each, bytes_left in left.items():
            waiting[each.counted] += bytes_left
        while waiting:
            address, of_address = waiting.most_common(1)[0]
            over_address = self._most_of_address is not None and of_address > self._most_of_address
            if not over_address and waiting.total() <= self._most:
                return
            mine = [each for each in self.readers if each.counted == address]
            stopped = [each for each in mine if each.progress_s < time.monotonic() - LOOK_EVERY_S]
            newest = max(mine, key=lambda each: each.since_s)
            chosen = min(stopped, key=lambda each: each.progress_s, default=newest)
            waiting[address] -= left[chosen]
            self.readers.discard(chosen)
            chosen.drop()


def bound_connections(server: Any, limits: Limits) -> None:
    """From now on the server of Gradio (a `uvicorn.Server`) takes no connections over the limits."""
    server.config.ws_protocol_class = None  # with a package for them, websockets would not be counted, nor their ends
    base: Any = server.config.http_protocol_class
    open_by_address: Counter[str] = Counter()
    backlog = Backlog(limits)

    class Bounded(base):  # type: ignore[misc]
        """A connection that is closed at once if there are too many, and later if it asks for nothing or reads
        nothing."""

        counted = ""
        idle_s = 0.0
        since_s = 0.0
        progress_s = 0.0
        progress_bytes = 0
        postponed = False
        header_bytes = 0
        header_end = b""

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(Counting(transport))
            address = counted_address(self.client[0]) if self.client else ""
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
            backlog.readers.discard(self)
            super().connection_lost(exc)

        # --- answers that wait to be read ---------------------------------------------------------

        def unread_bytes(self) -> int:
            """Bytes that wait here, and in the system until the other end has received them: that takes megabytes, and
            then nothing for as long as a slow link needs for them."""
            held = int(self.transport.get_write_buffer_size())
            with contextlib.suppress(OSError, ValueError):  # no such call on this system; the connection is closed
                number = self.transport.get_extra_info("socket").fileno()
                (sent,) = struct.unpack("i", fcntl.ioctl(number, termios.TIOCOUTQ, bytes(4)))
                held += sent
            return held

        def drop(self) -> None:
            """Close without sending what is left, which the system would keep as long as nobody reads it."""
            link = self.transport.get_extra_info("socket")
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()

        def note_progress(self) -> int:
            left = self.unread_bytes()
            read = self.transport.written - left
            if self not in backlog.readers or read >= self.progress_bytes:
                self.progress_s, self.progress_bytes = time.monotonic(), read + min(left, STALL_BYTES)
            return left

        def update_backlog(self) -> None:
            """See to it that what waits to be read is counted, and within the limits."""
            if self.note_progress():
                if self not in backlog.readers:
                    backlog.readers.add(self)
                    self.since_s = self.progress_s
                backlog.enforce()
            else:
                backlog.readers.discard(self)

        def pause_writing(self) -> None:
            """Nothing more is read either: uvicorn would begin to answer it."""
            super().pause_writing()
            self.flow.pause_reading()
            if self.counted:
                self.update_backlog()

        def resume_writing(self) -> None:
            super().resume_writing()
            self.flow.resume_reading()
            if self.postponed:
                self.postponed = False
                super().on_response_complete()

        def on_response_complete(self) -> None:
            """The next request of a connection is looked at once most of the last answer has been read."""
            self.postponed = bool(self.flow.write_paused)
            if not self.postponed:
                super().on_response_complete()

        # --- requests -----------------------------------------------------------------------------

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
            self.update_backlog()
            reads = self in backlog.readers
            self.idle_s = self.idle_s + LOOK_EVERY_S if self.waiting and not reads else 0.0
            if reads and time.monotonic() - self.progress_s >= STALL_S:
                self.drop()
            elif self.idle_s >= REQUEST_S:
                self.transport.abort()
            else:
                self.loop.call_later(LOOK_EVERY_S, self.look)

    server.config.http_protocol_class = Bounded
