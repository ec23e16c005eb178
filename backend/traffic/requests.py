"""The requests of a batch run: what they are drawn from, what arrives when, and what it asks for."""

import math
import random
from typing import Literal

import msgspec

from tokendyno.backend.errors import InputError
from tokendyno.backend.units import plural

MAX_REQUESTS = 2_000
Arrival = Literal["at-once", "poisson", "burst"]


class Draw(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What requests are drawn from. Lengths are uniform between two numbers, both included.

    long_share   share of the requests whose prompt length is drawn from `long_prompt_tokens` instead
    arrival      at-once: all at 0; poisson: independent arrivals, `rate_per_s` of them on average;
                 burst: `burst` requests at once, `rate_per_s` requests a second on average
    """

    requests: int = 100
    prompt_tokens: tuple[int, int] = (16, 256)
    new_tokens: tuple[int, int] = (16, 256)
    long_share: float = 0.0
    long_prompt_tokens: tuple[int, int] = (1_024, 2_048)
    arrival: Arrival = "at-once"
    rate_per_s: float = 0.0
    burst: int = 8

    def __post_init__(self) -> None:
        if not 1 <= self.requests <= MAX_REQUESTS:
            raise InputError(
                f"{self.requests:,} requests were asked for; it must be a whole number from 1 to {MAX_REQUESTS:,}."
            )
        for name in ("prompt_tokens", "new_tokens", "long_prompt_tokens"):
            low, high = getattr(self, name)
            if not 1 <= low <= high:
                raise InputError(
                    f"{name} is {low} to {high}; it must be two whole numbers, 1 or more, the smaller one first."
                )
        if not 0 <= self.long_share <= 1:
            raise InputError(f"long_share is {self.long_share}; it must be from 0 to 1.")
        if self.burst < 1:
            raise InputError(f"burst is {self.burst}; it must be 1 or more.")
        if self.arrival != "at-once" and not 0 < self.rate_per_s < math.inf:
            raise InputError(f"{self.arrival} arrivals need a rate above 0 requests a second (--rate).")

    def label(self, seed: int) -> str:
        """In words."""
        how = {
            "at-once": "all at once",
            "poisson": f"{self.rate_per_s:g} a second (Poisson)",
            "burst": f"in bursts of {self.burst}, {self.rate_per_s:g} a second",
        }[self.arrival]
        long = f", {self.long_share:.0%} of them {_range(self.long_prompt_tokens)}" if self.long_share else ""
        return (
            f"{plural(self.requests, 'request')}, prompts of {_range(self.prompt_tokens)} tokens{long}, outputs of "
            f"{_range(self.new_tokens)} tokens, {how}, seed {seed}"
        )


def _range(ends: tuple[int, int]) -> str:
    low, high = ends
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


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
        for i, request in enumerate(self.requests):
            check_request(request, f"Request {i + 1}")
        if any(a.arrival_s > b.arrival_s for a, b in zip(self.requests, self.requests[1:], strict=False)):
            raise InputError("Requests must be in the order of their arrival. Sort the trace by arrival_s.")
        total = sum(request.tokens + request.max_new_tokens for request in self.requests)
        if total > MAX_TRACE_TOKENS:
            raise InputError(
                f"The requests have {total:,} tokens together, over the limit of {MAX_TRACE_TOKENS:,}. "
                "Use fewer or shorter requests."
            )

    @property
    def exact(self) -> bool:
        """Whether the lengths of all prompts are known without a tokenizer."""
        return all(request.prompt_tokens or request.token_ids for request in self.requests)

    @property
    def longest_prompt(self) -> int:
        return max(request.tokens for request in self.requests)

    @property
    def longest_output(self) -> int:
        return max(request.max_new_tokens for request in self.requests)

    def largest(self) -> list[TrafficRequest]:
        """The requests that need most room together, as many as may be in work at once."""
        ordered = sorted(self.requests, key=lambda request: request.tokens + request.max_new_tokens, reverse=True)
        return ordered[: self.concurrent]


def check_request(request: TrafficRequest, name: str) -> None:
    """InputError, with its name in front, if a request cannot be one."""
    arrival_s = request.arrival_s
    if not 0 <= arrival_s <= MAX_ARRIVAL_S:
        raise InputError(f"{name}: arrival_s is {arrival_s}; it must be from 0 to {MAX_ARRIVAL_S:,.0f} seconds.")
    for field, tokens, least in (
        ("max_new_tokens", request.max_new_tokens, 1),
        ("prompt_tokens", request.prompt_tokens, 0),  # 0: not given
    ):
        if not least <= tokens <= MAX_REQUEST_TOKENS:
            raise InputError(f"{name}: {field} is {tokens}; it must be from 1 to {MAX_REQUEST_TOKENS:,}.")
    if not (request.prompt_tokens or request.prompt.strip() or request.token_ids):
        raise InputError(f"{name} has no prompt. Give it prompt, token_ids or prompt_tokens.")
    if request.token_ids and (request.prompt or request.prompt_tokens):
        raise InputError(f"{name} has token_ids and another prompt as well. Give one of them.")
    if any(token < 0 for token in request.token_ids):
        raise InputError(f"{name}: a token id is below 0. Use ids of the model's vocabulary.")


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InputError(f"{name} is {value:,}; it must be a whole number from {low:,} to {high:,}.")


# --- drawing by seed -------------------------------------------------------------------------------

DISTINCT_PROMPTS = 1 << 30


def draw(shape: Draw, seed: int) -> list[TrafficRequest]:
    """The requests, in the order of their arrival. Drawn by `Random.random` alone, whose values for a seed are the same
    in every version of Python."""
    chance = random.Random(seed).random
    arrival_s, requests = 0.0, []
    for i in range(shape.requests):
        if shape.arrival == "poisson":
            arrival_s += -math.log(1.0 - chance()) / shape.rate_per_s if i else 0.0
        elif shape.arrival == "burst":
            arrival_s = i // shape.burst * shape.burst / shape.rate_per_s
        long = shape.long_share > 0 and chance() < shape.long_share
        prompt = _between(chance(), shape.long_prompt_tokens if long else shape.prompt_tokens)
        new = _between(chance(), shape.new_tokens)
        requests.append(TrafficRequest(round(arrival_s, 6), new, prompt, seed=int(chance() * DISTINCT_PROMPTS)))
    return requests


def _between(chance: float, ends: tuple[int, int]) -> int:
    low, high = ends
    return low + int(chance * (high - low + 1))


# --- the text of a drawn prompt --------------------------------------------------------------------

_NAMES = ("Pip", "Tim", "Lily", "Sam", "Mia", "Ben", "Anna", "Max", "Zoe", "Leo", "Sue", "Tom")
_VERBS = ("found", "saw", "liked", "took", "lost", "made", "wanted", "gave away", "hid", "looked for", "painted")
_COLOURS = ("red", "blue", "green", "big", "small", "old", "new", "shiny", "soft", "happy", "yellow", "funny")
_THINGS = ("ball", "dog", "cat", "tree", "box", "boat", "bird", "cake", "hat", "car", "flower", "book", "stone")
_PLACES = (
    "in the garden",
    "at the park",
    "by the lake",
    "in the house",
    "on the hill",
    "near the river",
    "at school",
    "in the forest",
    "on the beach",
    "behind the door",
)


def prompt_text(seed: int, words: int) -> str:
    """At least so many words, which every tokenizer turns into at least as many tokens."""
    chance = random.Random(seed).random
    sentences: list[str] = []

    def pick(choices: tuple[str, ...]) -> str:
        return choices[int(chance() * len(choices))]

    count = 0
    while count < words:
        sentence = f"{pick(_NAMES)} {pick(_VERBS)} a {pick(_COLOURS)} {pick(_THINGS)} {pick(_PLACES)}."
        sentences.append(sentence)
        count += len(sentence.split())
    return " ".join(sentences)
