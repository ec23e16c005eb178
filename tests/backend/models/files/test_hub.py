"""Hub ids are checked before anything is sent; every error of the Hub becomes one sentence."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tokendyno.backend.errors import InputError
from tokendyno.backend.models import resolve
from tokendyno.backend.models.files import hub

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 3,
    "hidden_size": 8,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "vocab_size": 10,
    "torch_dtype": "float16",
}


@pytest.mark.parametrize(
    ("ref", "parsed"),
    [
        ("org/name", ("org/name", "")),
        ("org/name@refs/pr/1", ("org/name", "refs/pr/1")),
        ("name", None),
        ("org/name/x", None),
        ("org/name@", None),
        ("org/../name", None),
        ("org/name@../x", None),
        ("org--x/name", None),
        ("org/name.git", None),
        ("org/name\n", None),
        ("o/" + "x" * 97, None),
        ("org/ｎame", None),
    ],
)
def test_only_what_is_certainly_a_hub_id_is_one(ref: str, parsed: tuple[str, str] | None) -> None:
    assert hub.parse_reference(ref) == parsed


class Hub(BaseHTTPRequestHandler):
    """A Hub with a few repositories, each with its own problem."""

    body = json.dumps(CONFIG).encode()
    asked: list[str] = []

    def do_HEAD(self) -> None:
        self.answer(False)

    def do_GET(self) -> None:
        self.answer(True)

    def answer(self, with_body: bool) -> None:
        self.asked.append(self.path)
        repo = "/".join(self.path.split("/")[1:3])
        trouble = {
            "org/gated": (403, "GatedRepo"),
            "org/none": (401, "RepoNotFound"),
            "org/rev": (404, "RevisionNotFound"),
            "org/file": (404, "EntryNotFound"),
            "org/down": (503, ""),
        }.get(repo)
        self.send_response(trouble[0] if trouble else 200)
        if trouble:
            self.send_header("X-Error-Code", trouble[1])
            self.send_header("X-Error-Message", trouble[1])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if repo == "org/slow":
            time.sleep(2)
        self.send_header("X-Repo-Commit", "a" * 40)
        self.send_header("ETag", f'"{repo.replace("/", "")}"')
        self.send_header("Content-Length", str(1 << 30 if repo == "org/huge" else len(self.body)))
        self.end_headers()
        if with_body:
            self.wfile.write(self.body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    """The Hub above instead of the real one, with an empty cache; returns the paths that were requested."""
    from huggingface_hub import constants

    http = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{http.server_port}"
    monkeypatch.setenv("HF_ENDPOINT", url)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    hub._answers.clear()
    Hub.asked.clear()
    yield Hub.asked
    http.shutdown()
    http.server_close()
    hub._answers.clear()


def test_a_config_is_fetched_once_and_nothing_else(server: list[str]) -> None:
    facts = resolve("org/good@main")
    assert (facts.layers, facts.dtype, facts.label) == (3, "float16", "org/good@main")
    assert (facts.source.kind, facts.source.repo, facts.source.revision) == ("hub", "org/good", "main")
    asked = len(server)
    resolve("org/good@main")
    assert len(server) == asked
    assert all(path.endswith("/config.json") or path.startswith("/api/models/org/good/") for path in server)


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        ("org/gated", "is gated. Accept its licence"),
        ("org/none", "no public model"),
        ("org/rev@nope", "has no revision 'nope'"),
        ("org/file", "has no config.json"),
        ("org/down", "could not be reached"),
        ("org/huge", "bytes, more than any model"),
    ],
)
def test_each_trouble_has_its_own_message(server: list[str], ref: str, said: str) -> None:
    began = time.perf_counter()
    with pytest.raises(InputError) as error:
        resolve(ref)
    assert said in str(error.value) and time.perf_counter() - began < 5


def test_a_slow_hub_is_not_waited_for(server: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "DEADLINE_S", 0.2)
    with pytest.raises(hub.HubUnreachable, match="no answer in"):
        resolve("org/slow")


def test_a_config_in_the_cache_serves_without_the_hub(server: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    resolve("org/good")
    hub._answers.clear()
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert resolve("org/good").layers == 3


@pytest.mark.parametrize("repo", ["org/name", "Qwen/Other"])
def test_without_a_network_the_answer_is_quick_and_plain(
    server: list[str], monkeypatch: pytest.MonkeyPatch, repo: str
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    began = time.perf_counter()
    with pytest.raises(hub.HubUnreachable, match="could not be reached"):
        resolve(repo)
    assert time.perf_counter() - began < 5
    assert not server


def test_a_hub_that_was_not_reached_is_not_asked_again_at_once(
    server: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        with pytest.raises(hub.HubUnreachable):
            resolve("org/down")
    assert len(server) == 1
    hub._answers.clear()
    with pytest.raises(hub.HubUnreachable):
        resolve("org/down")
    assert len(server) == 2
