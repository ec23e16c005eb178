"""A Hub on the loopback interface that serves folders: the routes that huggingface_hub asks for, no more.

It lets the real download code run where there is no Hub: HF_ENDPOINT points the client here.
"""

import hashlib
import json
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PIECE_S = 0.02
"""A slow Hub sends a piece so often."""

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def fake_hub(
    repos: dict[str, Path],
    bytes_per_s: float = 0,
    gated: Collection[str] = (),
    gone: threading.Event | None = None,
    commits: Mapping[str, Path] = {},
    tokens: list[str] | None = None,
) -> Iterator[tuple[str, list[str]]]:
    """Serve `repos` (org/name -> folder); yields the endpoint's URL and the list of paths asked for.

    bytes_per_s  pace of what is sent; 0: as fast as it goes
    gone         once it is set, every connection is cut off, those in the middle of a file too
    gated        repositories whose files nobody may have
    commits      instead of `COMMIT`: the commits of all repositories, each with its files; the last is the branch main
    tokens       gets the Authorization header of every request, "" without one
    """
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _answer(self, body: bool) -> None:
            if gone is not None and gone.is_set():
                self.close_connection = True
                return None
            path = self.path.split("?")[0].strip("/")
            asked.append(path)
            if tokens is not None:
                tokens.append(self.headers.get("Authorization") or "")
            head = list(commits)[-1] if commits else COMMIT
            named = next((commit for commit in commits if f"/{commit}" in path), head)
            for repo, folder in repos.items():
                folder = commits.get(named, folder)
                files = sorted(f for f in folder.iterdir() if f.is_file())
                if path in (
                    f"api/models/{repo}",
                    f"api/models/{repo}/revision/main",
                    f"api/models/{repo}/revision/{named}",
                ):
                    siblings = [{"rfilename": f.name, "size": f.stat().st_size} for f in files]
                    info = {"id": repo, "sha": named, "siblings": siblings, "tags": [], "private": False}
                    return self._send(200, json.dumps(info).encode(), {"Content-Type": "application/json"}, body)
                if path.startswith(f"api/models/{repo}/tree/"):
                    tree = [{"type": "file", "path": f.name, "size": f.stat().st_size, "oid": "0" * 40} for f in files]
                    return self._send(200, json.dumps(tree).encode(), {"Content-Type": "application/json"}, body)
                if repo in gated and path.startswith(f"{repo}/resolve/"):
                    return self._send(403, b"", {"X-Error-Code": "GatedRepo"}, body)
                for f in files:
                    if path in (f"{repo}/resolve/main/{f.name}", f"{repo}/resolve/{named}/{f.name}"):
                        data = f.read_bytes()
                        tag = hashlib.sha1(data).hexdigest()
                        return self._send(200, data, {"ETag": f'"{tag}"', "X-Repo-Commit": named}, body)
                if path.startswith((f"{repo}/resolve/", f"api/models/{repo}")):
                    return self._send(404, b"", {"X-Error-Code": "EntryNotFound"}, body)
            return self._send(404, b"", {"X-Error-Code": "RepoNotFound"}, body)

        def _send(self, status: int, data: bytes, headers: dict[str, str], body: bool) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            step = round(bytes_per_s * PIECE_S) if bytes_per_s else max(1, len(data))
            for begin in range(0, len(data) if body else 0, step):
                if gone is not None and gone.is_set():
                    self.close_connection = True
                    return
                try:
                    self.wfile.write(data[begin : begin + step])
                except OSError:  # whoever asked was killed
                    self.close_connection = True
                    return
                time.sleep(PIECE_S if bytes_per_s else 0)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
