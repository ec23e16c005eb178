"""Host and Origin: which names this server answers to, and that a page of another site cannot use it.

Against DNS rebinding: a site that points its own name at this machine sends that name as Host. An address cannot be
rebound, so addresses are always good; a name must be this machine's or be listed.
"""

import ipaddress
import socket
from collections.abc import Iterable

from ui.gate.asgi import Refused, Scope, header

LOOPBACK_NAMES = frozenset({"localhost"})


class Hosts:
    """The names of this server. A name that begins with a dot stands for every name that ends with it."""

    def __init__(self, names: Iterable[str] = (), machine: bool = True) -> None:
        """`names`: those listed; `machine`: the machine's own names as well, as others of its network know it."""
        own = {socket.gethostname(), socket.getfqdn()} if machine else set()
        known = {name.lower().rstrip(".") for name in (*LOOPBACK_NAMES, *own, *names)}
        self._names = {name for name in known if not name.startswith(".")}
        self._endings = tuple(name for name in known if name.startswith("."))

    def check(self, scope: Scope) -> None:
        """Raises Refused for a request to another name, or from a page of another site."""
        host = header(scope, b"host")
        name = _name(host)
        if not name or not (_is_address(name) or name in self._names or name.endswith(self._endings or ("\0",))):
            raise Refused(421, f"This server does not answer to {host[:64]!r}. Use its address, or start it with "
                               "--allow-host NAME.")  # fmt: skip
        origin = header(scope, b"origin")
        foreign = origin and origin.lower().partition("://")[2] != host.lower()
        if foreign or (scope["method"] != "GET" and header(scope, b"sec-fetch-site") in ("cross-site", "same-site")):
            raise Refused(403, "This request comes from a page of another site. Open this server's own page.")


def _name(host: str) -> str:
    """The host without its port; "" where it cannot be one."""
    name, _, rest = host.lower().rpartition("]") if host.startswith("[") else ("", "", host.lower())
    if name:
        return name[1:] if not rest or (rest[0] == ":" and rest[1:].isdecimal()) else ""
    name, colon, port = rest.partition(":")
    return name.rstrip(".") if not colon or port.isdecimal() else ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
