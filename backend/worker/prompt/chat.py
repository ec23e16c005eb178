"""Renders a prompt with the model's chat template. Templates are untrusted programs, so they run under a time limit."""

import contextlib
import ctypes
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokendyno.backend.arms.reasoning import reasoning_keywords, refused
from tokendyno.backend.errors import InputError
from tokendyno.backend.models.files.folder import template_variables
from tokendyno.backend.worker.load.unread import Unread, named, reading, token_ids

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
    system = system if system.strip() else ""
    reasoning = _reasoning(_template(tokenizer), effort)
    taken, rendered = _taken(tokenizer, text, system, reasoning)
    if reasoning and _rendered(tokenizer, taken, _opposite(reasoning)) == rendered:
        names = " and ".join(reasoning)
        raise InputError(
            f"The model's {template_of(tokenizer)} mentions {names} and does nothing with it. Leave the reasoning "
            "effort empty."
        )
    return token_ids(tokenizer, rendered, add_special_tokens=False)


def conversation_ids(tokenizer: Any, said: list["Message"], effort: str = "") -> list[int]:
    """The same of a conversation of several turns, which is rendered as it is."""
    rendered = _rendered(tokenizer, said, _reasoning(_template(tokenizer), effort))
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


Message = dict[str, Any]


def messages(tokenizer: Any, text: str, system: str, reasoning: dict[str, str | bool]) -> list[Message]:
    """The conversation in the form that the model's template takes. InputError as from `chat_ids`."""
    return _taken(tokenizer, text, system if system.strip() else "", reasoning)[0]


def _taken(tokenizer: Any, text: str, system: str, reasoning: dict[str, str | bool]) -> tuple[list[Message], str]:
    """The same, and what the template renders of it: of plain texts, else of lists of parts, which templates of models
    that see take (huggingface.co/docs/transformers/chat_templating_multimodal). InputError where a message's words
    occur in neither."""
    refusal: InputError | None = None
    for parts in ((), ("system", "user"), ("user",))[: 3 if system else 2]:
        said = [(role, words) for role, words in (("system", system), ("user", text)) if words or role == "user"]
        asked = [_message(role, words, role in parts) for role, words in said]
        try:
            rendered = _rendered(tokenizer, asked, reasoning)
        except NotRendered as error:
            refusal = refusal or error
            continue
        lost = [role for role, words in said if not _occurs(words, rendered)]
        printed = bool(parts) and any(repr(message["content"]) in rendered for message in asked)
        other = _message("user", ("y" if text[:1] == "x" else "x") * (len(text) or 1), "user" in parts)
        if not lost and not printed and _differs(tokenizer, [*asked[:-1], other], reasoning, rendered):
            return asked, rendered
        refusal = refusal or _left_out(tokenizer, "prompt" if lost != ["system"] else "system message")
    assert refusal is not None
    if system and isinstance(refusal, NotRendered) and _renders(tokenizer, text, reasoning):
        raise InputError(
            f"The model's {template_of(tokenizer)} takes no system message ({refusal.__cause__}). Leave it empty, or "
            "put it at the beginning of the prompt."
        ) from refusal
    raise refusal


def _message(role: str, words: str, parts: bool) -> Message:
    return {"role": role, "content": [{"type": "text", "text": words}] if parts else words}


def _occurs(words: str, rendered: str) -> bool:
    """Whether all words of a text stand in another one, in their order: templates trim texts and escape signs."""
    at = 0
    for word in re.finditer(r"\w+", words):
        at = rendered.find(word[0], at) + len(word[0])
        if at < len(word[0]):
            return False
    return True


def _differs(tokenizer: Any, asked: list[Message], reasoning: dict[str, str | bool], rendered: str) -> bool:
    """Whether another conversation is rendered otherwise: a short prompt's words may stand in the template."""
    try:
        return _rendered(tokenizer, asked, reasoning) != rendered
    except NotRendered:
        return True


def _left_out(tokenizer: Any, what: str) -> InputError:
    do = "Put it at the beginning of the prompt" if what != "prompt" else "Switch chat off, or use another model"
    return InputError(f"The model's {template_of(tokenizer)} leaves out the {what}, or words of it. {do}.")


def _reasoning(template: str, effort: str) -> dict[str, str | bool]:
    """The template's variables for a reasoning effort, with their value; empty for none. InputError if it has none."""
    variables = template_variables(template)
    if refusal := refused(effort, variables):
        raise InputError(refusal)
    return reasoning_keywords(effort, variables)


def _opposite(reasoning: dict[str, str | bool]) -> dict[str, str | bool]:
    """Another value of the same variables: a template that uses one renders another text."""
    other: dict[str | bool, str | bool] = {True: False, False: True, "low": "high", "medium": "high", "high": "low"}
    return {name: other[value] for name, value in reasoning.items()}


class NotRendered(InputError):
    """A template raised something, which is the cause."""


def _rendered(tokenizer: Any, asked: list[Message], reasoning: dict[str, str | bool]) -> str:
    template = f"The model's {template_of(tokenizer)}"
    try:
        with rendering(tokenizer):
            rendered: str = tokenizer.apply_chat_template(
                asked, tokenize=False, add_generation_prompt=True, **reasoning
            )
    except TimeoutError:
        raise InputError(
            f"{template} was not rendered within {RENDER_LIMIT_S:.0f} s and was stopped. Switch chat off, or use "
            "another model."
        ) from None
    except (Unread, OSError, MemoryError) as failed:
        error = failed.__cause__ or failed
        why = f"{type(error).__name__}: {error}".rstrip(".: ")[:400]
        raise NotRendered(f"{template} cannot be rendered ({why}). Switch chat off, or use another model.") from error
    given = len(str(asked))
    if len(rendered) > given + MAX_ADDED:
        raise InputError(
            f"{template} turned {given:,} characters into {len(rendered):,}. Switch chat off, or use another model."
        )
    return rendered


def _renders(tokenizer: Any, text: str, reasoning: dict[str, str | bool]) -> bool:
    """Whether the template takes the same conversation without a system message."""
    try:
        _taken(tokenizer, text, "", reasoning)
    except InputError:
        return False
    return True


@contextlib.contextmanager
def rendering(tokenizer: Any) -> Iterator[None]:
    """Around all that renders a chat template: failures are the template's, TimeoutError ends what takes too long."""
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
