"""Chat templates: rendered as the model's tokenizer says, refused in a sentence, and never for ever."""

from datetime import date
from typing import Any

import pytest

from tests.support.chat_templates import template
from tokendyno.backend.errors import InputError
from tokendyno.backend.worker import prompt as chat
from tokendyno.backend.worker.load.random_weights import byte_tokenizer

CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "<|im_start|>system\nYou are helpful<|im_end|>\n{% endif %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""In the way of SmolLM2's."""


def tokenizer(text: str | None) -> Any:
    found = byte_tokenizer(300)
    found.chat_template = text
    return found


def rendered(source: str, text: str = "Hi", effort: str = "", system: str = "") -> str:
    model_tokenizer = tokenizer(source)
    return str(model_tokenizer.decode(chat.chat_ids(model_tokenizer, text, effort, system)))


def test_the_prompt_is_the_message_of_a_user_and_the_answer_begins() -> None:
    assert rendered(CHATML, "Who is Pip?") == (
        "<|im_start|>system\nYou are helpful<|im_end|>\n<|im_start|>user\nWho is Pip?<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


HARMONY = (
    "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
    f"Knowledge cutoff: 2024-06\nCurrent date: {date.today():%Y-%m-%d}\n\nReasoning: EFFORT\n\n"
    "# Valid channels: analysis, commentary, final. Channel must be included for every message.<|end|>"
)
ASKED = "<|start|>user<|message|>Hi<|end|><|start|>assistant"
QWEN = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
LLAMA = "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"


@pytest.mark.parametrize(
    ("family", "effort", "system", "expected"),
    [
        ("llama-3", "", "", f"<|begin_of_text|>{LLAMA}"),
        (
            "llama-3",
            "",
            "Be concise.",
            f"<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe concise.<|eot_id|>{LLAMA}",
        ),
        ("qwen-3", "", "", QWEN),
        ("qwen-3", "off", "", f"{QWEN}<think>\n\n</think>\n\n"),
        ("qwen-3", "off", "Be concise.", f"<|im_start|>system\nBe concise.<|im_end|>\n{QWEN}<think>\n\n</think>\n\n"),
        ("gpt-oss", "", "", f"{HARMONY.replace('EFFORT', 'medium')}{ASKED}"),
        (
            "gpt-oss",
            "high",
            "Always respond in riddles",
            f"{HARMONY.replace('EFFORT', 'high')}<|start|>developer<|message|># Instructions\n\n"
            f"Always respond in riddles\n\n<|end|>{ASKED}",
        ),
        ("gemma", "", "", "<bos><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n"),
    ],
)
def test_published_formats_get_the_system_message_and_the_effort(
    family: str, effort: str, system: str, expected: str
) -> None:
    assert rendered(template(family), "Hi", effort, system) == expected


@pytest.mark.parametrize(
    ("text", "effort", "system", "words"),
    [
        (template("gemma"), "", "Be concise.", "takes no system message .System role not supported"),
        ("{{ messages[-1].content }}", "", "Be concise.", "leaves out the system message"),
        (template("llama-3"), "high", "", "has no reasoning effort"),
        (template("qwen-3"), "high", "", "knows no reasoning effort high. Choose on or off"),
        (template("gpt-oss"), "off", "", "knows no reasoning effort off. Choose low or medium or high"),
        ("{# reasoning_effort #}{{ messages[-1].content }}", "high", "", "has no reasoning effort"),
        ("{{ messages[-1].content }}{% if thinking %}{% endif %}", "on", "", "mentions thinking and does nothing"),
        ("{{ messages[-1].content }}{% if enable_thinking %}{% endif %}", "off", "", "does nothing with it"),
    ],
)
def test_what_a_template_does_not_take_is_refused(text: str, effort: str, system: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        chat.chat_ids(tokenizer(text), "Hi", effort, system)


PARTS = "{% for m in messages %}<{{ m.role }}>{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}<a>"


@pytest.mark.parametrize("system", ["", "Be brief."])
def test_a_template_that_takes_parts_gets_parts(system: str) -> None:
    assert rendered(PARTS, "user", system=system) == (f"<system>{system}" if system else "") + "<user>user<a>"


@pytest.mark.parametrize(
    "source", ["{% for m in messages %}<{{ m.role }}>{% endfor %}<a>", "<{{ messages[-1].content | length }} user>"]
)
def test_a_template_that_drops_the_prompt_is_refused(source: str) -> None:
    with pytest.raises(InputError, match=r"chat template leaves out the prompt, or words of it\. Use a plain prompt"):
        rendered(source, "user")


@pytest.mark.parametrize("text", ['  "Hi",\n\n she said: 1 < 2  ', "?!", "\u4f60\u597d", "x"])
@pytest.mark.parametrize("source", ["{{ messages[-1].content | trim }}", "{{ messages[-1].content | tojson }}"])
def test_a_prompt_may_be_trimmed_or_escaped(source: str, text: str) -> None:
    assert rendered(source, text)


def test_a_switch_of_another_name_is_turned() -> None:
    default = "{% if not thinking is defined %}{% set thinking = false %}{% endif %}"
    source = "{{ messages[-1].content }}" + default + "<{{ thinking }}>"
    assert [rendered(source, "Hi", effort) for effort in ("on", "off", "")] == ["Hi<True>", "Hi<False>", "Hi<False>"]


@pytest.mark.parametrize(
    ("source", "effort", "words"),
    [
        (None, "", "has no chat template"),
        (CHATML, "high", "has no reasoning effort"),
        ("{{ raise_exception('only assistants may speak') }}", "", "only assistants may speak"),
        ("{% for x in %}", "", "cannot be rendered"),
        ("{{ 1 / 0 }}", "", "cannot be rendered"),
        ("{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}", "", "cannot be rendered .RecursionError"),
        ("{{ 'x' * 10 ** 17 }}", "", "cannot be rendered .MemoryError"),
        ("{{ ''.__class__.__mro__ }}", "", "cannot be rendered"),
    ],
)
def test_what_cannot_be_rendered_is_refused_in_a_sentence(source: str | None, effort: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        chat.chat_ids(tokenizer(source), "Hi", effort)
