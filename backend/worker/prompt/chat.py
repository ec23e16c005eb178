"""Renders a prompt with the model's chat template. Templates are untrusted programs, so they run under a time limit."""

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backend.arms.reasoning import refused
from backend.config import EFFORTS
from backend.errors import InputError
from backend.models.files.folder import template_variables
from backend.worker.load.unread import Unread, named, reading, token_ids

RENDER_LIMIT_S = 10.0
"""Templates render in milliseconds. jinja's sandbox protects the machine but does not stop loops: nested ones ran for
over 25 s. Calls of native code cannot be interrupted: a while later the engine ends the worker, if it is a process
(`TEXT_LIMIT_S`)."""

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
            f"The model's {template_of(tokenizer)} leaves out the system message. Put it at the beginning of the "
            "prompt."
        )
    for name, value in _opposite(reasoning).items():
        if _rendered(tokenizer, text, system, {name: value}) == rendered:
            raise InputError(
                f"The model's {template_of(tokenizer)} mentions {name} and does nothing with it. Leave the reasoning "
                "effort empty."
            )
    return token_ids(tokenizer, rendered, add_special_tokens=False)


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
    template = f"The model's {template_of(tokenizer)}"
    try:
        with rendering(tokenizer):
            rendered: str = tokenizer.apply_chat_template(
                messages(text, system), tokenize=False, add_generation_prompt=True, **reasoning
            )
    except TimeoutError:
        raise InputError(
            f"{template} was not rendered within {RENDER_LIMIT_S:.0f} s and was stopped. Switch chat off, or use "
            "another model."
        ) from None
    except (Unread, OSError, MemoryError) as failed:
        error = failed.__cause__ or failed
        if system and _renders(tokenizer, text, reasoning):
            raise InputError(
                f"{template} takes no system message ({error}). Leave it empty, or put it at the beginning of the "
                "prompt."
            ) from error
        why = f"{type(error).__name__}: {error}".rstrip(".: ")[:400]
        raise InputError(f"{template} cannot be rendered ({why}). Switch chat off, or use another model.") from error
    if len(rendered) > len(text) + len(system) + MAX_ADDED:
        raise InputError(
            f"{template} turned {len(text):,} characters into {len(rendered):,}. Switch chat off, or use another model."
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
def rendering(tokenizer: Any) -> Iterator[None]:
    """Around everything that renders its chat template: what fails is the template's fault, and TimeoutError ends what
    takes too long."""
    with reading(template_of(tokenizer), "render"), time_limit(RENDER_LIMIT_S):
        yield


def template_of(tokenizer: Any) -> str:
    """The chat template with the name of its file, as in "the model's chat template"."""
    folder = Path(tokenizer.name_or_path)
    first = "chat_template.jinja"
    return named("chat template", folder, (first if (folder / first).is_file() else "tokenizer_config.json",))


@contextlib.contextmanager
def time_limit(limit_s: float) -> Iterator[None]:
    """TimeoutError in Python code of this thread that takes longer, between two instructions of the interpreter."""
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
