"""Tokenizes the prompts of many requests, and refuses what the model cannot take before anything runs."""

from typing import NamedTuple

from tokendyno.backend.errors import InputError
from tokendyno.backend.traffic import TrafficRequest
from tokendyno.backend.traffic.requests import prompt_text
from tokendyno.backend.worker.load.loader import LoadedModel
from tokendyno.backend.worker.load.unread import token_ids
from tokendyno.backend.worker.prompt.prompt import max_positions
from tokendyno.backend.worker.vocabulary import known_ids


class Asked(NamedTuple):
    """A request as the model receives it. `number`: its index in the traffic."""

    number: int
    arrival_s: float
    ids: list[int]
    max_new_tokens: int


def read_requests(model: LoadedModel, requests: list[TrafficRequest], most_prompt: int = 0) -> list[Asked]:
    """All requests as they arrive. InputError names the first that does not fit (`most_prompt` 0: no limit)."""
    most = max_positions(model.model.config)
    vocab = known_ids(model.model)
    return [_read(model, one, number, most, most_prompt, vocab) for number, one in enumerate(requests)]


def _read(model: LoadedModel, one: TrafficRequest, number: int, most: int, most_prompt: int, vocab: int) -> Asked:
    ids = one.token_ids
    if not ids:
        text = one.prompt if one.prompt.strip() else prompt_text(one.seed, one.prompt_tokens)
        ids = token_ids(model.tokenizer, text)
    if one.prompt_tokens:
        ids = (ids * (one.prompt_tokens // max(1, len(ids)) + 1))[: one.prompt_tokens]
    if not ids:
        raise InputError(f"Request {number + 1} has no tokens. Give it some text.")
    if most_prompt and len(ids) > most_prompt:
        raise InputError(
            f"Request {number + 1} has {len(ids):,} prompt tokens, over the limit of {most_prompt:,} here. Shorten it."
        )
    total = len(ids) + one.max_new_tokens
    if most and total > most:
        raise InputError(
            f"Request {number + 1} has {len(ids):,} prompt tokens; with {one.max_new_tokens:,} new ones that is "
            f"{total:,}, but the model has {most:,} positions. Shorten its prompt or its output."
        )
    if max(ids) >= vocab:
        raise InputError(
            f"Request {number + 1} has token id {max(ids)}, but the model has only {vocab} embeddings. Use ids below "
            f"{vocab}."
        )
    return Asked(number, one.arrival_s, ids, one.max_new_tokens)
