"""Which requests are for this server: to one of its names, from no page of another site, at an address that exists.

Gradio serves many more addresses, which this page does not need: uploads, a proxy, deep links that write to disk,
monitoring, streams that never end. Whatever is not listed here is not found.
"""

import ipaddress
import re
import socket
from collections.abc import Iterable
from pathlib import PurePosixPath
from urllib.parse import unquote_to_bytes

from starlette.exceptions import HTTPException
from starlette.requests import Request

from tokendyno.ui.components.scripts import PLOTLY_JS

_HOST = re.compile(r"(?:\[(.+)\]|([^:]+?)\.?)(?::[0-9]+)?")


class Hosts:
    """The names of this server. A name that begins with a dot stands for every name that ends with it.

    Against DNS rebinding: a site that points its own name at this machine sends that name as Host. An address cannot be
    rebound, so addresses are always good, for which Starlette's TrustedHostMiddleware has no pattern."""

    def __init__(self, names: Iterable[str] = (), machine: bool = True) -> None:
        """`names`: those listed; `machine`: the machine's own names as well, as others of its network know it."""
        machine_names = {socket.gethostname(), socket.getfqdn()} if machine else set()
        known = {name.lower().rstrip(".") for name in ("localhost", *machine_names, *names)}
        self._names = {name for name in known if not name.startswith(".")}
        self._endings = tuple(name for name in known if name.startswith("."))

    def check(self, request: Request) -> None:
        """HTTPException for a request to another name, or from a page of another site."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin", "")
        name = without_port(host.lower())
        if not (is_address(name) or name in self._names or name.endswith(self._endings)):
            sentence = (
                f"This server does not answer to {host[:64]!r}. Use its address, or start it with --allow-host NAME."
            )
            raise HTTPException(421, sentence)
        foreign = origin and origin.lower().partition("://")[2] != host.lower()
        site = request.headers.get("sec-fetch-site")
        if foreign or (request.method != "GET" and site in ("cross-site", "same-site")):
            raise HTTPException(403, "This request comes from a page of another site. Open this server's own page.")


def without_port(host: str) -> str:
    """A host without its port and its brackets; what has no such form as it is."""
    match = _HOST.fullmatch(host)
    return (match[1] or match[2]) if match else host


def is_address(name: str) -> bool:
    """Whether this is an IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


# --- addresses ------------------------------------------------------------------------------------

API = "/gradio_api"
JOIN, STREAM, HEARTBEAT = f"{API}/queue/join", f"{API}/queue/data", f"{API}/heartbeat/"
PREDICT, PULL, MCP = f"{API}/run/predict", f"{API}/component_server", f"{API}/mcp"

_GET = {
    "/",
    "/config",
    "/favicon.ico",
    "/manifest.json",
    "/robots.txt",
    "/theme.css",
    f"{API}/info",
    f"{API}/theme.css",
    f"{API}/startup-events",
    STREAM,
    f"{API}/file={PurePosixPath(PLOTLY_JS)}",
}
_GET_BELOW = ("/assets/", "/static/", "/svelte/")
_OPEN_TO_ALL = {"/favicon.ico", "/robots.txt", "/theme.css", f"{API}/startup-events"}
MAX_FILE_NAME = 200
"""Characters of the path of one of Gradio's own files, with folders: a file system cannot look for a name of more than
255 bytes, and Gradio answers that with an internal error."""

_HEARTBEAT = re.compile(rf"{HEARTBEAT}[A-Za-z0-9_-]{{1,64}}")


def exists(method: str, path: str, mcp: bool = False) -> bool:
    """Whether a request of this method may go to this path (decoded, without the query). `mcp`: MCP is served."""
    path = path if path == "/" else path.rstrip("/")
    if ".." in path.split("/") or "\\" in path or "\0" in path:
        return False
    if method == "POST":
        return path in (JOIN, PREDICT, PULL) or (mcp and path == MCP)
    if method not in ("GET", "HEAD"):
        return False
    file = path.startswith(_GET_BELOW) and path.isascii() and len(path) <= MAX_FILE_NAME
    return path in _GET or file or bool(_HEARTBEAT.fullmatch(path))


def open_to_all(path: str) -> bool:
    """Whether a path shows nothing of anybody, so that it may be fetched without a login or a cookie."""
    return path.startswith(_GET_BELOW) or path in _OPEN_TO_ALL


def without_gradios_own(query: bytes) -> bytes:
    """The query of the page without what Gradio reads for itself, and would answer with an internal error."""
    reserved = (b"page", b"deep_link")
    return b"&".join(part for part in query.split(b"&") if unquote_to_bytes(part.partition(b"=")[0]) not in reserved)
