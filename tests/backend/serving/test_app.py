"""What a server does where its model breaks, and whom it answers without a key; how the command refuses."""

import itertools
import socket
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import tokendyno as td
from tests.support.changed_weights import changed_copy
from tests.support.command_line import cli_here, sentence
from tokendyno.backend.serving.app import Service
from tokendyno.backend.serving.stream import Turns

PROMPT = {"prompt": "Once", "max_tokens": 3, "temperature": 0}


def test_a_model_that_breaks_is_told_and_the_server_goes_on(tmp_path: Path) -> None:
    noisy = changed_copy(tmp_path / "pocket", {"model.norm.weight": lambda weight: weight.mul_(30_000)})
    with td.load(str(noisy), "dtype=float16", progress=False) as model:
        client = TestClient(Service(model, "pocket", 128, Turns(0)).app(), base_url="http://localhost")
        for stream in (False, True, False):
            broken = client.post("/v1/completions", json=PROMPT | {"stream": stream})
            message = broken.text if stream and broken.status_code == 200 else broken.json()["error"]["message"]
            assert "use dtype=bfloat16" in message and "server_error" in broken.text
            assert broken.status_code == 500 or "data: [DONE]" not in message
        assert client.get("/health").status_code == 200
        assert 'outcome="failed"} 3' in client.get("/metrics").text


def test_a_batch_that_breaks_ends_all_its_texts_and_the_server_says_so() -> None:
    with td.load("pocket", "batching=continuous,batch_size=2", max_length=128, progress=False) as model:
        client = TestClient(Service(model, "pocket", 128, Turns(0, 2)).app(), base_url="http://localhost")
        assert client.post("/v1/completions", json=PROMPT).status_code == 200
        steps = itertools.count()

        def breaking(*_: object, **__: object) -> None:
            if next(steps) == 3:
                raise RuntimeError("the pages are gone")

        model._inner.loaded.model.register_forward_pre_hook(breaking)
        streams = [model.stream("Once", max_new_tokens=64, ignore_eos=True) for _ in range(2)]
        for stream in streams:
            with pytest.raises(td.RunFailed, match="the pages are gone"):
                list(stream)
        assert client.get("/health").status_code == 503 and client.get("/health").json() == {"status": "failed"}
        broken = client.post("/v1/completions", json=PROMPT)
        assert broken.status_code == 500 and "the pages are gone" in broken.json()["error"]["message"]


def test_without_a_key_no_page_of_another_site_is_answered() -> None:
    with td.load("pocket", progress=False) as model:
        app = Service(model, "pocket", 128, Turns(0)).app()
        here, rebound = (TestClient(app, base_url=url) for url in ("http://127.0.0.1:8000", "http://evil.example:8000"))
        assert here.post("/v1/completions", json=PROMPT).status_code == 200
        assert rebound.post("/v1/completions", json=PROMPT).status_code == 421
        foreign = here.post("/v1/completions", json=PROMPT, headers={"Origin": "https://evil.example"})
        assert foreign.status_code == 403 and foreign.json()["error"]["type"] == "permission_error"


REFUSED = [
    (["--arm", "batching=static"], "takes many requests"),
    (["--arm", "parallel=tensor-2"], "runs 2 processes"),
    (["--model", "random:bert-base-uncased"], "is an encoder"),
    (["--max-length", "1000000"], "positions"),
    (["--max-length", "1"], "must be a whole number from 2 to 4,096"),
    (["--queue", "-1"], "--queue: must be a whole number from 0 on, not '-1'"),
    (["--port", "70000"], "--port: must be a whole number from 0 to 65,535"),
    (["--host", "no.such.host.invalid"], "Unknown host"),
]


@pytest.mark.parametrize(("options", "words"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_cannot_be_served_is_refused_in_a_sentence(options: list[str], words: str, tmp_path: Path) -> None:
    ran = cli_here("serve", "--port", "0", *options, cwd=tmp_path)
    assert words in sentence(ran.returncode, ran.stdout, ran.stderr)


def test_a_port_in_use_is_refused_before_the_model_is_loaded(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = cli_here("serve", "--port", str(taken.getsockname()[1]), cwd=tmp_path)
    assert "Choose another with --port" in sentence(ran.returncode, ran.stdout, ran.stderr)
