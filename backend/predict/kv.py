"""How large the KV cache is after so many tokens, split by the model's layer kinds.

The rules are those of transformers 5.22 (`cache_utils.py`), hqq 0.2 and optimum-quanto 0.2; tests compare with their
caches, byte for byte.
"""

from dataclasses import dataclass

import msgspec

from tokendyno.backend.models import CacheLayers, LayerKind, ModelFacts
from tokendyno.backend.plan import CacheKind

GROUP = 64
"""Numbers of a quantized cache that share a scale and a zero point (`q_group_size`)."""

RESIDUAL = 128
"""A quantized cache (not fp8) holds the newest tokens in full precision until there are so many (`residual_length`)."""

FP8_SCALE_BYTES = 4  # a float32 for all keys of a layer, one for its values; of a static cache for each token and head


@dataclass(frozen=True, slots=True)
class KvBytes:
    """Bytes of a cache, by what they hold.

    sliding, full  keys and values of layers with a window, and of those with full attention
    fixed          states that do not grow (linear attention, Mamba), beside keys and values or in their place
    latent         vectors from which keys and values are made (MLA)
    index          what sparse attention chooses tokens by
    """

    sliding: int
    full: int
    fixed: int = 0
    latent: int = 0
    index: int = 0

    @property
    def total(self) -> int:
        """All together."""
        return self.sliding + self.unwindowed

    @property
    def unwindowed(self) -> int:
        """All that has no window."""
        return self.full + self.fixed + self.latent + self.index

    def by_kind(self) -> dict[str, int]:
        """Bytes by kind of cache, in the words of the charts."""
        kinds = self.sliding, self.full, self.latent, self.fixed, self.index
        return dict(zip(("window", "growing", "latent", "state", "index"), kinds, strict=True))


class KvPoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """A corner of the predicted curve: bytes by layer kind when `length` tokens are cached. Runs store it. `full` has
    all that has no window, as it is measured: `latent`, `state` and `index` are parts of it, 0 in older records."""

    length: int
    sliding: int
    full: int
    latent: int = 0
    state: int = 0
    index: int = 0


def kv_bytes(
    facts: ModelFacts,
    cache: CacheKind,
    length: int,
    batch: int,
    itemsize: int,
    max_cache_len: int = 0,
    prompt_length: int | None = None,
) -> KvBytes:
    """Logical bytes of the cache's tensors when `length` tokens of each of `batch` sequences were written.

    The split follows the model, not the cache: with the unwindowed cache the sliding layers grow for ever,
    and that series is still called sliding. An offloaded cache is counted wherever it lies. `itemsize` is that of the
    compute dtype. `max_cache_len` is the size of a static cache. An encoder has no cache: 0.

    How much a quantized cache still holds in full precision depends on the length of the prompt, which is quantized at
    once; without `prompt_length` it is the most that any prompt of at most `length` tokens leaves.
    """
    if facts.kind == "encoder":
        return KvBytes(0, 0)
    if cache.static and length > max_cache_len:
        raise ValueError(f"a static cache of {max_cache_len} tokens cannot hold {length}")
    sizes: dict[LayerKind, int] = {"sliding": 0, "full": 0, "fixed": 0}
    latent = index = 0
    for layers in facts.cache_layers:
        numbers = batch * layers.elements  # of one token's keys and values in one layer
        if cache.backend == "rows":
            slots = _tokens(layers, cache, length, max_cache_len)
            size = slots * (numbers + 2 * batch * facts.kv_heads * FP8_SCALE_BYTES)
        elif cache.quantized:
            size = 2 * _quantized_bytes(cache, length, numbers // 2, itemsize, prompt_length)
        else:
            size = _tokens(layers, cache, length, max_cache_len) * numbers * itemsize
        index_bytes = layers.count * size * layers.index_elements // max(1, layers.elements)
        index += index_bytes
        rest = layers.count * size - index_bytes
        if layers.latent:
            latent += rest
        else:
            sizes[layers.kind] += rest
        if length:
            sizes["fixed"] += layers.count * batch * (layers.state_elements * itemsize + layers.state_bytes)
    return KvBytes(sizes["sliding"], sizes["full"], sizes["fixed"], latent, index)


def _tokens(layers: CacheLayers, cache: CacheKind, length: int, max_cache_len: int) -> int:
    """Tokens that one layer keeps: a growing window all but the newest one, a static cache as many as it has slots."""
    window = layers.window if cache.windowed else None
    if cache.static:
        return max_cache_len if window is None else min(window, max_cache_len)
    return length if window is None else min(length, window - 1)


def _quantized_bytes(cache: CacheKind, length: int, numbers: int, itemsize: int, prompt: int | None) -> int:
    """Bytes of the keys of one layer, or of its values: they are kept alike.

    fp8: a byte a number, and one scale. The others: 4 bits a number, a scale and a zero point for each group, and the
    residual. optimum-quanto packs two groups into one row of bytes, so that an odd group takes a whole row, and gives
    a lone group (one token of a tiny model) a scale for each number.
    """
    if length == 0:
        return 0
    if not cache.grouped:
        return length * numbers + FP8_SCALE_BYTES
    residual = min(RESIDUAL - 1, length - 1) if prompt is None else max(0, length - prompt) % RESIDUAL
    groups = (length - residual) * numbers // GROUP
    packed, scales = groups * GROUP // 2, groups
    if cache.backend == "quanto":
        packed, scales = -(-groups // 2) * GROUP, GROUP if groups == 1 else groups
    return packed + 2 * scales * itemsize + residual * numbers * itemsize


def kv_polyline(
    facts: ModelFacts,
    cache: CacheKind,
    first_length: int,
    last_length: int,
    batch: int,
    itemsize: int,
    max_cache_len: int,
) -> tuple[KvPoint, ...]:
    """The corners of the curve between two lengths; between them it is straight. `first_length` is the prompt's."""
    lengths = {first_length, last_length}
    if cache.grows and cache.windowed:
        lengths.update(layers.window - 1 for layers in facts.cache_layers if layers.window)
    if cache.grouped:  # the last length before the residual is quantized, and that
        full = range(first_length + RESIDUAL, last_length + 1, RESIDUAL)
        lengths.update(length - before for length in full for before in (1, 0))
    ordered = sorted(length for length in lengths if first_length <= length <= last_length)

    def corner(length: int) -> KvPoint:
        at = kv_bytes(facts, cache, length, batch, itemsize, max_cache_len, first_length)
        return KvPoint(length, at.sliding, at.unwindowed, at.latent, at.fixed, at.index)

    return tuple(corner(length) for length in ordered)
