"""How many pages the KV cache of continuous batching needs, and their bytes, from the config alone."""

import math
from collections.abc import Iterable

from tokendyno.backend.models import ModelFacts
from tokendyno.backend.traffic import Traffic

SAFETY_MARGIN = 0.15
"""Share of free pages below which transformers' fifo scheduler admits no new prompt (scheduler.py: FIFOScheduler)."""

ALIGNMENT_BYTES = 128
"""Pages of different kinds of layers share sectors whose size is a multiple of this (cache.py: PagedAttentionCache)."""


def pages_needed(lengths: Iterable[int], page_tokens: int, margin: float = SAFETY_MARGIN) -> int:
    """Pages for requests of these lengths at once, such that none waits for pages, nor for the margin kept free."""
    pages = sum(-(-length // page_tokens) for length in lengths)
    return int(pages / (1.0 - margin)) + 1


def pages_of(traffic: Traffic, page_tokens: int) -> int:
    """Pages of the cache for that traffic: as many as were asked for, else as many as are needed."""
    lengths = (request.tokens + request.max_new_tokens for request in traffic.largest())
    return traffic.pages or pages_needed(lengths, page_tokens)


def cache_bytes(facts: ModelFacts, pages: int, page_tokens: int, itemsize: int) -> int:
    """Bytes of so many pages, each over all layers, rounded up to whole sectors, padding apart."""
    groups = [layers.elements * layers.count * itemsize * page_tokens for layers in facts.cache_layers]
    groups = [size for size in groups if size]  # states have no pages
    sector = math.lcm(*groups, ALIGNMENT_BYTES)
    return max(1, -(-pages * sum(groups) // sector)) * sector
