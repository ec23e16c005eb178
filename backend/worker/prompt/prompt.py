"""Tokenizes the prompt of a run."""

from dataclasses import dataclass, field
from typing import Any

import torch

from tokendyno.backend.config import STOCK_SENTENCE
from tokendyno.backend.errors import InputError
from tokendyno.backend.messages import Generate
from tokendyno.backend.worker.load.loader import LoadedModel
from tokendyno.backend.worker.load.unread import token_ids
from tokendyno.backend.worker.prompt.chat import chat_ids
from tokendyno.backend.worker.vocabulary import known_ids


@dataclass(slots=True)
class Prompt:
    """What the model receives.

    ids, mask   shape (B, P); the mask is 0 where `ids` is padding (see `padding.pad`)
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
    if job.most_prompt_tokens and len(ids) > job.most_prompt_tokens and not job.prompt_tokens:
        raise InputError(
            f"The prompt has {len(ids):,} tokens, over the limit of {job.most_prompt_tokens:,} here. Shorten it."
        )
    if job.chat:
        what = "a system message and a user's" if job.system.strip() else "one message"
        reasoning = f", reasoning {job.reasoning_effort}" if job.reasoning_effort else ""
        notes.append(f"as a chat of {what}{reasoning}: {len(ids):,} tokens with the model's template")
    if job.prompt_tokens:
        ids = (ids * (job.prompt_tokens // len(ids) + 1))[: job.prompt_tokens]
    most = max_positions(model.model.config)
    total = len(ids) + job.max_new_tokens
    if most and total > most:
        if not job.max_new_tokens:  # an encoder
            raise InputError(f"The prompt has {len(ids):,} tokens, but the model has {most:,} positions. Shorten it.")
        fewer = f" or ask for at most {most - len(ids):,} new tokens" if len(ids) < most else ""
        raise InputError(
            f"The prompt has {len(ids):,} tokens; with {job.max_new_tokens:,} new ones that is {total:,}, but the "
            f"model has {most:,} positions. Shorten the prompt{fewer}."
        )
    vocab = known_ids(model.model)
    if job.prompt_ids and not (min(ids) >= 0 and max(ids) < vocab):
        raise InputError(f"The prompt's ids must be from 0 to {vocab - 1:,}. Take them from this model's tokenizer.")
    if max(ids) >= vocab:
        raise InputError(
            f"The tokenizer produced id {max(ids)}, but the model has only {vocab} embeddings. The tokenizer in this "
            "folder belongs to another model: replace its files."
        )
    rows = torch.tensor([ids] * job.batch_size, device=model.model.device)
    return Prompt(rows, torch.ones_like(rows), notes)


def max_positions(config: Any) -> int:
    """Positions that the model supports; 0 if its config does not say."""
    text = config.get_text_config(decoder=True)
    return int(getattr(text, "max_position_embeddings", None) or getattr(text, "n_positions", None) or 0)
