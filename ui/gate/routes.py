"""The addresses that exist. Gradio serves many more, which this page does not need: uploads, a proxy, deep links that
write to disk, monitoring, streams that never end. Whatever is not listed here is not found.
"""

import re
from pathlib import PurePosixPath
from urllib.parse import unquote_to_bytes

from ui.live.plotly import PLOTLY_JS

API = "/gradio_api"
MCP = f"{API}/mcp"

_GET = {
    "/", "/config", "/favicon.ico", "/manifest.json", "/robots.txt", "/theme.css",
    f"{API}/info", f"{API}/theme.css", f"{API}/startup-events", f"{API}/queue/data",
    f"{API}/file={PurePosixPath(PLOTLY_JS)}",
}  # fmt: skip
_POST = {f"{API}/queue/join", f"{API}/run/predict", f"{API}/component_server"}
_GET_BELOW = ("/assets/", "/static/", "/svelte/")
MAX_FILE_NAME = 200
"""Characters of the path of one of Gradio's own files, with folders: a file system cannot look for a name of more than
255 bytes, and Gradio answers that with an internal error."""

_HEARTBEAT = re.compile(rf"{API}/heartbeat/[A-Za-z0-9_-]{{1,64}}")


def exists(method: str, path: str, mcp: bool = False) -> bool:
    """Whether a request of this method may go to this path (as the server decoded it, without the query). `mcp`: MCP
    clients are served, by single answers: no stream is held open for them."""
    path = path if path == "/" else path.rstrip("/")
    if ".." in path.split("/") or "\\" in path or "\0" in path:
        return False
    if method == "POST":
        return path in _POST or (mcp and path == MCP)
    if method not in ("GET", "HEAD"):
        return False
    file = path.startswith(_GET_BELOW) and path.isascii() and len(path) <= MAX_FILE_NAME
    return path in _GET or file or bool(_HEARTBEAT.fullmatch(path))


def open_to_all(path: str) -> bool:
    """Whether a path shows nothing of anybody, so that it may be fetched without a login or a cookie."""
    return path.startswith(_GET_BELOW) or path in ("/favicon.ico", "/robots.txt", "/theme.css", f"{API}/startup-events")


_GRADIOS_OWN = {b"page", b"deep_link"}


def without_gradios_own(query: bytes) -> bytes:
    """The query of the page without what Gradio reads for itself: a page that it does not have would be answered with
    an internal error, and states that were saved do not exist here."""
    return b"&".join(
        part for part in query.split(b"&") if unquote_to_bytes(part.partition(b"=")[0]) not in _GRADIOS_OWN
    )
