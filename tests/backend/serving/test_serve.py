"""OpenAI's own client, and plain requests, against `tokendyno serve` with the embedded model."""

import concurrent.futures
import itertools
import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

import tokendyno as td
from tests.support.processes import wait_for
from tests.support.served_arm import KEY, ServedArm, chat_model, served_arm
from tokendyno.backend.errors import InputError
from tokendyno.backend.serving import command

pytestmark = pytest.mark.xdist_group("serve")

ARM = "dtype=float32,cache=static,loop=own"
PROMPT = "Once upon a time, there was a little fox named Pip."
SAID: Any = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Tell me of a fox."}]
GREEDY: Any = {"temperature": 0, "model": None}
LONG = {"prompt": PROMPT, "max_tokens": 900, "ignore_eos": True, "stream": True}
IDS: Any = {"return_token_ids": True}


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedArm]:
    folder = tmp_path_factory.mktemp("served")
    with served_arm(folder, chat_model(folder), "--arm", ARM, "--queue", "1", "--max-length", "1024") as served:
        yield served


@pytest.fixture(scope="module")
def client(arm: ServedArm) -> openai.OpenAI:
    GREEDY["model"] = arm.model
    return arm.openai()


@pytest.fixture(scope="module")
def plain(arm: ServedArm) -> Iterator[httpx.Client]:
    with arm.http() as http:
        yield http


@pytest.fixture(scope="module")
def model(arm: ServedArm) -> Iterator[td.Model]:
    with td.load(arm.model, ARM, max_length=256, progress=False) as loaded:
        yield loaded


def counts(plain: httpx.Client) -> dict[str, float]:
    lines = [line for line in plain.get("/metrics").text.splitlines() if not line.startswith("#")]
    return {name.removeprefix("tokendyno_"): float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_it_says_what_it_serves_and_what_for(arm: ServedArm, client: openai.OpenAI) -> None:
    lines = "\n".join(arm.lines)
    assert "loop=own" in lines and "1,024 tokens" in lines and "demos and experiments" in lines and "vLLM" in lines
    assert [one.id for one in client.models.list()] == [client.models.retrieve(arm.model).id] == [arm.model]


def test_a_completion_whole_and_as_it_comes_is_that_of_the_library(client: openai.OpenAI, model: td.Model) -> None:
    expected = model.generate(PROMPT, max_new_tokens=24)
    whole = client.completions.create(prompt=PROMPT, max_tokens=24, extra_body=IDS, **GREEDY)
    choice: Any = whole.choices[0]
    assert (choice.text, choice.token_ids, choice.finish_reason) == (expected.text, expected.ids, "length")
    assert choice.prompt_token_ids == model.prompt_ids(PROMPT) and whole.usage is not None
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (expected.prompt_tokens, 24)
    assert whole.usage.total_tokens == expected.prompt_tokens + 24
    options: Any = {"include_usage": True}
    *events, last = client.completions.create(
        prompt=PROMPT, max_tokens=24, stream=True, stream_options=options, extra_body=IDS, **GREEDY
    )
    choices: list[Any] = [event.choices[0] for event in events]
    assert "".join(one.text for one in choices) == expected.text and len(choices) > 10
    assert [token for one in choices for token in one.token_ids] == expected.ids
    assert [one.finish_reason for one in choices] == [None] * (len(choices) - 1) + ["length"]
    assert last.choices == [] and last.usage == whole.usage


def test_a_chat_whole_and_as_it_comes_is_that_of_the_library(client: openai.OpenAI, model: td.Model) -> None:
    expected = model.generate(SAID, max_new_tokens=16)
    parts: Any = [SAID[0], {"role": "user", "content": [{"type": "text", "text": SAID[1]["content"]}]}]
    for messages in (SAID, parts):
        whole = client.chat.completions.create(messages=messages, max_completion_tokens=16, **GREEDY)
        assert whole.choices[0].message.content == expected.text and whole.choices[0].message.role == "assistant"
        assert whole.usage is not None and whole.usage.prompt_tokens == expected.prompt_tokens
    events = list(client.chat.completions.create(messages=SAID, max_tokens=16, stream=True, **GREEDY))
    assert "".join(event.choices[0].delta.content or "" for event in events) == expected.text
    assert events[0].choices[0].delta.role == "assistant" and events[-1].choices[0].finish_reason == "stop"
    assert expected.stop == "eos"
    answered = [*SAID, whole.choices[0].message.model_dump(), SAID[1]]  # as programs send it back, with its nulls
    assert client.chat.completions.create(messages=answered, max_tokens=2, **GREEDY).choices[0].message.content


@pytest.mark.parametrize("stream", [False, True])
def test_a_text_ends_before_a_stop_that_lies_across_tokens(
    stream: bool, client: openai.OpenAI, model: td.Model
) -> None:
    with model.stream(PROMPT, max_new_tokens=24) as tokens:
        pieces = [one.text for one in tokens]
    ends = list(itertools.accumulate(map(len, pieces)))
    text = "".join(pieces)
    place = next(at for at in ends[5:] if text.find(text[at - 2 : at + 2]) == at - 2)
    made: Any = client.completions.create(
        prompt=PROMPT, max_tokens=24, stop=["never this", text[place - 2 : place + 2]], stream=stream, **GREEDY
    )
    choices = [event.choices[0] for event in made] if stream else made.choices
    assert "".join(one.text for one in choices) == text[: place - 2] and choices[-1].finish_reason == "stop"


def test_log_probabilities_are_those_of_the_library(client: openai.OpenAI, model: td.Model) -> None:
    expected = model.generate(PROMPT, max_new_tokens=8, logprobs=3).tokens
    choice = client.completions.create(prompt=PROMPT, max_tokens=8, logprobs=3, **GREEDY).choices[0]
    assert choice.logprobs is not None and choice.logprobs.token_logprobs is not None
    assert choice.logprobs.token_logprobs == pytest.approx([one.logprob for one in expected], abs=1e-5)
    assert choice.logprobs.tokens == [model.tokenizer.decode([one.id]) for one in expected]
    assert choice.logprobs.top_logprobs is not None and choice.logprobs.text_offset is not None
    assert list(choice.logprobs.top_logprobs[2]) == [one.text for one in expected[2].top]
    assert [choice.text[at:][:1] for at in choice.logprobs.text_offset] == [t[:1] for t in choice.logprobs.tokens]
    expected_chat = model.generate(SAID, max_new_tokens=4, logprobs=2).tokens
    chat = client.chat.completions.create(messages=SAID, max_tokens=4, logprobs=True, top_logprobs=2, **GREEDY)
    assert chat.choices[0].logprobs is not None and chat.choices[0].logprobs.content is not None
    for item, token in zip(chat.choices[0].logprobs.content, expected_chat, strict=True):
        assert item.logprob == pytest.approx(token.logprob, abs=1e-5)
        assert bytes(item.bytes or []).decode() == item.token
        assert [top.token for top in item.top_logprobs] == [top.text for top in token.top]


def test_prompts_may_be_ids_and_lists_of_one_and_texts_are_drawn_by_seed(
    client: openai.OpenAI, model: td.Model
) -> None:
    ids, make = model.prompt_ids(PROMPT), client.completions.create
    prompts: list[Any] = [PROMPT, [PROMPT], ids, [ids]]
    assert len({make(prompt=one, max_tokens=6, **GREEDY).choices[0].text for one in prompts}) == 1
    drawn = [
        make(model=GREEDY["model"], prompt=PROMPT, max_tokens=16, temperature=1.5, seed=seed).choices[0].text
        for seed in (1, 1, 2, None, None)
    ]
    assert drawn[0] == drawn[1] and len(set(drawn)) == 4


def test_only_who_knows_the_key_is_answered(arm: ServedArm, plain: httpx.Client) -> None:
    assert httpx.get(f"{arm.url}/health").json() == {"status": "ok"}
    for value in ("", "Bearer", "Bearer a ke", f"Basic {KEY}", "Bearer \u00e9"):
        refused = httpx.get(f"{arm.url}/v1/models", headers=[(b"Authorization", value.encode("latin-1"))])
        assert refused.status_code == 401 and "TOKENDYNO_API_KEY" in refused.json()["error"]["message"]
    with pytest.raises(openai.AuthenticationError, match="needs its key"):
        openai.OpenAI(base_url=f"{arm.url}/v1", api_key="other", max_retries=0).models.list()


COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
USER = [{"role": "user", "content": "Hi"}]
IMAGE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]
BAD: list[tuple[str, Any, int, str, str | None]] = [
    (COMPLETIONS, b"{", 400, "not JSON", None),
    (COMPLETIONS, b'{"prompt": "\\ud800"}', 400, "not JSON", None),
    (COMPLETIONS, b"\xff", 400, "not JSON", None),
    (COMPLETIONS, b"[" * 100_000, 400, "not JSON", None),
    (COMPLETIONS, [], 400, "JSON object", None),
    (COMPLETIONS, {}, 400, "`prompt`", None),
    (COMPLETIONS, {"prompt": ""}, 400, "no tokens", None),
    (COMPLETIONS, {"prompt": ["a", "b"]}, 400, "one prompt", "prompt"),
    (COMPLETIONS, {"prompt": [10**7]}, 400, "ids must be", None),
    (COMPLETIONS, {"prompt": "a", "max_tokens": 0}, 400, "max_tokens is 0", "max_tokens"),
    (COMPLETIONS, {"prompt": "a", "max_tokens": "5"}, 400, "Expected `int", "max_tokens"),
    (COMPLETIONS, {"prompt": "a", "max_tokens": 2000}, 400, "--max-length", "max_tokens"),
    (COMPLETIONS, {"prompt": "a " * 3000}, 400, "1,024 together", "prompt"),
    (COMPLETIONS, {"prompt": "a" * (5 << 20)}, 413, "limit of 4,194,304", None),
    (COMPLETIONS, {"prompt": "a", "temperature": -1}, 400, "temperature is -1", "temperature"),
    (COMPLETIONS, {"prompt": "a", "top_p": 2}, 400, "top_p is 2", "top_p"),
    (COMPLETIONS, {"prompt": "a", "seed": -1}, 400, "seed is -1", "seed"),
    (COMPLETIONS, {"prompt": "a", "logprobs": 21}, 400, "logprobs is 21", "logprobs"),
    (COMPLETIONS, {"prompt": "a", "n": 2}, 400, "n = 2", "n"),
    (COMPLETIONS, {"prompt": "a", "echo": True}, 400, "echo", "echo"),
    (COMPLETIONS, {"prompt": "a", "presence_penalty": 0.5}, 400, "presence_penalty", "presence_penalty"),
    (COMPLETIONS, {"prompt": "a", "stop": ""}, 400, "stop must be", "stop"),
    (COMPLETIONS, {"prompt": "a", "stream_options": {"include_usage": True}}, 400, "Set stream", "stream_options"),
    (COMPLETIONS, {"prompt": "a", "temprature": 1}, 400, "Did you mean 'temperature'", "temprature"),
    (COMPLETIONS, {"prompt": "a", "model": "gpt-9"}, 404, "no model 'gpt-9'", "model"),
    (CHAT, {"messages": []}, 400, "messages is empty", "messages"),
    (CHAT, {"messages": IMAGE}, 400, "'image_url'", "messages[0].content"),
    (CHAT, {"messages": [{"role": "tool", "content": "1"}]}, 400, "'tool'", "messages[0].role"),
    (CHAT, {"messages": [{"role": "assistant", "content": "", "tool_calls": [1]}]}, 400, "tool_calls", "messages[0]"),
    (CHAT, {"messages": USER, "tools": [{"type": "function"}]}, 400, "tools", "tools"),
    (CHAT, {"messages": USER, "response_format": {"type": "json_object"}}, 400, "response_format", "response_format"),
    (CHAT, {"messages": USER, "top_logprobs": 2}, 400, "logprobs to true", "top_logprobs"),
    (CHAT, {"messages": USER, "reasoning_effort": "low"}, 400, "reasoning", None),
    ("/v1/embeddings", {"input": "a"}, 404, "no /v1/embeddings", None),
]


@pytest.mark.parametrize(("path", "body", "status", "words", "param"), BAD, ids=[str(one[1])[:60] for one in BAD])
def test_what_cannot_be_done_is_refused_with_a_reason(
    path: str, body: Any, status: int, words: str, param: str | None, plain: httpx.Client
) -> None:
    answer = plain.post(path, content=body if isinstance(body, bytes) else json.dumps(body))
    error = answer.json()["error"]
    assert answer.status_code == status and words in error["message"] and error["param"] == param
    assert set(error) == {"message", "type", "param", "code"} and error["type"] and error["message"].endswith(".")


def test_what_asks_for_nothing_is_no_error(plain: httpx.Client) -> None:
    neutral = {"n": 1, "tools": [], "logit_bias": None, "presence_penalty": 0.0, "user": "me", "store": False}
    body = {"messages": USER, "max_tokens": 1, "response_format": {"type": "text"}, "temperature": 0, "top_p": 0.9}
    assert plain.post(CHAT, json=body | neutral).status_code == 200


def test_requests_wait_in_turn_a_full_queue_says_so_and_who_leaves_makes_room(
    arm: ServedArm, plain: httpx.Client, model: td.Model
) -> None:
    before, short = counts(plain), {"prompt": PROMPT, "max_tokens": 4, "temperature": 0}
    with concurrent.futures.ThreadPoolExecutor(1) as threads, arm.http() as other:
        with plain.stream("POST", COMPLETIONS, json=LONG) as running:
            lines = running.iter_lines()  # which closes the answer once nobody has it
            assert next(lines).startswith("data: {")
            waiting = threads.submit(other.post, COMPLETIONS, json=short)
            wait_for(lambda: counts(plain)["queue_length"] == 1)
            full = plain.post(COMPLETIONS, json=short)
            assert full.status_code == 429 and full.headers["retry-after"] and "full" in full.json()["error"]["message"]
        assert waiting.result(60).json()["choices"][0]["text"] == model.generate(PROMPT, max_new_tokens=4).text
    with pytest.raises(httpx.ReadTimeout):  # a whole answer that nobody waits for
        plain.post(COMPLETIONS, json=LONG | {"stream": False}, timeout=0.5)
    assert plain.post(COMPLETIONS, json=short).status_code == 200
    now = counts(plain)
    assert now['requests_total{outcome="left"}'] - before['requests_total{outcome="left"}'] == 2
    assert now['requests_total{outcome="full"}'] - before['requests_total{outcome="full"}'] == 1
    assert now["running"] == now["queue_length"] == 0
    assert now["completion_tokens_total"] - before["completion_tokens_total"] < 1500


def test_a_server_holds_its_port_from_before_its_model_is_loaded() -> None:
    with command._listener("127.0.0.1", 0) as held:
        port = held.getsockname()[1]
        with pytest.raises(InputError, match=f"^Port {port} on 127.0.0.1 cannot be used .Address already in use"):
            command._listener("127.0.0.1", port)
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass  # it waits, and is not refused
    with command._listener("127.0.0.1", port):
        pass  # what was let go can be had at once


def test_metrics_tell_of_each_request(plain: httpx.Client) -> None:
    before = counts(plain)
    plain.post(COMPLETIONS, json={"prompt": PROMPT, "max_tokens": 5})
    now = counts(plain)
    assert now['requests_total{outcome="length"}'] == before['requests_total{outcome="length"}'] + 1
    assert now["completion_tokens_total"] == before["completion_tokens_total"] + 5
    for name in ("time_to_first_token_seconds", "time_per_output_token_seconds"):
        assert now[f"{name}_count"] == before[f"{name}_count"] + 1 == now[f'{name}_bucket{{le="+Inf"}}']
        assert now[f"{name}_sum"] > before[f"{name}_sum"]


@pytest.mark.slow
def test_a_signal_lets_what_runs_end(arm: ServedArm, plain: httpx.Client) -> None:
    """The last one: it ends the server."""
    with arm.http() as other, plain.stream("POST", COMPLETIONS, json=LONG | {"max_tokens": 150}) as running:
        lines = running.iter_lines()
        next(lines)
        arm.process.terminate()
        wait_for(lambda: other.get("/health").status_code == 503)
        refused = other.post(COMPLETIONS, json={"prompt": PROMPT})
        assert refused.status_code == 503 and "stopping" in refused.json()["error"]["message"]
        *_, last, done = [line for line in lines if line]
    assert done == "data: [DONE]"
    assert json.loads(last.removeprefix("data: "))["choices"][0]["finish_reason"] == "length"
    assert arm.process.wait(30) == 0
    errors = arm.errors.read_text()
    assert "stopping" in errors and "Traceback" not in errors
