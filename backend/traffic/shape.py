"""What requests are drawn from: how many, how long, and how they arrive."""

import math
from typing import Literal

import msgspec

from tokendyno.backend.errors import InputError

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
            f"{self.requests} requests, prompts of {_range(self.prompt_tokens)} tokens{long}, outputs of "
            f"{_range(self.new_tokens)} tokens, {how}, seed {seed}"
        )


def _range(ends: tuple[int, int]) -> str:
    low, high = ends
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
