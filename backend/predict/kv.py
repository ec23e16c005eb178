"""How large the KV cache is after so many tokens, split by the model's layer kinds.

The rules are those of transformers 5.22 (`cache_utils.py`); tests compare with its caches, byte for byte.
"""

from dataclasses import dataclass

from backend.models import LayerKind, ModelFacts
from backend.plan import CacheKind


@dataclass(frozen=True, slots=True)
class KvBytes:
    """Bytes of keys and values in the layers with a window and in those with full attention."""

    sliding: int
    full: int

    @property
    def total(self) -> int:
        """Both together."""
        return self.sliding + self.full


@dataclass(frozen=True, slots=True)
class KvPoint:
    """A corner of the curve: bytes when `length` tokens were written."""

    length: int
    sliding: int
    full: int


def kv_bytes(
    facts: ModelFacts, cache: CacheKind, length: int, batch: int, itemsize: int, max_cache_len: int = 0
) -> KvBytes:
    """Logical bytes of the cache's tensors when `length` tokens of each of `batch` sequences were written.

    The split follows the model, not the cache: with the unwindowed cache the sliding layers grow for ever,
    and that series is still called sliding. `itemsize` is that of the compute dtype. `max_cache_len` is the
    size of a static cache. An encoder has no cache: 0.
    """
    if facts.kind == "encoder":
        return KvBytes(0, 0)
    if cache == "static" and length > max_cache_len:
        raise ValueError(f"a static cache of {max_cache_len} tokens cannot hold {length}")
    token_bytes = 2 * batch * facts.kv_heads * facts.head_dim * itemsize  # keys and values of one token in one layer
    sliding = _tokens(facts, cache, "sliding", length, max_cache_len) * facts.sliding_layers
    full = _tokens(facts, cache, "full", length, max_cache_len) * facts.full_layers
    return KvBytes(sliding * token_bytes, full * token_bytes)


def _tokens(facts: ModelFacts, cache: CacheKind, kind: LayerKind, length: int, max_cache_len: int) -> int:
    """Tokens that one layer keeps. A dynamic layer needs no place for the newest one, so it keeps window - 1;
    a static one has window places, all allocated at the first token (before it, too, in this prediction).
    """
    window = facts.window if kind == "sliding" and cache != "unwindowed" else None
    if cache == "static":
        return max_cache_len if window is None else min(window, max_cache_len)
    return length if window is None else min(length, window - 1)


def kv_polyline(
    facts: ModelFacts,
    cache: CacheKind,
    first_length: int,
    last_length: int,
    batch: int,
    itemsize: int,
    max_cache_len: int = 0,
) -> tuple[KvPoint, ...]:
    """The corners of the curve between two lengths; between them it is straight."""
    corner = facts.window - 1 if facts.window and cache == "dynamic" else first_length
    lengths = sorted({first_length, last_length, min(max(corner, first_length), last_length)})
    sizes = [kv_bytes(facts, cache, length, batch, itemsize, max_cache_len) for length in lengths]
    return tuple(KvPoint(length, at.sliding, at.full) for length, at in zip(lengths, sizes, strict=True))


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
    return tuple(kv_bytes(facts, cache, length, batch, itemsize, max_cache_len) for length in lengths)
