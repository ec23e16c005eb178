"""One model on several machines, by torchrun: this one starts its ranks, and the others theirs by a line that is typed
there. All of them meet by torchrun's static rendezvous, since rank 0 has to be where the engine is."""

import contextlib
import ipaddress
import shlex
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from tokendyno.backend.engine.exchange import DEADLINE_S, deadline_override_s
from tokendyno.backend.engine.executor import ExecutorKind
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors.ranks import RankGroup
from tokendyno.backend.messages import Shutdown
from tokendyno.backend.worker.ranks.launch import Hello, Share

JOIN_WAIT_S = 300.0
"""How long the first machine waits for the others; TOKENDYNO_DEADLINE_S overrides it."""

FAR_RANK = f"{__package__}.far_rank"
"""The module that others run. It is not imported here, since Python warns of one that its package has already."""

GRACE_S = 5.0
"""For ranks elsewhere to end in good order once a run is over."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address of the first machine, as the others reach it."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_endpoint(text: str) -> Endpoint:
    """InputError for what is no HOST:PORT."""
    host, _, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 1 <= int(port) <= 65535:
        raise InputError(
            f"{text!r} is no endpoint. Give HOST:PORT, an address of the first machine that the others reach, such as "
            "192.168.1.10:29500."
        )
    return Endpoint(host, int(port))


def interface_to(endpoint: Endpoint) -> str:
    """The network interface of this machine from which an endpoint is reached; "" where none is known."""
    try:
        family, *_, destination = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(destination)  # chooses a route, and sends nothing
            own = ipaddress.ip_address(str(probe.getsockname()[0]).partition("%")[0])
    except OSError:
        return ""
    for name, addresses in psutil.net_if_addrs().items():
        for listed in addresses:
            with contextlib.suppress(ValueError):  # a hardware address
                address = ipaddress.ip_address(listed.address.partition("%")[0])
                if address == own or (address.is_loopback and own.is_loopback):
                    return str(name)
    return ""


@dataclass(frozen=True, slots=True)
class Machines:
    """`hosts` machines with as many ranks each; this is the first of them. hello: what the others must be like."""

    endpoint: Endpoint
    hosts: int
    ranks: int
    hello: Hello

    def torchrun_lines(self, model: str, models_dir: Path | None) -> Sequence[str]:
        """What is typed on each of the others."""
        arguments = shlex.join([model, *(["--models-dir", str(models_dir)] if models_dir else [])])
        return [
            f"torchrun --nnodes {self.hosts} --node-rank {host} --nproc-per-node {self.ranks} "
            f"--rdzv-endpoint {shlex.quote(str(self.endpoint))} -m {FAR_RANK} {arguments}"
            for host in range(1, self.hosts)
        ]

    def check_endpoint(self) -> None:
        """InputError unless this machine can be reached there."""
        host, port = self.endpoint.host, self.endpoint.port
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            with socket.socket(family, kind, protocol) as listener:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(address)
        except OSError as error:
            raise InputError(
                f"{self.endpoint} cannot be listened at ({error.strerror}). Give an address of this machine and a free "
                "port."
            ) from error

    def kind(self) -> ExecutorKind:
        """How arms are carried out on them."""
        wait_s = deadline_override_s() or JOIN_WAIT_S
        interface = interface_to(self.endpoint)
        share = Share(
            self.ranks, self.hosts, endpoint=str(self.endpoint), interface=interface, hello=self.hello, wait_s=wait_s
        )
        through = f" through {interface}" if interface else ""
        return ExecutorKind(
            lambda inbox: _FirstMachine(inbox, share),
            remark=f"{self.ranks * self.hosts} ranks on {self.hosts} machines run the model together and exchange"
            f"{through}; times and tokens are those of rank 0.",
            start_s=wait_s + DEADLINE_S["start"],
        )


class _FirstMachine(RankGroup):
    """Lets ranks on other machines end in good order, which a killed launcher would not."""

    def end(self) -> None:
        if self.alive:
            self._ending = True
            self.send(Shutdown())
            self._waiter.join(GRACE_S)
        super().end()
