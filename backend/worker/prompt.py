"""The prompts of a run as token ids, checked before anything runs: one prompt, padded where that helps, or requests."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

from tokendyno.backend import counts
from tokendyno.backend.arms.reasoning import reasoning_keywords, refused
from tokendyno.backend.config import STOCK_SENTENCE
from tokendyno.backend.errors import InputError
from tokendyno.backend.messages import Generate
from tokendyno.backend.models.files.folder import takes_parts, template_variables
from tokendyno.backend.plan import ShapesKind
from tokendyno.backend.predict.lengths import rounded
from tokendyno.backend.traffic import TrafficRequest
from tokendyno.backend.traffic.requests import prompt_text
from tokendyno.backend.worker.load.check import Unreadable, named, reading, token_ids
from tokendyno.backend.worker.load.loader import LoadedModel


@dataclass(slots=True)
class Prompt:
    """What the model receives.

    ids, mask   shape (B, P); the mask is 0 where `ids` is padding (see `pad`)
    notes       remarks for the user
    """

    ids: torch.Tensor
    mask: torch.Tensor
    notes: list[str] = field(default_factory=list)

    @property
    def batch_size(self) -> int:
        return int(self.ids.shape[0])

    @property
    def tokens(self) -> int:
        """Length of a row, padding included."""
        return int(self.ids.shape[1])


def read_prompt(model: LoadedModel, job: Generate) -> Prompt:
    """Token ids on the model's device, and remarks. InputError if they do not fit."""
    notes = [model.remark] if model.remark else []
    text = job.prompt
    if job.prompt_tokens and not text.strip() and not job.prompt_ids:
        text = STOCK_SENTENCE
        notes.append(f"synthetic prompt: a stock sentence repeated to {job.prompt_tokens:,} tokens")
    if job.prompt_ids:
        ids = job.prompt_ids
    elif job.chat:
        ids = chat_ids(model.tokenizer, text, job.reasoning_effort, job.system)
    else:
        ids = token_ids(model.tokenizer, text)
    if not ids:
        raise InputError("The prompt has no tokens. Write some text to continue.")
    if job.chat:
        what = "a system message and a user's" if job.system.strip() else "one message"
        reasoning = f", reasoning {job.reasoning_effort}" if job.reasoning_effort else ""
        notes.append(f"as a chat of {what}{reasoning}: {len(ids):,} tokens with the model's template")
    most = 0 if job.prompt_tokens else job.most_prompt_tokens
    ids = repeated(ids, job.prompt_tokens)
    require_fit(model, ids, job.max_new_tokens, most, f"The prompt has {len(ids):,} tokens", bool(job.prompt_ids))
    rows = torch.tensor([ids] * job.batch_size, device=model.model.device)
    return Prompt(rows, torch.ones_like(rows), notes)


class TokenizedRequest(NamedTuple):
    """A request as the model receives it. `number`: its index in the traffic."""

    number: int
    arrival_s: float
    ids: list[int]
    max_new_tokens: int


def read_requests(model: LoadedModel, requests: list[TrafficRequest], most_prompt: int = 0) -> list[TokenizedRequest]:
    """All requests as they arrive. InputError names the first that does not fit (`most_prompt` 0: no limit)."""
    tokenized = []
    for number, request in enumerate(requests):
        text = request.prompt if request.prompt.strip() else prompt_text(request.seed, request.prompt_tokens)
        ids = repeated(request.token_ids or token_ids(model.tokenizer, text), request.prompt_tokens)
        if not ids:
            raise InputError(f"Request {number + 1} has no tokens. Give it some text.")
        subject = f"Request {number + 1} has {len(ids):,} prompt tokens"
        require_fit(model, ids, request.max_new_tokens, most_prompt, subject, bool(request.token_ids))
        tokenized.append(TokenizedRequest(number, request.arrival_s, ids, request.max_new_tokens))
    return tokenized


def repeated(ids: list[int], length: int) -> list[int]:
    """The ids, again and again up to this length; 0: as they are."""
    return (ids * (length // max(1, len(ids)) + 1))[:length] if length else ids


def require_fit(model: LoadedModel, ids: list[int], new_tokens: int, most: int, subject: str, user_ids: bool) -> None:
    """InputError if the model cannot take a prompt and this many new tokens, or if the prompt is over a limit.

    most      tokens that a prompt may have here; 0: no limit
    subject   the beginning of the sentence: whose prompt has how many tokens
    user_ids  whether the ids came from the user and not from the tokenizer
    """
    if most and len(ids) > most:
        raise InputError(f"{subject}, over the limit of {most:,} here. Shorten it.")
    positions, total = max_positions(model.model.config), len(ids) + new_tokens
    if positions and total > positions:
        if not new_tokens:  # an encoder
            raise InputError(f"{subject}, but the model has {positions:,} positions. Shorten it.")
        fewer = f" or ask for at most {positions - len(ids):,} new tokens" if len(ids) < positions else ""
        raise InputError(
            f"{subject}; with {new_tokens:,} new ones that is {total:,}, but the model has {positions:,} positions. "
            f"Shorten the prompt{fewer}."
        )
    table = model.model.get_input_embeddings()  # num_embeddings: of all rows, where each rank has some of them
    vocab = int(getattr(table, "num_embeddings", 0) or table.weight.shape[0])
    if min(ids) >= 0 and max(ids) < vocab:
        return
    if user_ids:
        raise InputError(f"{subject}, and ids must be from 0 to {vocab - 1:,}. Take them from this model's tokenizer.")
    raise InputError(
        f"The tokenizer produced id {max(ids)}, but the model has only {vocab} embeddings. The tokenizer in this "
        "folder belongs to another model: replace its files."
    )


def max_positions(config: Any) -> int:
    """Positions that the model supports; 0 if its config does not say."""
    text = config.get_text_config(decoder=True)
    return int(getattr(text, "max_position_embeddings", None) or getattr(text, "n_positions", None) or 0)


# --- padding: with few lengths of prompts little is compiled anew ----------------------------------


def pad(
    prompt: Prompt, shapes: ShapesKind, pad_id: int = 0, side: Literal["left", "right"] = "left", most: int = 0
) -> Prompt:
    """The prompt padded to its rounded length, with padding masked; the same prompt where none is needed.

    A decoder generates on the right, so it is padded on the left; padding takes no positions. An encoder counts
    positions from the left, masked or not, so it is padded on the right, up to `most` positions.
    """
    length = rounded(shapes, prompt.tokens)
    padding = (min(length, most) if most else length) - prompt.tokens
    if padding <= 0:
        return prompt
    sides = (padding, 0) if side == "left" else (0, padding)
    ids = torch.nn.functional.pad(prompt.ids, sides, value=pad_id)
    mask = torch.nn.functional.pad(prompt.mask, sides, value=0)
    padded = prompt.tokens + padding
    note = f"{prompt.tokens:,} prompt tokens padded to {padded:,}: {padding / padded:.0%} of the prompt is padding"
    return Prompt(ids, mask, [*prompt.notes, note])


def padding_counts(prompt: Prompt, positions: int) -> counts.Prompt:
    """How many of a row's positions are padding. `positions`: what the model has seen, by cache or output."""
    return counts.Prompt(positions=positions, padding=positions - int((prompt.mask[0] != 0).sum()))


# --- chats: rendered by the model's template, an untrusted program ---------------------------------

# jinja's sandbox protects the machine but stops no loop: the engine ends a worker that renders for too long
# (`TEXT_LIMIT_S`), or takes too much memory for a stranger.

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
    template = _template(tokenizer)
    reasoning, parts = _reasoning(template, effort), takes_parts(template)
    words = {"system": system, "user": text} if system.strip() else {"user": text}
    _require_words(tokenizer, [*words], reasoning, parts)
    conversation = _messages(words, parts)
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
            "This model's tokenizer has no chat template: it was not trained for chat. Use a plain prompt, or an "
            "instruct model, such as SmolLM2-135M-Instruct."
        )
    with reading(template_of(tokenizer)):
        template = tokenizer.get_chat_template()
        if not isinstance(template, str):
            raise TypeError(f"it is of type {type(template).__name__}, not a text")
        return template


def _require_words(tokenizer: Any, roles: list[str], reasoning: dict[str, str | bool], parts: bool) -> None:
    """InputError where the template leaves out the words of a role, which rendering `PROBES` tells, or refuses them."""
    template = f"The model's {template_of(tokenizer)}"
    try:
        rendered = _rendered(tokenizer, _messages({role: PROBES[role] for role in roles}, parts), reasoning)
    except Unreadable as error:
        if len(roles) == 1:
            raise
        _require_words(tokenizer, roles[1:], reasoning, parts)  # raises if it is not the system message that it refuses
        raise InputError(
            f"{template} takes no system message ({error.__cause__}). Leave it empty, or put it at the beginning of "
            "the prompt."
        ) from error
    lost = [role for role in roles if PROBES[role] not in rendered]
    what, advice = "prompt", "Use a plain prompt, or another model"
    if lost == ["system"]:
        what, advice = "system message", "Put it at the beginning of the prompt"
    if lost:
        raise InputError(f"{template} leaves out the {what}, or words of it. {advice}.")


def _messages(words: dict[str, str], parts: bool) -> list[Message]:
    """Words by role as texts, or as lists of parts (huggingface.co/docs/transformers/chat_templating_multimodal)."""
    contents = [[{"type": "text", "text": text}] if parts else text for text in words.values()]
    return [{"role": role, "content": content} for role, content in zip(words, contents, strict=True)]


def _reasoning(template: str, effort: str) -> dict[str, str | bool]:
    """The template's variables for a reasoning effort, with their value; empty for none. InputError if it has none."""
    variables = template_variables(template)
    if refusal := refused(effort, variables):
        raise InputError(refusal)
    return reasoning_keywords(effort, variables)


def _rendered(tokenizer: Any, messages: list[Message], reasoning: dict[str, str | bool]) -> str:
    with reading(template_of(tokenizer), "render"):
        return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **reasoning))


def template_of(tokenizer: Any) -> str:
    """The words for the chat template in a sentence that begins with "The model's", with the name of its file."""
    folder = Path(tokenizer.name_or_path)
    file = "chat_template.jinja"
    return named("chat template", folder, (file if (folder / file).is_file() else "tokenizer_config.json",))
