"""A machine that joins: asks the first one what to serve, starts and ends its own ranks as it is told."""

import contextlib
import platform
import queue
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

from backend import hardware
from backend.engine.executor import Died, Inbox, StartError
from backend.errors import InputError
from backend.executors.hosts.endpoint import Endpoint, interface_of
from backend.executors.hosts.model import digest_of
from backend.executors.hosts.wire import (
    Accepted,
    AnyFrame,
    Begin,
    Finish,
    Gone,
    Goodbye,
    Hello,
    Left,
    Lost,
    Refused,
    Terms,
    Wire,
)
from backend.executors.ranks import RankGroup
from backend.models import obstacle, resolve
from backend.worker.ranks.share import Share

KNOCK_S, KNOCK_AGAIN_S = 60.0, 0.5
"""How long to try while nobody answers, and how often."""

POLL_S = 0.05


class Ended(Exception):
    """The group ended otherwise than it should; the message says why."""


class Guest:
    """One machine that takes part. Use it from one thread that lives as long: its ranks end with that thread."""

    def __init__(self, endpoint: Endpoint, models_dir: Path | None, say: Callable[[str], None]) -> None:
        self._endpoint, self._models_dir, self._say = endpoint, models_dir, say
        self._inbox: Inbox = Inbox()
        self._heard: queue.SimpleQueue[AnyFrame] = queue.SimpleQueue()

    def serve(self, knock_s: float = KNOCK_S) -> None:
        """Join, and take part until the first machine says that it is over. InputError where this machine cannot join;
        Ended where the group broke."""
        wire = Wire(self._knock(knock_s))
        try:
            share = self._agree(wire)
            self._take_part(wire, share)
        except KeyboardInterrupt:
            wire.send(Left("was stopped there with Ctrl-C"))
            raise
        finally:
            wire.close()

    # --- joining ----------------------------------------------------------------------------------

    def _knock(self, knock_s: float) -> socket.socket:
        until_s, told = time.monotonic() + knock_s, False
        while True:
            try:
                return socket.create_connection((self._endpoint.host, self._endpoint.port), timeout=5.0)
            except socket.gaierror as error:
                raise InputError(
                    f"The address {self._endpoint.host} is unknown here ({error.strerror}). Give the first machine's."
                ) from error
            except OSError as error:
                if time.monotonic() > until_s:
                    raise InputError(
                        f"Nobody answers at {self._endpoint} ({error.strerror or 'timed out'}). Start `tokendyno run "
                        "--nnodes ... --rdzv-endpoint ...` on the first machine, and give the same endpoint here."
                    ) from error
            if not told:
                self._say(f"Nobody answers at {self._endpoint} yet; trying for {knock_s:g} s.")
                told = True
            time.sleep(KNOCK_AGAIN_S)

    def _agree(self, wire: Wire) -> Share:
        """What this machine is to serve. InputError where it cannot, which the first machine is told, too."""
        machine = hardware.detect()
        wire.send(
            Hello(platform.node(), hardware.versions(), machine.device, machine.devices, machine.free_device_bytes)
        )
        try:
            terms = wire.read()
        except Gone as gone:
            raise InputError(
                f"{self._endpoint} {gone}: its group is complete, or something else uses the port. Check --nnodes and "
                "--rdzv-endpoint on the first machine."
            ) from gone
        if isinstance(terms, Refused):
            raise InputError(f"This machine cannot take part. {terms.reason}")
        if not isinstance(terms, Terms) or not (
            0 < terms.host < terms.hosts and 0 < terms.ranks <= machine.devices and terms.device == machine.device
        ):
            raise InputError(f"{self._endpoint} does not speak as tokendyno does. Check the endpoint.")
        try:
            path = self._model_path(terms)
        except InputError as error:
            wire.send(Refused(str(error)))
            raise
        wire.send(Accepted())
        interface = interface_of(wire.own_address)
        first = terms.host * terms.ranks
        which = f"rank {first}" if terms.ranks == 1 else f"ranks {first} to {first + terms.ranks - 1}"
        through = f" through {interface}" if interface else ""
        self._say(f"Joined {self._endpoint}{through} as machine {terms.host + 1} of {terms.hosts}: serves {which} of "
                  f"{terms.ranks * terms.hosts} of {terms.model} on {terms.device}.")  # fmt: skip
        return Share(
            terms.ranks, terms.hosts, terms.host, str(self._endpoint), interface, path, hardware.detect().kernels
        )

    def _model_path(self, terms: Terms) -> str:
        """Where this machine has the model; "" where it comes from the Hub or is random."""
        try:
            facts = resolve(terms.model, self._models_dir)
        except InputError as error:
            raise InputError(f"The model {terms.model} is not on {platform.node()}. {error}") from error
        if lacking := obstacle(facts, hardware.hub_offline()):
            raise InputError(f"The model {terms.model} is not on {platform.node()}. {lacking}")
        if digest_of(facts) != terms.digest:
            raise InputError(
                f"{terms.model} is another model on {platform.node()} than on the first machine. Copy its files from "
                "there."
            )
        return facts.source.path

    # --- taking part ------------------------------------------------------------------------------

    def _take_part(self, wire: Wire, share: Share) -> None:
        threading.Thread(target=self._listen, args=(wire,), name="first-machine", daemon=True).start()
        group, number = None, 0
        try:
            while True:
                frame = self._next(wire, group, number)
                match frame:
                    case Begin(group=asked):
                        if group is not None:
                            group.end()
                        number, group = asked, RankGroup(self._inbox, share)
                        self._say(f"Group {number}: started.")
                    case Finish(group=asked) if group is not None and asked == number:
                        group.end()
                        group = None
                        self._say(f"Group {number}: ended.")
                    case Goodbye(problem=problem):
                        if problem:
                            raise Ended(f"The run on the first machine failed: {problem}")
                        self._say("The first machine is done.")
                        return
                    case Left(cause=cause):
                        raise Ended(f"The first machine {cause}. Ranks here were ended.")
                    case _:
                        pass
        except StartError as error:
            wire.send(Left(f"could not start its ranks: {error}"))
            raise Ended(str(error)) from error
        finally:
            if group is not None:
                group.end()

    def _next(self, wire: Wire, group: RankGroup | None, number: int) -> AnyFrame:
        """What the first machine says next; tells it meanwhile of ranks here that die."""
        while True:
            while not self._inbox.empty():
                letter = self._inbox.get()
                if letter.executor is group and isinstance(letter.body, Died):
                    self._say(f"Group {number}: {letter.body.cause}")
                    wire.send(Lost(number, letter.body.cause))
            with contextlib.suppress(queue.Empty):
                return self._heard.get(timeout=POLL_S)

    def _listen(self, wire: Wire) -> None:
        """Body of the thread that reads."""
        while True:
            try:
                self._heard.put(wire.read())
            except Gone as gone:
                self._heard.put(Left(str(gone)))
                return
