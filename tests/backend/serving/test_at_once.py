"""OpenAI's own client against `tokendyno serve` with an arm of continuous batching: several texts at once."""

import concurrent.futures
from collections.abc import Iterator
from typing import Any

import openai
import pytest

import tokendyno as td
from tests.support.processes import wait_for
from tests.support.served_arm import ServedArm, served_arm

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("serve")]

ARM = "dtype=float32,batching=continuous,batch_size=4,page_size=16"
PROMPTS = [f"Once upon a time, there was a little fox named {name}." for name in ("Pip", "Max", "Tim", "Sue")]
IDS: Any = {"return_token_ids": True, "ignore_eos": True}


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedArm]:
    options = ("--arm", ARM, "--queue", "1", "--max-length", "320")
    with served_arm(tmp_path_factory.mktemp("served"), "pocket", *options) as served:
        yield served


def running(arm: ServedArm) -> tuple[float, float]:
    with arm.http() as plain:
        lines = [line for line in plain.get("/metrics").text.splitlines() if not line.startswith("#")]
    metrics = dict(line.rsplit(" ", 1) for line in lines)
    return float(metrics["tokendyno_running"]), float(metrics["tokendyno_queue_length"])


def test_four_at_once_give_the_texts_of_one_at_a_time(arm: ServedArm) -> None:
    client = arm.openai()
    fields: Any = {"model": "pocket", "temperature": 0, "extra_body": IDS}
    with td.load("pocket", "dtype=float32", max_length=256, progress=False) as model:
        expected = [model.generate(one, max_new_tokens=40 + at, ignore_eos=True) for at, one in enumerate(PROMPTS)]

    def ids(at: int) -> list[int]:
        events = client.completions.create(prompt=PROMPTS[at], max_tokens=40 + at, stream=True, **fields)
        choices: list[Any] = [event.choices[0] for event in events]
        assert "".join(one.text for one in choices) == expected[at].text and len(choices) > 10
        return [token for one in choices for token in one.token_ids]

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        assert list(threads.map(ids, range(4))) == [one.ids for one in expected]
    stopped: Any = client.completions.create(
        prompt=PROMPTS[0], max_tokens=40, stop=[expected[0].text[20:26]], **fields
    ).choices[0]
    assert stopped.text == expected[0].text[:20] and stopped.finish_reason == "stop"


def test_who_leaves_makes_room_for_who_waits_and_nobody_else_ends(arm: ServedArm) -> None:
    client = arm.openai()
    long: Any = {"model": "pocket", "prompt": PROMPTS[0], "max_tokens": 250, "extra_body": IDS, "stream": True}
    for cannot in ({"logprobs": 2}, {"seed": 1}):
        with pytest.raises(openai.BadRequestError, match="batching=continuous"):
            client.completions.create(model="pocket", prompt="a", max_tokens=2, **cannot)  # type: ignore[call-overload]
    streams = [client.completions.create(**long, temperature=at / 2) for at in range(4)]
    for stream in streams:
        assert next(stream).choices
    assert running(arm) == (4, 0)
    short: Any = {"model": "pocket", "prompt": PROMPTS[1], "max_tokens": 8, "temperature": 0}
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(lambda: client.completions.create(**short))
        wait_for(lambda: running(arm) == (4, 1))
        with pytest.raises(openai.RateLimitError, match="queue is full"):
            client.completions.create(**short)
        streams[0].close()
        assert waiting.result(30).choices[0].finish_reason == "length"
    assert running(arm) == (3, 0)
    for stream in streams[1:]:
        *_, last = stream
        assert last.choices[0].finish_reason == "length"
    wait_for(lambda: running(arm) == (0, 0))
    assert client.completions.create(**short).choices[0].text == waiting.result().choices[0].text
