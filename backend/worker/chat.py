"""Puts a prompt into the chat template of a model, which is a stranger's program: it runs under a time limit."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

from jinja2 import TemplateError

from backend.errors import InputError

RENDER_LIMIT_S = 10.0
"""Templates render in milliseconds. The sandbox keeps them from the machine, not from looping: nested loops ran over
25 s. What no signal can interrupt is ended by the deadline of the phase."""

MOST_ADDED = 1 << 20  # characters: the longest templates, with tools and dates, add a few thousand


def chat_ids(tokenizer: Any, text: str, effort: str = "") -> list[int]:
    """Ids of `text` as the one message of a user, up to where the answer begins. `effort`: low, medium or high, for
    templates that know it. InputError if there is no template, or it cannot take this."""
    if not tokenizer.chat_template:
        raise InputError(
            "This model's tokenizer has no chat template: it was not made for chats. Switch chat off, or take an "
            "instruct model, such as SmolLM2-135M-Instruct."
        )
    if effort and "reasoning_effort" not in tokenizer.get_chat_template():
        raise InputError(
            "The chat template of this model knows no reasoning effort (that of gpt-oss does). Leave the effort out."
        )
    more = {"reasoning_effort": effort} if effort else {}
    message = {"role": "user", "content": text}
    try:
        with time_limit(RENDER_LIMIT_S):
            rendered = tokenizer.apply_chat_template([message], tokenize=False, add_generation_prompt=True, **more)
    except TimeoutError:
        raise InputError(
            f"The chat template of this model was not rendered within {RENDER_LIMIT_S:.0f} s, and was stopped. Switch "
            "chat off, or take another model."
        ) from None
    except (TemplateError, ValueError, TypeError, ArithmeticError, LookupError) as error:
        raise InputError(
            f"The chat template of this model cannot be rendered ({type(error).__name__}: {error}). Switch chat off."
        ) from error
    if len(rendered) > len(text) + MOST_ADDED:
        raise InputError(
            f"The chat template of this model made {len(rendered):,} characters of {len(text):,}. Switch chat off."
        )
    ids: list[int] = tokenizer(rendered, add_special_tokens=False)["input_ids"]
    return ids


@contextlib.contextmanager
def time_limit(limit_s: float) -> Iterator[None]:
    """TimeoutError in Python code that takes longer. Only the main thread, where a worker serves, can be limited."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
