"""Draws requests by seed: the same seed gives the same requests in every version of Python."""

import math
import random

from tokendyno.backend.traffic.requests import TrafficRequest
from tokendyno.backend.traffic.shape import Arrival, Draw

__all__ = ["Arrival", "Draw", "draw"]

DISTINCT_PROMPTS = 1 << 30


def draw(shape: Draw, seed: int) -> list[TrafficRequest]:
    """The requests, in the order of their arrival, by `Random.random` alone, whose values Python keeps for a seed."""
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
