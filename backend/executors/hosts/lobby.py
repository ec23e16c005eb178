"""The first machine: receives the others, then tells them when to start and end their ranks.

Until all are there it listens at the endpoint; then torch's rendezvous has that port, and connections that exist stay.
"""

import contextlib
import errno
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from backend.engine.deadlines import deadline_override_s
from backend.errors import InputError
from backend.executors.hosts.endpoint import Endpoint, interface_of
from backend.executors.hosts.wire import (
    Accepted,
    Begin,
    Finish,
    Frame,
    Gone,
    Goodbye,
    Hello,
    Left,
    Lost,
    Refused,
    Terms,
    Wire,
)
from backend.executors.same_versions import version_gap
from backend.hardware import FarHost, versions
from backend.redact import plain

JOIN_WAIT_S = 300.0
"""How long the first machine waits for the others; TOKENDYNO_DEADLINE_S overrides it."""

HELLO_S = 30.0
ANSWER_S = 60.0
"""How long a machine may take to say what it is, and then to find the model."""

MAX_KNOCKING = 32
"""Connections that have not joined; what comes while there are as many is hung up on."""


class Watcher(Protocol):
    """Who is told that another machine lost its ranks."""

    def lost(self, cause: str) -> None: ...


@dataclass(slots=True, eq=False)
class Seat:
    """A machine that has joined as number `host` (the first machine is 0). `gone`: why it is not there any more."""

    host: int
    wire: Wire
    far: FarHost
    gone: str = ""


class Lobby:
    """`hosts` machines, this one included, with as many ranks each. InputError where the endpoint cannot be used.

    model, digest  what all are to serve (see `digest_of`)
    say            tells the user who came and who could not
    """

    def __init__(
        self, endpoint: Endpoint, hosts: int, ranks: int, model: str, digest: str, device: str,
        say: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.endpoint, self.hosts, self.ranks = endpoint, hosts, ranks
        self._model, self._digest, self._device, self._say = model, digest, device, say
        self._seats: list[Seat] = []
        self._lock = threading.Lock()
        self._door = threading.Lock()
        self._knocking = threading.BoundedSemaphore(MAX_KNOCKING)
        self._watcher: Watcher | None = None
        self._group = 0
        self._listener = _listen(endpoint)
        self.interface = interface_of(str(self._listener.getsockname()[0]))

    @property
    def far(self) -> tuple[FarHost, ...]:
        """The machines that have joined."""
        with self._lock:
            return tuple(seat.far for seat in self._seats)

    def gather(self) -> None:
        """Wait until all are there. InputError where they do not come in time."""
        limit_s = deadline_override_s() or JOIN_WAIT_S
        until_s = time.monotonic() + limit_s
        self._listener.settimeout(0.2)
        while len(self.far) < self.hosts - 1:
            if time.monotonic() > until_s:
                raise InputError(
                    f"{len(self.far)} of {self.hosts - 1} further machines joined within {limit_s:g} s. Run "
                    f"`tokendyno join --rdzv-endpoint {self.endpoint}` on the others, or give a smaller --nnodes."
                )
            with contextlib.suppress(TimeoutError, ConnectionError):
                self._let_in(self._listener.accept()[0])
        self._listener.close()

    def close(self, problem: str = "") -> None:
        """Let the others go. `problem`: what went wrong, for their users."""
        self._listener.close()
        with self._lock:
            seats, self._watcher = [*self._seats], None
        for seat in seats:
            seat.wire.send(Goodbye(problem))
            seat.wire.close()

    # --- groups -----------------------------------------------------------------------------------

    def begin(self, watcher: Watcher) -> str:
        """All machines start their ranks. Returns why that cannot be, "" if it can."""
        with self._lock:
            gone = next((seat for seat in self._seats if seat.gone), None)
            if gone is not None:
                return f"{gone.far.name} {gone.gone}."
            self._watcher, self._group = watcher, self._group + 1
            for seat in self._seats:
                seat.wire.send(Begin(self._group))
        return ""

    def finish(self, watcher: Watcher) -> None:
        """All machines end their ranks, if that group is still theirs."""
        with self._lock:
            if self._watcher is watcher:
                self._watcher = None
                for seat in self._seats:
                    seat.wire.send(Finish(self._group))

    # --- one machine ------------------------------------------------------------------------------

    def _let_in(self, link: socket.socket) -> None:
        """Each in a thread: one that connects and says nothing keeps no other waiting."""
        if self._knocking.acquire(blocking=False):
            threading.Thread(target=self._receive, args=(link,), name="knock", daemon=True).start()
        else:
            link.close()

    def _receive(self, link: socket.socket) -> None:
        """Body of that thread."""
        name, wire = "A machine", Wire(link)
        try:
            with wire.within(HELLO_S):
                hello = wire.read()
            if not isinstance(hello, Hello):
                raise Gone("does not speak as tokendyno does")
            name = plain(hello.name)
            with self._door:  # one after the other, since each gets the first place that is free
                seat = self._seat(wire, name, hello)
        except Gone as gone:
            self._say(plain(f"note: {name} {str(gone).rstrip('.')}. Waiting for another try."))
            wire.close()
            return
        finally:
            self._knocking.release()
        self._say(f"{name} has joined: machine {seat.host + 1} of {self.hosts}.")
        self._watch(seat)

    def _seat(self, wire: Wire, name: str, hello: Hello) -> Seat:
        """Give a machine its place, if it can take it. Raises Gone, with the reason."""
        with self._lock:
            host = next((one for one in range(1, self.hosts) if all(one != seat.host for seat in self._seats)), None)
        reason = self._unfit(hello) if host is not None else "All machines have joined already. Check --nnodes."
        if reason or host is None:
            wire.send(Refused(reason))
            raise Gone(f"cannot take part: {reason}")
        with wire.within(ANSWER_S):
            wire.send(Terms(host, self.hosts, self.ranks, self._model, self._digest, self._device))
            answer = wire.read()
        if isinstance(answer, Refused):
            raise Gone(f"cannot take part: {answer.reason}")
        if not isinstance(answer, Accepted):
            raise Gone("does not speak as tokendyno does")
        seat = Seat(host, wire, FarHost(name, hello.devices, hello.free_bytes))
        with self._lock:
            self._seats.append(seat)
        return seat

    def _unfit(self, hello: Hello) -> str:
        """Why a machine cannot take part, as far as this one can tell."""
        if gap := version_gap(versions(), hello.versions):
            return gap
        what = "GPU" if self._device == "cuda" else "CPU core"
        if hello.device != self._device:
            return f"The first machine runs on {self._device}, this one on {hello.device}. Use machines of one kind."
        if hello.devices < self.ranks:
            return f"It has {hello.devices} {what}s for {self.ranks} ranks. Use fewer ranks, or another machine."
        return ""

    def _watch(self, seat: Seat) -> None:
        """What a machine that has joined says from then on."""
        while True:
            try:
                frame: Frame = seat.wire.read()
            except Gone as gone:
                frame = Left(str(gone))
            with self._lock:
                watcher = self._watcher
                if isinstance(frame, Lost):
                    watcher = watcher if frame.group == self._group else None
                    cause = plain(f"On {seat.far.name}: {frame.cause}")
                elif isinstance(frame, Left):
                    seat.gone = plain(frame.cause)
                    cause = plain(f"{seat.far.name} {frame.cause}.")
                    if watcher is None and seat in self._seats and len(self._seats) < self.hosts - 1:
                        self._seats.remove(seat)  # another one may come in its place
                else:
                    continue
            if watcher is not None:
                watcher.lost(cause)
            if seat.gone:
                seat.wire.close()
                return


def _listen(endpoint: Endpoint) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            endpoint.host, endpoint.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise InputError(
            f"The address {endpoint.host} is unknown here ({error.strerror}). Give one of this machine."
        ) from error
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise InputError(f"Port {endpoint.port} is in use on {endpoint.host}. Give another.") from error
        raise InputError(
            f"{endpoint} cannot be listened at ({error.strerror}). Give an address of this machine and a free port."
        ) from error
    return listener
