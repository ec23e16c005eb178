"""Renders a prompt with the model's chat template. Templates are untrusted programs, so they run under a time limit."""

import contextlib
import ctypes
import signal
import threading
from collections.abc import Iterator
from typing import Any

from jinja2 import TemplateError

from backend.errors import InputError

RENDER_LIMIT_S = 10.0
"""Templates render in milliseconds. jinja's sandbox protects the machine but does not stop loops: nested ones ran for
over 25 s. Code that cannot be interrupted is ended by the deadline of the phase."""

MAX_ADDED = 1 << 20  # characters: the longest templates, with tools and dates, add a few thousand


def chat_ids(tokenizer: Any, text: str, effort: str = "") -> list[int]:
    """Token ids of a conversation with `text` as the only user message, up to where the answer begins. `effort`: low,
    medium or high, for templates that support it. InputError if there is no template, or it cannot be rendered."""
    if not tokenizer.chat_template:
        raise InputError(
            "This model's tokenizer has no chat template: it was not trained for chat. Switch chat off, or use an "
            "instruct model, such as SmolLM2-135M-Instruct."
        )
    if effort and "reasoning_effort" not in tokenizer.get_chat_template():
        raise InputError(
            "The chat template of this model has no reasoning effort (gpt-oss has one). Leave the effort empty."
        )
    more = {"reasoning_effort": effort} if effort else {}
    message = {"role": "user", "content": text}
    try:
        with time_limit(RENDER_LIMIT_S):
            rendered = tokenizer.apply_chat_template([message], tokenize=False, add_generation_prompt=True, **more)
    except TimeoutError:
        raise InputError(
            f"The chat template of this model was not rendered within {RENDER_LIMIT_S:.0f} s and was stopped. Switch "
            "chat off, or use another model."
        ) from None
    except (TemplateError, ValueError, TypeError, ArithmeticError, LookupError) as error:
        raise InputError(
            f"The chat template of this model cannot be rendered ({type(error).__name__}: {error}). Switch chat off."
        ) from error
    if len(rendered) > len(text) + MAX_ADDED:
        raise InputError(
            f"The chat template of this model turned {len(text):,} characters into {len(rendered):,}. Switch chat off."
        )
    ids: list[int] = tokenizer(rendered, add_special_tokens=False)["input_ids"]
    return ids


@contextlib.contextmanager
def time_limit(limit_s: float) -> Iterator[None]:
    """TimeoutError in Python code that takes longer, in any thread."""
    main = threading.current_thread() is threading.main_thread()
    with _main_thread_limit(limit_s) if main else _other_thread_limit(limit_s):
        yield


@contextlib.contextmanager
def _main_thread_limit(limit_s: float) -> Iterator[None]:
    """By a signal, which only the main thread can receive."""

    def stop(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _other_thread_limit(limit_s: float) -> Iterator[None]:
    """By an exception that the interpreter raises in this thread between two instructions."""
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    thread_id, lock, done = ctypes.c_ulong(threading.get_ident()), threading.Lock(), False

    def stop() -> None:
        with lock:
            if not done:
                raise_in(thread_id, ctypes.py_object(TimeoutError))

    timer = threading.Timer(limit_s, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with lock:
            done = True
        raise_in(thread_id, None)  # one that was raised too late to be delivered
