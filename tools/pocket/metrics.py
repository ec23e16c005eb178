"""Numbers about generated text, each defined once."""

from collections.abc import Sequence

SPAN, TIMES, SHORT = 12, 2, 4


def grams(tokens: Sequence[int], size: int) -> list[tuple[int, ...]]:
    """Give all runs of `size` tokens."""
    return [tuple(tokens[at : at + size]) for at in range(len(tokens) - size + 1)]


def distinct(texts: Sequence[Sequence[int]], size: int) -> float:
    """Distinct-n: different runs over all runs, the runs of every text counted together."""
    every = [run for text in texts for run in grams(text, size)]
    return len(set(every)) / max(1, len(every))


def repetition(text: Sequence[int], size: int = 4) -> float:
    """Repetition rate of a text: the share of its 4-token runs that came before in the same text."""
    every = grams(text, size)
    return 1 - len(set(every)) / max(1, len(every))


def chain(text: Sequence[int], period: int, at: int) -> int:
    """How often the `period` tokens at `at` follow one another without a gap."""
    unit, times = text[at : at + period], 1
    while text[at + times * period : at + (times + 1) * period] == unit:
        times += 1
    return times


def loops(text: Sequence[int]) -> bool:
    """Tell whether a text goes round in a circle.

    It does when a unit of up to 40 tokens follows itself at once so that at least SPAN tokens are repeated, or when a
    run of 3 * SPAN tokens (about two sentences) comes twice anywhere.
    """
    found = list(text)
    for period in range(1, 41):
        for at in range(len(found) - 2 * period + 1):
            if (chain(found, period, at) - 1) * period >= max(SPAN, period):
                return True
    runs = grams(found, 3 * SPAN)
    return len(set(runs)) < len(runs)
