"""The predicted KV cache step by step, against which real caches are compared."""

from tokendyno.backend.models import ModelFacts
from tokendyno.backend.plan import CacheKind
from tokendyno.backend.predict.kv import KvBytes, kv_bytes


def kv_series(
    facts: ModelFacts,
    cache: CacheKind,
    prompt_length: int,
    new_tokens: int,
    batch: int,
    itemsize: int,
    max_cache_len: int = 0,
) -> tuple[KvBytes, ...]:
    """One entry for each generated token: token i is made when the prompt and i tokens are in the cache."""
    lengths = range(prompt_length, prompt_length + new_tokens)
    return tuple(kv_bytes(facts, cache, length, batch, itemsize, max_cache_len, prompt_length) for length in lengths)
