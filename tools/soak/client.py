"""A visitor without a browser: opens the page, submits runs, pulls what a viewer of a run pulls."""

import http.client
import json
import secrets
from contextlib import closing
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlsplit

LIMIT_S = 30.0


class Refused(Exception):
    """The server did not do it: its status and the beginning of its answer."""


class Visitor:
    """One visitor, with cookies of its own. One thread at a time. `source`: an address of this machine to come from."""

    def __init__(self, address: str, config: Any = None, source: str = "127.0.0.1") -> None:
        self._host, self._source = urlsplit(address).netloc, (source, 0)
        self._connection = self._connected()
        self._cookies: dict[str, str] = {}
        self._session = secrets.token_hex(6)
        if config is None or not self._cookies:
            self.get("/")
        self.config = config or json.loads(self.get("/config"))
        parts = {part["id"]: part["props"] for part in self.config["components"]}
        self._panel = next(n for n, props in parts.items() if props.get("elem_id") == "live")
        run = next(n for n, props in parts.items() if props.get("elem_id") == "run")
        self._submit = next(d for d in self.config["dependencies"] if [run, "click"] in [list(t) for t in d["targets"]])
        self._values = {parts[n].get("elem_id") or n: parts[n].get("value") for n in self._submit["inputs"]}

    def _connected(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._host, timeout=LIMIT_S, source_address=self._source)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def get(self, path: str) -> str:
        """The text of a path. Refused unless its status is 200."""
        return self._ask("GET", path, None)

    def post(self, path: str, body: object) -> str:
        """The answer to a JSON body. Refused unless its status is 200."""
        return self._ask("POST", path, json.dumps(body).encode())

    def _ask(self, method: str, path: str, data: bytes | None) -> str:
        headers = {
            "Content-Type": "application/json",
            "Cookie": "; ".join(f"{k}={v}" for k, v in self._cookies.items()),
        }
        try:
            reply, text = self._send(method, path, data, headers)
        except (http.client.HTTPException, OSError):  # the server closes a connection that was idle for a while
            self._connection.close()
            reply, text = self._send(method, path, data, headers)
        for value in reply.headers.get_all("Set-Cookie") or []:
            self._cookies |= {name: morsel.value for name, morsel in SimpleCookie(value).items()}
        if reply.status != 200:
            raise Refused(f"{reply.status} {text[:200]}")
        return text

    def _send(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> tuple[Any, str]:
        self._connection.request(method, path, data, headers)
        reply = self._connection.getresponse()
        return reply, reply.read().decode("utf-8", "replace")

    def submit(self, **values: object) -> tuple[str, str]:
        """Press Run with these values of the page's controls (by element id); returns (run id, message), one of which
        is empty."""
        changes = {name if name in self._values else name.replace("_", "-"): value for name, value in values.items()}
        controls = self._values | changes
        assert len(controls) == len(self._values), f"unknown: {controls.keys() - self._values.keys()}"
        body = {
            "data": list(controls.values()),
            "fn_index": self._submit["id"],
            "session_hash": self._session,
            "trigger_id": self._submit["targets"][0][0],
            "event_data": None,
        }
        event = json.loads(self.post("/gradio_api/queue/join", body))["event_id"]
        with closing(self._connected()) as stream:
            cookie = "; ".join(f"{k}={v}" for k, v in self._cookies.items())
            stream.request("GET", f"/gradio_api/queue/data?session_hash={self._session}", headers={"Cookie": cookie})
            for line in stream.getresponse():
                message = json.loads(line[5:]) if line.startswith(b"data:") else {}
                if message.get("msg") == "process_completed" and message.get("event_id") == event:
                    return self._outcome(message)
        raise Refused("the stream of events ended")

    def _outcome(self, message: Any) -> tuple[str, str]:
        if not message.get("success"):
            raise Refused(str(message)[:200])
        values = dict(zip(self._submit["outputs"], message["output"]["data"], strict=True))
        run_id = values.get(self._panel)
        if isinstance(run_id, str) and run_id:
            return run_id, ""
        texts = [value for value in values.values() if isinstance(value, str) and value]
        return "", texts[0] if texts else str(message)[:200]

    def pull(self, run_id: str, version: int = 0, cursors: list[list[int]] | None = None) -> Any:
        """What lies past the cursors."""
        data = {"run": run_id, "version": version, "cur": cursors or [[0, 0, 0]] * 2}
        body = {"data": data, "component_id": self._panel, "fn_name": "pull", "session_hash": self._session}
        return json.loads(json.loads(self.post("/gradio_api/component_server", body)))
