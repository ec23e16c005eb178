"""No visitor makes Gradio fetch, copy or write a file: what names one does not reach it."""

import json
import socketserver
import threading
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest

from tests.support.served import Served, served
from tokendyno.ui.gate.sessions import MAX_DEPTH

pytestmark = pytest.mark.slow


class Listener(socketserver.ThreadingTCPServer):
    """Counts who connects. The app takes it for the proxy through which it must fetch everything."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        self.connections = 0

    def process_request(self, *given: Any) -> None:
        self.connections += 1
        super().process_request(*given)


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    with Listener() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory, listener: Listener) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("public")
    proxy = f"http://127.0.0.1:{listener.server_address[1]}"
    env = {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": "127.0.0.1", "GRADIO_TEMP_DIR": str(folder / "page")}
    with served(folder, "--mode", "public", env=env) as app:
        yield app


META = {"meta": {"_type": "gradio.FileData"}}
URL = "http://huggingface.co/a/b"  # of the hosts to which Gradio connects without looking up their address
FILE = json.dumps({"path": URL} | META)
NAMING_FILES = {
    "a file": FILE,
    "a local file": json.dumps({"path": "/etc/passwd"} | META),
    "deep in lists and objects": '[{"a": [' * 8 + FILE + "]}]" * 8,
    "escaped": FILE.replace("path", "p\\u0061th").replace("FileData", "\\u0046ileData"),
    "named twice": FILE.replace('{"path"', '{"path": 1, "path"', 1),
    "deeper than can be read": "[" * 2_000 + FILE + "]" * 2_000,
}
ROUTES = ("run/predict", "queue/join", "component_server")


def guest(app: Served) -> dict[str, str]:
    """A visitor's cookie, and that what comes is JSON."""
    jar: SimpleCookie = SimpleCookie(app.ask("/config").headers["set-cookie"])
    cookie = "; ".join(f"{name}={morsel.value}" for name, morsel in jar.items())
    return {"Cookie": cookie, "Content-Type": "application/json"}


def files_of(app: Served) -> list[Path]:
    return sorted(app.history.parent.joinpath("page").rglob("*"))


def test_nothing_is_fetched_and_no_file_appears(public: Served, listener: Listener) -> None:
    visitor, before = guest(public), files_of(public)
    page = public.config_of(visitor["Cookie"])
    of_files = {"audio", "downloadbutton", "file", "gallery", "image", "uploadbutton", "video"}
    assert not of_files & {component["type"] for component in page["components"]}
    event = next(d for d in page["dependencies"] if len(d["inputs"]) > 3)
    refused = 0
    for route in ROUTES:
        for what, value in NAMING_FILES.items():
            for field in ("data", "event_data"):
                values = {"data": f"[{', '.join(['null'] * len(event['inputs']))}]", "event_data": "null"}
                values[field] = f"[{', '.join([value] * len(event['inputs']))}]" if field == "data" else value
                body = (
                    f'{{"data": {values["data"]}, "event_data": {values["event_data"]}, "fn_index": {event["id"]}, '
                    '"session_hash": "s", "trigger_id": null, "component_id": 1, "fn_name": "pull"}'
                )
                for sent in (body.encode(), body.encode("utf-16")):
                    answer = public.ask(f"/gradio_api/{route}", sent, visitor)
                    assert answer.status == 400, (route, what, field, answer)
                    refused += 1
    assert refused == len(ROUTES) * len(NAMING_FILES) * 4
    assert (listener.connections, files_of(public)) == (0, before)
    assert "Traceback" not in public.errors.read_text()


def test_of_two_paths_gradio_sees_the_one_that_was_looked_at(public: Served, listener: Listener) -> None:
    visitor, before = guest(public), files_of(public)
    event = next(d for d in public.config_of(visitor["Cookie"])["dependencies"] if len(d["inputs"]) > 3)
    twice = FILE.replace("}}", '}, "path": 1}')
    for data in (f'"data": [{twice}]', f'"data": [{FILE}], "data": []'):
        body = f'{{{data}, "fn_index": {event["id"]}, "session_hash": "s", "trigger_id": null}}'
        assert public.ask("/gradio_api/run/predict", body.encode(), visitor).status != 400
    assert (listener.connections, files_of(public)) == (0, before)


def test_a_prompt_may_say_what_a_file_looks_like(public: Served) -> None:
    visitor = guest(public)
    text = public.post("/gradio_api/run/predict", {"data": [FILE], "fn_index": 99_999, "session_hash": "s"}, visitor)
    assert "files" not in text.said
    deep: Any = "text"
    for _ in range(MAX_DEPTH - 2):
        deep = [deep]
    flat = public.post("/gradio_api/run/predict", {"data": deep, "fn_index": 99_999, "session_hash": "s"}, visitor)
    deeper = public.post("/gradio_api/run/predict", {"data": [deep], "fn_index": 1, "session_hash": "s"}, visitor)
    assert "levels" not in flat.said and "levels" in deeper.said
