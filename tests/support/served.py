"""A real app.py on a free port, and raw requests to it."""

import contextlib
import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.ports import free_port
from tokendyno.backend.paths import ROOT


@dataclass(frozen=True)
class Answer:
    """An HTTP response. `headers`: by lower-case name, the last of several."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def said(self) -> str:
        """The sentence of a refusal."""
        return str(json.loads(self.body)["detail"])


@dataclass(frozen=True)
class Served:
    """A running app. `address`: where it says that it is; `errors`: what it wrote to standard error so far is in this
    file."""

    port: int
    process: subprocess.Popen[str]
    errors: Path
    history: Path
    address: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, body: bytes | None = None, headers: Mapping[str, str] = {}, method: str = "") -> Answer:
        """One request on a connection of its own."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(link):
            link.request(method or ("GET" if body is None else "POST"), path, body, dict(headers))
            found = link.getresponse()
            return Answer(found.status, {k.lower(): v for k, v in found.getheaders()}, found.read())

    def post(self, path: str, value: Any, headers: Mapping[str, str] = {}) -> Answer:
        """A JSON body, as the page sends it."""
        return self.ask(path, json.dumps(value).encode(), {"Content-Type": "application/json", **headers})

    def config(self) -> Any:
        """Gradio's description of the page."""
        return json.loads(self.ask("/config").body)

    def config_of(self, cookie: str) -> Any:
        """The same for somebody who has logged in."""
        return json.loads(self.ask("/config", headers={"Cookie": cookie}).body)

    def handler(self, component: str, event: str) -> dict[str, Any]:
        """The event of a component, by its `elem_id`, that the server handles."""
        config = self.config()
        ids = {c["id"]: c.get("props", {}).get("elem_id") for c in config["components"]}
        return next(
            dep
            for dep in config["dependencies"]
            if dep["backend_fn"] and any(ids.get(at) == component and name == event for at, name in dep["targets"])
        )


@contextlib.contextmanager
def served(
    folder: Path,
    *arguments: str,
    env: Mapping[str, str] = {},
    begin: Sequence[str] = (sys.executable, "app.py"),
    cwd: Path = ROOT,
) -> Iterator[Served]:
    """Start the app with its data below `folder`; it must end in good order."""
    port, history = free_port(), folder / "history.sqlite"
    command = [*begin, "--port", str(port), "--history", str(history), *arguments]
    more = {"XDG_DATA_HOME": str(folder / "data"), **env}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=cwd, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, **more}
        )
    assert process.stdout is not None
    try:
        line = next((line for line in process.stdout if "ready" in line), "")
        assert line, (folder / "log").read_text()
        yield Served(port, process, folder / "log", history, line.split()[-1])
    finally:
        process.terminate()
        code = process.wait(30)
        process.stdout.close()
    assert code == 0
