"""Renders a prompt with the model's chat template. Templates are untrusted programs, so they run under a time limit."""

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokendyno.backend.arms.reasoning import reasoning_keywords, refused
from tokendyno.backend.errors import InputError
from tokendyno.backend.models.files.folder import template_variables
from tokendyno.backend.worker.load.check import Unreadable, named, reading, token_ids

RENDER_LIMIT_S = 10.0
"""Templates render in milliseconds. jinja's sandbox protects the machine but does not stop loops: nested ones ran for
over 25 s. Calls of native code cannot be interrupted: a while later the engine ends the worker, if it is a process
(`TEXT_LIMIT_S`)."""

MAX_ADDED = 1 << 20  # characters: the longest templates, with tools and dates, add a few thousand

Message = dict[str, Any]

OPPOSITES: dict[str | bool, str | bool] = {True: False, False: True, "low": "high", "medium": "high", "high": "low"}
"""Another value of a reasoning variable, by value: a template that uses the variable renders another text."""

PROBES = {"system": "words-of-the-system", "user": "words-of-the-user"}
"""Words by role that no template contains: where they are rendered, the user's words would be."""


def chat_ids(tokenizer: Any, text: str, effort: str = "", system: str = "") -> list[int]:
    """Token ids of a conversation with `text` as the only user message, up to where the answer begins.

    effort  one of `REASONING`; system: the message before the user's
    InputError if there is no template, it cannot be rendered, or it ignores one of these.
    """
    reasoning = _reasoning(_template(tokenizer), effort)
    turns = [("system", system), ("user", text)] if system.strip() else [("user", text)]
    conversation = _conversation(tokenizer, turns, reasoning)
    rendered = _rendered(tokenizer, conversation, reasoning)
    opposite = {name: OPPOSITES[value] for name, value in reasoning.items()}
    if reasoning and _rendered(tokenizer, conversation, opposite) == rendered:
        names = " and ".join(reasoning)
        raise InputError(
            f"The model's {template_of(tokenizer)} mentions {names} and does nothing with it. Leave the reasoning "
            "effort empty."
        )
    return token_ids(tokenizer, rendered, add_special_tokens=False)


def conversation_ids(tokenizer: Any, messages: list[Message], effort: str = "") -> list[int]:
    """Token ids of a conversation of several turns, whose messages are rendered as they are."""
    rendered = _rendered(tokenizer, messages, _reasoning(_template(tokenizer), effort))
    return token_ids(tokenizer, rendered, add_special_tokens=False)


def _template(tokenizer: Any) -> str:
    if not tokenizer.chat_template:
        raise InputError(
            "This model's tokenizer has no chat template: it was not trained for chat. Switch chat off, or use an "
            "instruct model, such as SmolLM2-135M-Instruct."
        )
    with reading(template_of(tokenizer)):
        template = tokenizer.get_chat_template()
        if not isinstance(template, str):
            raise TypeError(f"it is of type {type(template).__name__}, not a text")
        return template


def _conversation(tokenizer: Any, turns: list[tuple[str, str]], reasoning: dict[str, str | bool]) -> list[Message]:
    """The messages in the form that the template takes: texts, else lists of parts as for models with images
    (huggingface.co/docs/transformers/chat_templating_multimodal). Rendering `PROBES` tells which. InputError where it
    takes neither. `turns`: (role, words) of each message."""
    refusal: InputError | None = None
    for parts in ((), ("system", "user"), ("user",))[: 1 + len(turns)]:
        probes = [_message(role, PROBES[role], role in parts) for role, _ in turns]
        try:
            rendered = _rendered(tokenizer, probes, reasoning)
        except NotRendered as error:
            refusal = refusal or error
            continue
        lost = [role for role, _ in turns if PROBES[role] not in rendered]
        lists = [probe["content"] for probe in probes if isinstance(probe["content"], list)]
        printed = any(repr(content) in rendered for content in lists)  # as Python shows a list
        if not lost and not printed:
            return [_message(role, words, role in parts) for role, words in turns]
        missing, advice = "prompt", "Switch chat off, or use another model"
        if lost == ["system"]:
            missing, advice = "system message", "Put it at the beginning of the prompt"
        sentence = f"The model's {template_of(tokenizer)} leaves out the {missing}, or words of it. {advice}."
        refusal = refusal or InputError(sentence)
    assert refusal is not None
    if len(turns) > 1 and isinstance(refusal, NotRendered):
        _conversation(tokenizer, turns[1:], reasoning)  # InputError where the system message is not what it refuses
        raise InputError(
            f"The model's {template_of(tokenizer)} takes no system message ({refusal.__cause__}). Leave it empty, or "
            "put it at the beginning of the prompt."
        ) from refusal
    raise refusal


def _message(role: str, words: str, parts: bool) -> Message:
    return {"role": role, "content": [{"type": "text", "text": words}] if parts else words}


def _reasoning(template: str, effort: str) -> dict[str, str | bool]:
    """The template's variables for a reasoning effort, with their value; empty for none. InputError if it has none."""
    variables = template_variables(template)
    if refusal := refused(effort, variables):
        raise InputError(refusal)
    return reasoning_keywords(effort, variables)


class NotRendered(InputError):
    """A template raised something, which is the cause."""


def _rendered(tokenizer: Any, messages: list[Message], reasoning: dict[str, str | bool]) -> str:
    template = f"The model's {template_of(tokenizer)}"
    try:
        with rendering(tokenizer):
            rendered: str = tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **reasoning
            )
    except TimeoutError:
        raise InputError(
            f"{template} was not rendered within {RENDER_LIMIT_S:.0f} s and was stopped. Switch chat off, or use "
            "another model."
        ) from None
    except (Unreadable, OSError, MemoryError) as failed:
        error = failed.__cause__ or failed
        why = f"{type(error).__name__}: {error}".rstrip(".: ")[:400]
        raise NotRendered(f"{template} cannot be rendered ({why}). Switch chat off, or use another model.") from error
    size = len(str(messages))
    if len(rendered) > size + MAX_ADDED:
        raise InputError(
            f"{template} turned {size:,} characters into {len(rendered):,}. Switch chat off, or use another model."
        )
    return rendered


@contextlib.contextmanager
def rendering(tokenizer: Any) -> Iterator[None]:
    """Around all that renders a chat template: errors name the template, TimeoutError ends what takes too long."""
    with reading(template_of(tokenizer), "render"), time_limit(RENDER_LIMIT_S):
        yield


def template_of(tokenizer: Any) -> str:
    """The words for the chat template in a sentence that begins with "The model's", with the name of its file."""
    folder = Path(tokenizer.name_or_path)
    file = "chat_template.jinja"
    return named("chat template", folder, (file if (folder / file).is_file() else "tokenizer_config.json",))


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
