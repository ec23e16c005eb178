"""Bootstrap intervals of changes that Student's interval does not fit: of largest peaks, and of means over positions.

Arms of one round stay a pair. (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13: percentile
intervals.)
"""

import random
import statistics
from collections.abc import Callable, Sequence

from tokendyno.backend.runs.statistics import CONFIDENCE

RESAMPLES = 400
SEED = 0
BLOCK = 8
"""Positions of a text that are drawn together, since neighbours depend on each other."""

Interval = tuple[float, float]


def memory_interval(pairs: Sequence[tuple[int, int]]) -> Interval | None:
    """Of the difference between the largest peaks, in bytes; `pairs`: (there, here) of each round. None below two."""

    def draw(rng: random.Random) -> float:
        chosen = [rng.choice(pairs) for _ in pairs]
        return max(here for _, here in chosen) - max(there for there, _ in chosen)

    return _interval(draw) if len(pairs) > 1 else None


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Of the mean over positions of texts, drawn in blocks; None below two blocks."""
    blocks = [values[at : at + BLOCK] for at in range(0, len(values), BLOCK)]

    def draw(rng: random.Random) -> float:
        return statistics.fmean(value for _ in blocks for value in rng.choice(blocks))

    return _interval(draw) if len(blocks) > 1 else None


def _interval(draw: Callable[[random.Random], float]) -> Interval:
    """The middle 95% of the draws, which are the same for the same data."""
    rng = random.Random(SEED)
    draws = sorted(draw(rng) for _ in range(RESAMPLES))
    tail = round((1 - CONFIDENCE) / 2 * RESAMPLES)
    return draws[tail], draws[-1 - tail]
