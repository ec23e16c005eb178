"""The connection between the first machine and one that joins: a line of JSON a frame, and a beat while there is
nothing to say, so that each notices within seconds that the other is gone."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Annotated

import msgspec

from backend.errors import UNDECODABLE

BEAT_S = 2.0
SILENCE_S = 10.0
"""A machine that says nothing for so long is gone: one that lives beats."""

MAX_LINE_BYTES = 1 << 16

Name = Annotated[str, msgspec.Meta(max_length=256)]
Versions = Annotated[dict[Name, Name], msgspec.Meta(max_length=64)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 16)]
Bytes = Annotated[int, msgspec.Meta(ge=0, le=1 << 60)]
"""What a frame may hold, since whoever reaches the port can write one."""


class Frame(msgspec.Struct, frozen=True, tag=str.lower, tag_field="type"):
    """Base of everything on the wire. Unknown fields are left out, so that another version gets as far as saying which
    one it is."""


class Hello(Frame, frozen=True):
    """A machine asks to join. `devices`: its GPUs, or CPU cores; `free_bytes`: of a GPU, or of the host's memory."""

    name: Name
    versions: Versions
    device: Name
    devices: Count
    free_bytes: Bytes


class Terms(Frame, frozen=True):
    """What a machine that joins is to serve: `ranks` of its own, as machine `host` of `hosts`. `model`: as it was typed
    on the first machine; `digest`: of what that is there."""

    host: Count
    hosts: Count
    ranks: Count
    model: str
    digest: Name
    device: Name


class Refused(Frame, frozen=True):
    """It cannot take part."""

    reason: str


class Accepted(Frame, frozen=True):
    """It has what the terms ask for."""


class Begin(Frame, frozen=True):
    """Start the ranks of this group now."""

    group: Count


class Finish(Frame, frozen=True):
    """End the ranks of this group."""

    group: Count


class Lost(Frame, frozen=True):
    """A group ended by itself on the machine that says so."""

    group: Count
    cause: str


class Left(Frame, frozen=True):
    """The machine that says so leaves."""

    cause: str


class Goodbye(Frame, frozen=True):
    """Everything is over. `problem`: what went wrong, "" if nothing did."""

    problem: str = ""


class Beat(Frame, frozen=True):
    """Still there."""


AnyFrame = Hello | Terms | Refused | Accepted | Begin | Finish | Lost | Left | Goodbye | Beat

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AnyFrame).decode


class Gone(Exception):
    """The other end is not there any more, or is something else. The message completes "X ..."."""


class Wire:
    """One end. One thread reads; any may send."""

    def __init__(self, link: socket.socket) -> None:
        self._link, self._lock, self._closed = link, threading.Lock(), threading.Event()
        link.settimeout(SILENCE_S)
        with contextlib.suppress(OSError):  # hung up already, which whoever reads notices
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._lines = link.makefile("rb")
        self._late = ""
        threading.Thread(target=self._beat, name="beat", daemon=True).start()

    @property
    def own_address(self) -> str:
        """Address of this machine on the way to the other one."""
        return str(self._link.getsockname()[0])

    def send(self, frame: AnyFrame) -> None:
        """An end that is gone is noticed by whoever reads."""
        with self._lock, contextlib.suppress(OSError):
            self._link.sendall(_encode(frame) + b"\n")

    def read(self) -> AnyFrame:
        """The next frame that is no beat. Raises Gone."""
        while True:
            try:
                line = self._lines.readline(MAX_LINE_BYTES)
            except TimeoutError as error:
                raise Gone(f"has not answered for {SILENCE_S:g} s") from error
            except (OSError, ValueError) as error:
                raise Gone(self._late or "closed the connection") from error
            if len(line) == MAX_LINE_BYTES:
                raise Gone("does not speak as tokendyno does")
            if not line.endswith(b"\n"):
                raise Gone(self._late or "closed the connection")
            try:
                frame: AnyFrame = _decode(line)
            except UNDECODABLE as error:
                raise Gone("does not speak as tokendyno does") from error
            if not isinstance(frame, Beat):
                return frame

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Hang up unless the body ends in time: beats, or a byte now and then, do not prolong it."""

        def late() -> None:
            self._late = f"has not answered for {seconds:g} s"
            self.close()

        timer = threading.Timer(seconds, late)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def close(self) -> None:
        """Hang up; a thread that reads gets Gone."""
        self._closed.set()
        with contextlib.suppress(OSError):
            self._link.shutdown(socket.SHUT_RDWR)  # a thread that reads lets go of the lines
        self._lines.close()
        self._link.close()

    def _beat(self) -> None:
        while not self._closed.wait(BEAT_S):
            self.send(Beat())
