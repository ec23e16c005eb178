"""A greedy text is checked against the model that should have chosen it."""

import pytest
import torch

from backend.worker.prove import greedy
from tests.support.tiny_models import tiny

PROMPT, NEW = [5, 6, 7], 8


def text() -> list[int]:
    ids = torch.tensor([PROMPT])
    with torch.inference_mode():
        logits = torch.tensor([])
        for _ in range(NEW):
            logits = tiny("llama")(ids).logits[0, -1]
            ids = torch.cat([ids, logits.argmax().view(1, 1)], 1)
    return [int(one) for one in ids[0, len(PROMPT) :]]


@pytest.mark.parametrize("wrong", [0, 1, 3])
def test_tokens_that_the_model_would_not_choose_are_counted(wrong: int) -> None:
    """Of the last ones: what follows a wrong token is another text."""
    generated = text()
    with torch.inference_mode():
        for at in range(NEW - wrong, NEW):
            logits = tiny("llama")(torch.tensor([PROMPT + generated[:at]])).logits[0, -1]
            generated[at] = int(logits.argmin())
    found = greedy.checked(tiny("llama"), PROMPT, generated)
    assert (found.checked_tokens, found.strange_tokens) == (NEW, wrong)


def test_the_second_likeliest_may_have_been_chosen() -> None:
    generated = text()
    with torch.inference_mode():
        logits = tiny("llama")(torch.tensor([PROMPT + generated[:-1]])).logits[0, -1]
    generated[-1] = int(logits.topk(2).indices[1])
    assert greedy.checked(tiny("llama"), PROMPT, generated).strange_tokens == 0


def test_only_the_last_tokens_are_checked_and_no_text_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    generated = text()
    monkeypatch.setattr(greedy, "MOST_CHECKED", 5)
    assert greedy.checked(tiny("llama"), PROMPT, generated).checked_tokens == 5
    monkeypatch.setattr(greedy, "MOST_TOKENS", len(PROMPT) + NEW - 1)
    for prompt, new in ((PROMPT, generated), (PROMPT, [])):
        assert greedy.checked(tiny("llama"), prompt, new).checked_tokens is None
