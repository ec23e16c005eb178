"""An arm is a value whose id never moves; a workload refuses nonsense when it is built."""

import dataclasses
import math
from typing import Any

import pytest

from tokendyno.backend.config import MAX_BATCH_SIZE, MAX_NEW_TOKENS, MAX_PROMPT_BYTES, RANGES, Config, Workload
from tokendyno.backend.errors import InputError


def test_an_id_is_the_same_in_every_version_and_process() -> None:
    assert Config("pocket").id == "4fb46e88b4a9"
    assert Config("pocket", (("cache", "static"), ("compile", "default"))).id == "0585f828715d"


def test_an_id_differs_when_anything_does() -> None:
    configs = [
        Config("pocket"),
        Config("gpt2"),
        Config("pocket", (("cache", "static"),)),
        Config("pocket", (("compile", "static"),)),
        Config("pocket,cache", (("static", ""),)),
        Config('pocket", [["cache', ()),
    ]
    assert len({config.id for config in configs}) == len(configs)


def test_a_config_is_frozen_and_hashable() -> None:
    config = Config("pocket", (("cache", "static"),))
    assert {config: 1}[Config("pocket", (("cache", "static"),))] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.model = "gpt2"  # type: ignore[misc]


@pytest.mark.parametrize(
    "work",
    [
        {"prompt": "x"},
        {"prompt": "x", "max_new_tokens": MAX_NEW_TOKENS},
        {"prompt": "x", "batch_size": MAX_BATCH_SIZE},
        {"prompt": "x", "repeats": RANGES["repeats"][1]},
        {"prompt": "x", "temperature": 10.0},
        {"prompt": "x", "temperature": 1.0, "top_k": 50, "top_p": 0.9},
        {"prompt": "x", "chat": True, "reasoning_effort": "low"},
        {"prompt": "x", "chat": True, "reasoning_effort": "off", "system": "Be concise."},
        {"prompt": "x", "seed": 2**63 - 1},
        {"prompt": "x" * MAX_PROMPT_BYTES},
        {"prompt": "\x00 is a character too"},
        {"prompt": "ein Bär 🐻"},
    ],
)
def test_takes(work: dict[str, Any]) -> None:
    made = Workload(**work)
    assert all(getattr(made, name) == value for name, value in work.items())


@pytest.mark.parametrize(
    ("work", "says"),
    [
        ({}, "The prompt is empty. Write some text"),
        ({"prompt": "x", "max_new_tokens": 0}, "max_new_tokens is 0; it must be a whole number from 1 to 32,768."),
        ({"prompt": "x", "max_new_tokens": MAX_NEW_TOKENS + 1}, "max_new_tokens is 32769"),
        ({"prompt": "x", "batch_size": 0}, "batch_size is 0"),
        ({"prompt": "x", "batch_size": MAX_BATCH_SIZE + 1}, "batch_size is 1025"),
        ({"prompt": "x", "repeats": 0}, "repeats is 0"),
        ({"prompt": "x", "repeats": 51}, "repeats is 51"),
        ({"prompt_tokens": 1_000_001}, "prompt_tokens is 1000001"),
        ({"prompt": "x", "seed": 2**63}, "seed is"),
        ({"prompt": "x", "top_k": 5}, "no effect at temperature 0"),
        ({"prompt": "x", "top_p": 0.9}, "no effect at temperature 0"),
        ({"prompt": "x", "temperature": 1.0, "top_p": 1.1}, "top_p is 1.1"),
        ({"prompt": "x", "reasoning_effort": "low"}, "Turn chat on as well"),
        ({"prompt": "x", "system": "Be concise."}, "Turn chat on as well"),
        ({"prompt_tokens": 5, "chat": True}, "cannot have a fixed number of prompt tokens"),
        ({"prompt": "x", "temperature": -0.1}, "temperature is -0.1; it must be 0 (greedy), or from 0.001 to 10."),
        ({"prompt": "x", "temperature": 10.1}, "temperature is 10.1"),
        ({"prompt": "x", "temperature": 1e-320}, "temperature is 1e-320; it must be 0 (greedy), or from 0.001 to 10."),
        ({"prompt": "x", "max_new_tokens": 10**300}, "max_new_tokens is a number of about 300 digits; it must be"),
        ({"prompt": "x", "temperature": math.nan}, "temperature is nan"),
        ({"prompt": "é" * (MAX_PROMPT_BYTES // 2 + 1)}, "The prompt has 1,048,578 bytes, over the limit of 1,048,576"),
        ({"prompt": "\udcff"}, "not valid UTF-8"),
    ],
)
def test_refuses(work: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as refused:
        Workload(**work)
    assert says in str(refused.value)
