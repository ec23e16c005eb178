"""Renders a prompt with the model's chat template. Templates are untrusted programs, so they run under a time limit."""

import contextlib
import ctypes
import signal
import threading
from collections.abc import Iterator
from typing import Any

from jinja2 import TemplateError

from backend.arms.reasoning import refused
from backend.config import EFFORTS
from backend.errors import InputError
from backend.models.files.folder import template_variables

RENDER_LIMIT_S = 10.0
"""Templates render in milliseconds. jinja's sandbox protects the machine but does not stop loops: nested ones ran for
over 25 s. Code that cannot be interrupted is ended by the deadline of the phase."""

MAX_ADDED = 1 << 20  # characters: the longest templates, with tools and dates, add a few thousand


def chat_ids(tokenizer: Any, text: str, effort: str = "", system: str = "") -> list[int]:
    """Token ids of a conversation with `text` as the only user message, up to where the answer begins.

    effort  one of `REASONING`; system: the message before the user's
    InputError if there is no template, it cannot be rendered, or it ignores one of these: nothing is asked in vain.
    """
    if not tokenizer.chat_template:
        raise InputError(
            "This model's tokenizer has no chat template: it was not trained for chat. Switch chat off, or use an "
            "instruct model, such as SmolLM2-135M-Instruct."
        )
    system = system if system.strip() else ""
    reasoning = _reasoning(tokenizer.get_chat_template(), effort)
    rendered = _rendered(tokenizer, text, system, reasoning)
    if system and system.strip() not in rendered:
        raise InputError(
            "The chat template of this model leaves out the system message. Put it at the beginning of the prompt."
        )
    for name, value in _opposite(reasoning).items():
        if _rendered(tokenizer, text, system, {name: value}) == rendered:
            raise InputError(
                f"The chat template of this model mentions {name} and does nothing with it. Leave the reasoning effort "
                "empty."
            )
    ids: list[int] = tokenizer(rendered, add_special_tokens=False)["input_ids"]
    return ids


def messages(text: str, system: str = "") -> list[dict[str, str]]:
    """The conversation, as `apply_chat_template` takes it."""
    first = [{"role": "system", "content": system}] if system.strip() else []
    return [*first, {"role": "user", "content": text}]


def _reasoning(template: str, effort: str) -> dict[str, str | bool]:
    """The template's variable for a reasoning effort, with its value; empty for none. InputError if it has none."""
    if refusal := refused(effort, template_variables(template)):
        raise InputError(refusal)
    if not effort:
        return {}
    return {"reasoning_effort": effort} if effort in EFFORTS else {"enable_thinking": effort == "on"}


def _opposite(reasoning: dict[str, str | bool]) -> dict[str, str | bool]:
    """Another value of the same variable: a template that uses it renders another text."""
    other: dict[str | bool, str | bool] = {True: False, False: True, "low": "high", "medium": "high", "high": "low"}
    return {name: other[value] for name, value in reasoning.items()}


def _rendered(tokenizer: Any, text: str, system: str, reasoning: dict[str, str | bool]) -> str:
    try:
        with time_limit(RENDER_LIMIT_S):
            rendered: str = tokenizer.apply_chat_template(
                messages(text, system), tokenize=False, add_generation_prompt=True, **reasoning
            )
    except TimeoutError:
        raise InputError(
            f"The chat template of this model was not rendered within {RENDER_LIMIT_S:.0f} s and was stopped. Switch "
            "chat off, or use another model."
        ) from None
    except (TemplateError, ValueError, TypeError, ArithmeticError, LookupError) as error:
        if system and _renders(tokenizer, text, reasoning):
            raise InputError(
                f"The chat template of this model takes no system message ({error}). Leave it empty, or put it at the "
                "beginning of the prompt."
            ) from error
        raise InputError(
            f"The chat template of this model cannot be rendered ({type(error).__name__}: {error}). Switch chat off."
        ) from error
    if len(rendered) > len(text) + len(system) + MAX_ADDED:
        raise InputError(
            f"The chat template of this model turned {len(text):,} characters into {len(rendered):,}. Switch chat off."
        )
    return rendered


def _renders(tokenizer: Any, text: str, reasoning: dict[str, str | bool]) -> bool:
    """Whether the template takes the same conversation without a system message."""
    try:
        _rendered(tokenizer, text, "", reasoning)
    except InputError:
        return False
    return True


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
