"""The requests of a batch run, as values that a run stores: what arrives when, and what it asks for."""

import math

import msgspec

from tokendyno.backend.errors import InputError
from tokendyno.backend.traffic.shape import MAX_REQUESTS, Draw

MAX_CONCURRENT = 256
MAX_PAGES = 1_000_000
MAX_REQUEST_TOKENS = 131_072
MAX_ARRIVAL_S = 3_600.0
MAX_TRACE_TOKENS = 2_000_000
"""Prompt and new tokens of all requests together."""


class TrafficRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One request. Its prompt is `token_ids`, else `prompt`, else text drawn from `seed` and cut to `prompt_tokens`.

    prompt_tokens  above 0: length of the prompt; a given text is cut to it
    """

    arrival_s: float
    max_new_tokens: int
    prompt_tokens: int = 0
    prompt: str = ""
    token_ids: list[int] = []
    seed: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of the prompt as far as they are known without a tokenizer: a text is taken as 3.5 bytes a token."""
        return self.prompt_tokens or len(self.token_ids) or max(1, round(len(self.prompt.encode()) / 3.5))


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a request may take to count for goodput; 0: no limit."""

    ttft_s: float = 0.0
    token_s: float = 0.0
    request_s: float = 0.0

    def __post_init__(self) -> None:
        if not all(0 <= limit < math.inf for limit in (self.ttft_s, self.token_s, self.request_s)):
            raise InputError("A limit for goodput must be a positive number of seconds; 0 turns it off.")


class Traffic(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The requests of a run, in the order of their arrival, and what all arms share.

    shape       what they were drawn from, with the workload's seed; None: they were given
    concurrent  requests that may be in work at once: rows of a static batch, requests of a continuous one
    pages       pages of the paged KV cache; 0: as many as that many of the longest requests need
    """

    requests: list[TrafficRequest]
    concurrent: int = 16
    pages: int = 0
    limits: Limits = Limits()
    label: str = ""
    shape: Draw | None = None

    def __post_init__(self) -> None:
        if not self.requests:
            raise InputError("There are no requests. Ask for at least one (--requests), or add lines to the trace.")
        _within("requests", len(self.requests), 1, MAX_REQUESTS)
        _within("concurrent", self.concurrent, 1, MAX_CONCURRENT)
        _within("pages", self.pages, 0, MAX_PAGES)
        for i, one in enumerate(self.requests):
            check_request(one, f"Request {i + 1}")
        if any(a.arrival_s > b.arrival_s for a, b in zip(self.requests, self.requests[1:], strict=False)):
            raise InputError("Requests must be in the order of their arrival. Sort the trace by arrival_s.")
        total = sum(one.tokens + one.max_new_tokens for one in self.requests)
        if total > MAX_TRACE_TOKENS:
            raise InputError(
                f"The requests have {total:,} tokens together, over the limit of {MAX_TRACE_TOKENS:,}. "
                "Use fewer or shorter requests."
            )

    @property
    def exact(self) -> bool:
        """Whether the lengths of all prompts are known without a tokenizer."""
        return all(one.prompt_tokens or one.token_ids for one in self.requests)

    @property
    def longest_prompt(self) -> int:
        return max(one.tokens for one in self.requests)

    @property
    def longest_output(self) -> int:
        return max(one.max_new_tokens for one in self.requests)

    def largest(self) -> list[TrafficRequest]:
        """The requests that need most room together, as many as may be in work at once."""
        ordered = sorted(self.requests, key=lambda one: one.tokens + one.max_new_tokens, reverse=True)
        return ordered[: self.concurrent]


def check_request(one: TrafficRequest, name: str) -> None:
    """InputError, with its name in front, if a request cannot be one."""
    if not 0 <= one.arrival_s <= MAX_ARRIVAL_S:
        raise InputError(f"{name}: arrival_s is {one.arrival_s}; it must be from 0 to {MAX_ARRIVAL_S:,.0f} seconds.")
    if not 1 <= one.max_new_tokens <= MAX_REQUEST_TOKENS:
        raise InputError(
            f"{name}: max_new_tokens is {one.max_new_tokens}; it must be from 1 to {MAX_REQUEST_TOKENS:,}."
        )
    if not 0 <= one.prompt_tokens <= MAX_REQUEST_TOKENS:
        raise InputError(f"{name}: prompt_tokens is {one.prompt_tokens}; it must be from 1 to {MAX_REQUEST_TOKENS:,}.")
    if not (one.prompt_tokens or one.prompt.strip() or one.token_ids):
        raise InputError(f"{name} has no prompt. Give it prompt, token_ids or prompt_tokens.")
    if one.token_ids and (one.prompt or one.prompt_tokens):
        raise InputError(f"{name} has token_ids and another prompt as well. Give one of them.")
    if any(token < 0 for token in one.token_ids):
        raise InputError(f"{name}: a token id is below 0. Use ids of the model's vocabulary.")


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InputError(f"{name} is {value:,}; it must be a whole number from {low:,} to {high:,}.")
