"""What was asked for is read a second time by other code, and what the model received is held against that."""

from typing import Any

import pytest
import torch

from backend.config import STOCK_SENTENCE
from backend.counts import RunCounts
from backend.messages import Generate
from backend.traffic import TrafficRequest
from backend.worker.prompt import chat
from backend.worker.prompt.asked import asked_ids, held_against, requests_held_against
from backend.worker.prompt.padding import pad
from backend.worker.prompt.prompt import Prompt
from backend.worker.prompt.requests import Asked
from tests.backend.worker.prompt.test_chat import PARTS, tokenizer
from tests.support.chat_templates import template
from tests.support.worker import plan_of

ASKED = [11, 12, 13, 14]


def read(*rows: list[int]) -> Prompt:
    ids = torch.tensor(rows)
    return Prompt(ids, torch.ones_like(ids))


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        ([ASKED], 0),
        ([ASKED, ASKED], 0),
        ([[12, 13, 14]], 4),
        ([[11, 12, 13]], 1),
        ([[14, 13, 12, 11]], 4),
        ([ASKED * 2], 4),
        ([ASKED, [11, 12, 14, 13]], 2),  # the worst row counts
        ([[11, 12, 14, 13], ASKED], 2),
    ],
)
@pytest.mark.parametrize("shapes", ["exact", "buckets"])
def test_tokens_that_differ_are_missing_or_are_too_many_are_counted(
    rows: list[list[int]], wrong: int, shapes: Any
) -> None:
    found = held_against(ASKED, pad(read(*rows), shapes, 0))
    assert (found.asked_tokens, found.misread_tokens) == (4, wrong)


def test_padding_that_is_not_masked_is_read_as_text() -> None:
    padded = pad(read(ASKED), "buckets", 0)
    assert held_against(ASKED, Prompt(padded.ids, torch.ones_like(padded.ids))).misread_tokens == 64


def test_what_the_model_received_counts_and_not_what_it_was_called_with() -> None:
    given = read(ASKED)
    assert held_against(ASKED, given, torch.tensor([[11, 12, 13, 99]])).misread_tokens == 1
    assert held_against(ASKED, given, torch.tensor([[*ASKED, 7, 8]])).misread_tokens == 0  # drafts behind the prompt
    assert held_against(ASKED, pad(given, "buckets", 0), torch.tensor([ASKED])).misread_tokens == 0
    assert held_against(ASKED, pad(given, "buckets", 0), torch.tensor([ASKED[1:]])).misread_tokens == 4


def command(text: str, tokens: int = 0, **more: Any) -> Generate:
    return Generate(plan_of(), text, tokens, 8, 1, 0.0, 0, False, True, **more)


def test_a_text_is_repeated_to_the_tokens_asked_for_and_a_stock_sentence_where_there_is_none() -> None:
    plain = tokenizer(None)
    words = plain("To be").input_ids
    assert asked_ids(plain, command("To be")) == words
    assert asked_ids(plain, command("To be", 2 * len(words) + 1)) == [*words, *words, words[0]]
    assert asked_ids(plain, command("To be", 2)) == words[:2]
    stock = plain(STOCK_SENTENCE).input_ids
    assert asked_ids(plain, command(" ", len(stock))) == stock
    assert asked_ids(plain, command(" ")) == plain(" ").input_ids


@pytest.mark.parametrize(
    ("name", "more"),
    [("qwen-3", {}), ("qwen-3", {"system": "Be concise."}), ("qwen-3", {"reasoning_effort": "off"}),
     ("qwen-3", {"reasoning_effort": "on"}), ("gpt-oss", {"reasoning_effort": "low"})],
)  # fmt: skip
def test_a_chat_is_rendered_as_for_the_run(name: str, more: dict[str, Any]) -> None:
    made = tokenizer(template(name))
    read = chat.chat_ids(made, "Hi", more.get("reasoning_effort", ""), more.get("system", ""))
    assert asked_ids(made, command("Hi", chat=True, **more)) == read


@pytest.mark.parametrize("more", [{}, {"system": "Be brief."}, {"reasoning_effort": "on"}])
def test_parts_and_another_switch_are_read_as_for_the_run(more: dict[str, Any]) -> None:
    made = tokenizer(PARTS + "{{ thinking }}")
    read = chat.chat_ids(made, "user", more.get("reasoning_effort", ""), more.get("system", ""))
    assert asked_ids(made, command("user", chat=True, **more)) == read


def test_a_template_that_renders_once_and_not_again_ends_no_run() -> None:
    def spent(*args: object, **how: object) -> None:
        raise TimeoutError

    speaker = tokenizer(template("llama-3"))
    speaker.apply_chat_template = spent
    assert asked_ids(speaker, command("Hello", chat=True)) is None
    assert held_against(None, read(ASKED)) == RunCounts()


def test_many_requests_are_held_against_what_was_read_of_each() -> None:
    speaker = tokenizer(template("llama-3"))
    asked = [TrafficRequest(0.0, 5, 4, token_ids=[1, 2]), TrafficRequest(0.5, 5, 0, prompt="Hello")]
    hello = speaker("Hello")["input_ids"]
    right = [Asked(0, 0.0, [1, 2, 1, 2], 5), Asked(1, 0.5, hello, 5)]
    tokens = 4 + len(hello)

    def found(read: list[Asked]) -> tuple[float | None, float | None]:
        counts = requests_held_against(speaker, asked, read)
        return counts.asked_tokens, counts.misread_tokens

    assert found(right) == (tokens, 0)
    assert found([right[0]._replace(ids=[1, 2, 1]), right[1]]) == (tokens, 1)
    assert found(right[:1]) == (tokens, len(hello))
    assert found([*right, right[0]]) == (tokens, 4)
