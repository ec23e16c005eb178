"""Draws requests by seed: the same seed gives the same requests in every version of Python."""

import math
import random
from typing import Literal

import msgspec

from backend.errors import InputError
from backend.traffic.requests import MAX_REQUESTS, TrafficRequest

Arrival = Literal["at-once", "poisson", "burst"]
DISTINCT_PROMPTS = 1 << 30


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
            raise InputError(f"{self.requests:,} requests were asked for; it must be a whole number from 1 to "
                             f"{MAX_REQUESTS:,}.")  # fmt: skip
        for name in ("prompt_tokens", "new_tokens", "long_prompt_tokens"):
            low, high = getattr(self, name)
            if not 1 <= low <= high:
                raise InputError(f"{name} is {low} to {high}; it must be two whole numbers, 1 or more, the smaller "
                                 "one first.")  # fmt: skip
        if not 0 <= self.long_share <= 1:
            raise InputError(f"long_share is {self.long_share}; it must be from 0 to 1.")
        if self.burst < 1:
            raise InputError(f"burst is {self.burst}; it must be 1 or more.")
        if self.arrival != "at-once" and not 0 < self.rate_per_s < math.inf:
            raise InputError(f"{self.arrival} arrivals need a rate above 0 requests a second (--rate).")

    def label(self, seed: int) -> str:
        """In words."""
        how = {
            "at-once": "all at once", "poisson": f"{self.rate_per_s:g} a second (Poisson)",
            "burst": f"in bursts of {self.burst}, {self.rate_per_s:g} a second",
        }[self.arrival]  # fmt: skip
        long = f", {self.long_share:.0%} of them {_range(self.long_prompt_tokens)}" if self.long_share else ""
        return (
            f"{self.requests} requests, prompts of {_range(self.prompt_tokens)} tokens{long}, outputs of "
            f"{_range(self.new_tokens)} tokens, {how}, seed {seed}"
        )


def draw(shape: Draw, seed: int) -> list[TrafficRequest]:
    """The requests, in the order of their arrival.

    Only `Random.random` is used, whose values Python promises to keep for a seed.
    """
    chance = random.Random(seed).random
    arrival_s, found = 0.0, []
    for i in range(shape.requests):
        if shape.arrival == "poisson":
            arrival_s += -math.log(1.0 - chance()) / shape.rate_per_s if i else 0.0
        elif shape.arrival == "burst":
            arrival_s = i // shape.burst * shape.burst / shape.rate_per_s
        long = shape.long_share > 0 and chance() < shape.long_share
        prompt = _between(chance(), shape.long_prompt_tokens if long else shape.prompt_tokens)
        new = _between(chance(), shape.new_tokens)
        found.append(TrafficRequest(round(arrival_s, 6), new, prompt, seed=int(chance() * DISTINCT_PROMPTS)))
    return found


def _between(chance: float, ends: tuple[int, int]) -> int:
    low, high = ends
    return low + int(chance * (high - low + 1))


def _range(ends: tuple[int, int]) -> str:
    low, high = ends
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
