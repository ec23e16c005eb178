"""The prompts of a run as token ids, checked before anything runs: one prompt, padded where that helps, or requests."""

import contextlib
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import torch
from torch.fx.experimental import _config as symbolic_shapes

from tokendyno.backend import counts
from tokendyno.backend.config import STOCK_SENTENCE
from tokendyno.backend.errors import InputError
from tokendyno.backend.messages import Generate
from tokendyno.backend.plan import ShapesKind
from tokendyno.backend.predict.lengths import rounded
from tokendyno.backend.traffic import TrafficRequest
from tokendyno.backend.traffic.requests import prompt_text
from tokendyno.backend.worker.load.check import token_ids
from tokendyno.backend.worker.load.loader import LoadedModel
from tokendyno.backend.worker.prompt.chat import chat_ids
from tokendyno.backend.worker.vocabulary import known_ids


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
    vocab = known_ids(model.model)
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


def symbolic_sizes(shapes: ShapesKind) -> Any:
    """Context of anything that may compile: with `dynamic`, equal sizes stay two symbols."""
    if shapes == "dynamic":
        return symbolic_shapes.patch(use_duck_shape=False)
    return contextlib.nullcontext()


def padding_counts(prompt: Prompt, positions: int) -> counts.Prompt:
    """How many of a row's positions are padding. `positions`: what the model has seen, by cache or output."""
    return counts.Prompt(positions=positions, padding=positions - int((prompt.mask[0] != 0).sum()))
