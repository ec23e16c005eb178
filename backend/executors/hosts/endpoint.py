"""HOST:PORT at which machines meet, and the network interface that leads there."""

import ipaddress
from dataclasses import dataclass

import psutil

from backend.errors import InputError


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


def interface_of(address: str) -> str:
    """The network interface of this machine that has an address; "" if none is known to have it."""
    wanted = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(wanted, "ipv4_mapped", None) or wanted
    for name, addresses in psutil.net_if_addrs().items():
        for one in addresses:
            try:
                own = ipaddress.ip_address(one.address.partition("%")[0])
            except ValueError:
                continue  # a hardware address
            if own == mapped or (own.is_loopback and mapped.is_loopback):
                return str(name)
    return ""
