"""Chat templates: rendered as the model's tokenizer says, refused in a sentence, and never for ever."""

from typing import Any

import pytest

from backend.errors import InputError
from backend.worker.load.random_model import byte_tokenizer
from backend.worker.prompt import chat

CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "<|im_start|>system\nYou are helpful<|im_end|>\n{% endif %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""In the way of SmolLM2's."""
EFFORT = (
    "{%- if reasoning_effort is not defined %}{%- set reasoning_effort = 'medium' %}{%- endif %}"
    "Reasoning: {{ reasoning_effort }}\n{{ messages[0]['content'] }}"
)
"""In the way of gpt-oss's."""


def tokenizer(template: str | None) -> Any:
    found = byte_tokenizer(300)
    found.chat_template = template
    return found


def rendered(template: str, text: str = "Hi", effort: str = "") -> str:
    made = tokenizer(template)
    return str(made.decode(chat.chat_ids(made, text, effort)))


def test_the_prompt_is_the_message_of_a_user_and_the_answer_begins() -> None:
    assert rendered(CHATML, "Who is Pip?") == (
        "<|im_start|>system\nYou are helpful<|im_end|>\n<|im_start|>user\nWho is Pip?<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


@pytest.mark.parametrize(("effort", "told"), [("", "medium"), ("low", "low"), ("high", "high")])
def test_the_effort_reaches_a_template_that_has_it(effort: str, told: str) -> None:
    assert rendered(EFFORT, "Hi", effort) == f"Reasoning: {told}\nHi"


@pytest.mark.parametrize(
    ("template", "effort", "words"),
    [
        (None, "", "has no chat template"),
        (None, "high", "has no chat template"),
        (CHATML, "high", "has no reasoning effort"),
        ("{{ raise_exception('only assistants may speak') }}", "", "only assistants may speak"),
        ("{% for x in %}", "", "cannot be rendered"),
        ("{{ messages[3].content }}", "", "cannot be rendered"),
        ("{{ 1 / 0 }}", "", "cannot be rendered"),
        ("{{ ''.__class__.__mro__ }}", "", "cannot be rendered"),
        ("{{ 'x' * 3000000 }}", "", "into 3,000,0"),
    ],
)
def test_what_cannot_be_rendered_is_refused_in_a_sentence(template: str | None, effort: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        chat.chat_ids(tokenizer(template), "Hi", effort)


def test_a_template_that_loops_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "RENDER_LIMIT_S", 0.2)
    loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}"
    with pytest.raises(InputError, match="not rendered within"):
        chat.chat_ids(tokenizer(loops + "{% endfor %}{% endfor %}"), "Hi")
    assert rendered(CHATML).endswith("assistant\n")


def test_the_limit_is_lifted_again() -> None:
    import signal

    before = signal.getsignal(signal.SIGALRM)
    with chat.time_limit(60):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0 and signal.getsignal(signal.SIGALRM) is before


def test_a_prompt_of_the_worker_goes_through_the_template() -> None:
    """The pocket model has no template, and says so; with one, the note tells how many tokens the prompt became."""
    from types import SimpleNamespace

    import torch

    from backend.messages import Generate
    from backend.worker.prompt.prompt import read_prompt
    from tests.support.tiny_models import tiny
    from tests.support.worker import plan_of

    job = Generate(plan_of(), "Hi", 0, 8, 2, 0.0, 0, False, False, chat=True)
    model = tiny("llama")
    wide = SimpleNamespace(
        config=model.config, device=torch.device("cpu"), get_input_embeddings=lambda: torch.nn.Embedding(300, 1)
    )
    bench = SimpleNamespace(tokenizer=tokenizer(EFFORT), model=wide, remark="", pad=0)
    prompt = read_prompt(bench, job)  # type: ignore[arg-type]
    assert prompt.ids.shape == (2, len("Reasoning: medium\nHi"))
    assert prompt.notes == [f"as a chat of one message: {prompt.tokens} tokens with the model's template"]
    bench.tokenizer = tokenizer(None)
    with pytest.raises(InputError, match="no chat template"):
        read_prompt(bench, job)  # type: ignore[arg-type]


def test_a_template_that_loops_is_stopped_in_another_thread_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker may serve in a thread, which receives no signals."""
    from concurrent.futures import ThreadPoolExecutor

    monkeypatch.setattr(chat, "RENDER_LIMIT_S", 0.2)
    loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}"
    with ThreadPoolExecutor(1) as threads:
        with pytest.raises(InputError, match="not rendered within"):
            threads.submit(chat.chat_ids, tokenizer(loops + "{% endfor %}{% endfor %}"), "Hi").result(30)
        assert threads.submit(rendered, CHATML).result(30).endswith("assistant\n")


def test_a_limit_that_was_kept_raises_nothing_later() -> None:
    import time
    from concurrent.futures import ThreadPoolExecutor

    def work() -> int:
        for _ in range(20):
            with chat.time_limit(0.05):
                pass
        time.sleep(0.1)
        return sum(range(1000))

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(work).result(30) == 499_500
