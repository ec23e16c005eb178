"""How transformers builds the cache of each kind, described once: the worker builds it, a script prints it."""

from tokendyno.backend.plan import CacheKind
from tokendyno.backend.script.construct import Argument, Construct, Name

CONFIG, LENGTH = "config", "length"
"""Names of the arguments that are the model's config, and the tokens that a static cache holds."""


def cache_construct(cache: CacheKind) -> Construct:
    """The class and its arguments."""
    keywords: dict[str, Argument] = {}
    if cache.quantized:
        keywords = {"nbits": cache.bits} if cache.grouped else {}
        return Construct("transformers", "QuantizedCache", (cache.backend, Name(CONFIG)), keywords)
    if cache.windowed:
        keywords["config"] = Name(CONFIG)
    if cache.static:
        keywords["max_cache_len"] = Name(LENGTH)
    if cache.offloaded:
        keywords["offloading"] = True
    return Construct("transformers", "StaticCache" if cache.static else "DynamicCache", (), keywords)
