"""HOST:PORT at which machines meet, and the network interface that leads there."""

import ipaddress
import socket
from dataclasses import dataclass

import psutil

from tokendyno.backend.errors import InputError


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
        family, *_, address = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)  # chooses a route, and sends nothing
            own = ipaddress.ip_address(str(probe.getsockname()[0]).partition("%")[0])
    except OSError:
        return ""
    for name, addresses in psutil.net_if_addrs().items():
        for address_of_it in addresses:
            try:
                found = ipaddress.ip_address(address_of_it.address.partition("%")[0])
            except ValueError:
                continue  # a hardware address
            if found == own or (found.is_loopback and own.is_loopback):
                return str(name)
    return ""
