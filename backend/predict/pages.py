"""How many pages the KV cache of continuous batching needs, and their bytes, from the config alone."""

from collections.abc import Iterable

SAFETY_MARGIN = 0.15
"""Share of free pages below which transformers' fifo scheduler admits no new prompt."""


def pages_needed(lengths: Iterable[int], page_tokens: int, margin: float = SAFETY_MARGIN) -> int:
    """Pages for requests of these lengths at once, such that none waits for pages, nor for the margin kept free."""
    pages = sum(-(-length // page_tokens) for length in lengths)
    return int(pages / (1.0 - margin)) + 1
