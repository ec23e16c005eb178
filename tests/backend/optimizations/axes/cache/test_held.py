"""Tokens that a cache counts are in memory of its own, and are what attention gets."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import DynamicCache, QuantizedCache, StaticCache

from backend.models.source import ModelSource
from backend.optimizations import Observation
from backend.optimizations.axes.cache.axis import AXIS
from backend.optimizations.axes.cache.held import borrowing, hands_out_what_it_holds
from backend.plan import LoadPlan, Plan
from backend.worker.loop.cache import StaticSlotCache
from tests.support.tiny_models import tiny

TOKENS = 32
MAKE: dict[str, Callable[[Any], Any]] = {
    "dynamic": lambda config: DynamicCache(config=config),
    "static": lambda config: StaticCache(config, 2 * TOKENS),
    "own": lambda config: StaticSlotCache(config, 2 * TOKENS),
    "fp8": lambda config: QuantizedCache("fp8", config),
    "hqq": lambda config: QuantizedCache("hqq", config, nbits=4),
    "quanto": lambda config: QuantizedCache("quanto", config, nbits=4),
}
QUANTIZED = ("fp8", "hqq", "quanto")


def filled(kind: str, architecture: str = "llama", texts: int = 1) -> Any:
    """A cache of four layers that was given a prompt and a token, of so many texts, which are equal."""
    config = tiny(architecture).config
    if kind in QUANTIZED:
        pytest.importorskip({"hqq": "hqq", "quanto": "optimum.quanto"}.get(kind, "torch"))
    cache = MAKE[kind](config)
    for tokens in (TOKENS, 1):
        for layer in range(4):
            cache.update(*(torch.randn(1, 2, tokens, 32).expand(texts, -1, -1, -1) for _ in range(2)), layer)
    return cache


def reached(cache: Any, architecture: str = "llama") -> tuple[int | None, int | None]:
    found = AXIS.find(Observation(tiny(architecture), cache, Plan(LoadPlan(ModelSource("random")))))
    return found.reached, found.expected


@pytest.mark.parametrize(
    ("kind", "architecture"),
    [*((kind, "llama") for kind in MAKE), ("dynamic", "gpt_oss"), ("static", "gpt_oss"), ("own", "gpt_oss")],
)
def test_each_layer_of_an_intact_cache_counts_and_is_left_as_it_was(kind: str, architecture: str) -> None:
    cache = filled(kind, architecture)
    before = [layer.get_seq_length() for layer in cache.layers]
    given = [[part.clone() for part in _next(layer)] for layer in cache.layers]
    assert borrowing(cache.layers) == set()
    assert all(map(hands_out_what_it_holds, cache.layers))
    assert [layer.get_seq_length() for layer in cache.layers] == before
    for layer, pair in zip(cache.layers, given, strict=True):
        assert all(map(torch.equal, _next(layer), pair))


def _next(layer: Any) -> Any:
    """What the layer holds, plain or packed."""
    packed = getattr(layer, "_quantized_keys", None)
    parts = [layer.keys, layer.values] if packed is None else [layer._dequantize(packed)]
    return [part for part in parts if part.numel()]


@pytest.mark.parametrize("lender", [0, 3])
@pytest.mark.parametrize("part", ["keys", "values"])
def test_layers_that_show_one_memory_count_neither_of_them(lender: int, part: str) -> None:
    cache = filled("dynamic")
    setattr(cache.layers[1], part, getattr(cache.layers[lender], part))
    assert borrowing(cache.layers) == {1, lender}
    assert reached(cache) == (2, 4)


def test_rows_that_are_one_row_shown_again_do_not_count() -> None:
    cache = filled("dynamic")
    cache.layers[2].values = cache.layers[2].values.expand(4, -1, -1, -1)
    cache.layers[2].keys = cache.layers[2].keys.expand(4, -1, -1, -1)
    assert borrowing(cache.layers) == {2}
    cache.layers[2].keys, cache.layers[2].values = cache.layers[2].keys.clone(), cache.layers[2].values.clone()
    assert borrowing(cache.layers) == set()


def _in_half(part: Any) -> Any:
    return part[..., -TOKENS // 2 :, :]


BROKEN: dict[str, Callable[[Any, Any, Any], Any]] = {
    "copies": lambda right, kept, new: tuple(torch.cat([one, more], -2) for one, more in zip(kept, new, strict=True)),
    "copies of the values": lambda right, kept, new: (right[0], torch.cat([kept[1], new[1]], -2)),
    "the newest half": lambda right, kept, new: tuple(map(_in_half, right)),
}


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("kind", ["dynamic", *QUANTIZED])
def test_a_layer_that_hands_out_something_else_does_not_count(kind: str, how: str) -> None:
    cache = filled(kind)
    layer = cache.layers[2]
    plain, kept = type(layer).update, [torch.randn(1, 2, TOKENS + 1, 32) for _ in range(2)]

    class Other(type(layer)):  # type: ignore[misc]
        def update(self, keys: Any, values: Any, *more: Any, **rest: Any) -> Any:
            return BROKEN[how](plain(self, keys, values), kept, (keys, values))

    Other.__name__ = type(layer).__name__
    layer.__class__ = Other
    assert not hands_out_what_it_holds(layer)
    assert reached(cache) == (3, 4)


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("kind", ["dynamic", "static", "own"])
def test_a_layer_that_hands_out_one_text_as_every_one_does_not_count(kind: str, place: int) -> None:
    cache = filled(kind, texts=3)
    assert reached(cache) == (4, 4)
    layer = cache.layers[2]

    class OneText(type(layer)):  # type: ignore[misc]
        def update(self, *pair: Any, **rest: Any) -> Any:
            found = [*super().update(*pair, **rest)]
            found[place] = found[place][:1].expand_as(found[place])
            return tuple(found)

    OneText.__name__ = type(layer).__name__
    layer.__class__ = OneText
    before = layer.keys.clone(), int(layer.get_seq_length())
    assert not hands_out_what_it_holds(layer)
    assert torch.equal(layer.keys, before[0]) and int(layer.get_seq_length()) == before[1]
    assert reached(cache) == (3, 4)


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("kind", ["static", "own"])
def test_a_layer_in_fixed_memory_that_hands_out_something_else_does_not_count(kind: str, how: str) -> None:
    cache = filled(kind)
    layer, kept = cache.layers[2], [torch.randn(1, 2, 2 * TOKENS - 1, 32) for _ in range(2)]

    class Other(type(layer)):  # type: ignore[misc]
        def update(self, keys: Any, values: Any, *more: Any, **rest: Any) -> Any:
            return BROKEN[how](super().update(keys, values), kept, (keys, values))

    Other.__name__ = type(layer).__name__
    layer.__class__ = Other
    assert not hands_out_what_it_holds(layer)


def test_a_full_layer_in_fixed_memory_is_told_too() -> None:
    cache = StaticCache(tiny("llama").config, TOKENS)
    for layer in range(4):
        cache.update(torch.randn(2, 2, TOKENS, 32), torch.randn(2, 2, TOKENS, 32), layer)
    assert all(map(hands_out_what_it_holds, cache.layers))


def test_a_plain_layer_hands_out_the_numbers_that_it_holds_to_the_bit() -> None:
    cache = filled("dynamic")
    layer = cache.layers[2]

    class Rounding(type(layer)):  # type: ignore[misc]
        def update(self, *pair: Any, **rest: Any) -> Any:
            return tuple(part.to(torch.float8_e4m3fn).to(part.dtype) for part in super().update(*pair, **rest))

    Rounding.__name__ = type(layer).__name__
    layer.__class__ = Rounding
    assert not hands_out_what_it_holds(layer)
    assert reached(cache) == (3, 4)


@pytest.mark.parametrize(
    "cache", [DynamicCache(), StaticCache(tiny("llama").config, TOKENS)], ids=["dynamic", "static"]
)
def test_values_of_another_size_than_the_keys_are_told_as_well(cache: Any) -> None:
    """As those of latent attention."""
    cache.update(torch.randn(2, 2, 7, 32), torch.randn(2, 2, 7, 16), 0)
    (layer,) = [one for one in cache.layers if one.is_initialized]
    assert hands_out_what_it_holds(layer)
    plain = layer.update
    layer.update = lambda *pair, **more: tuple(2 * part for part in plain(*pair, **more))
    assert not hands_out_what_it_holds(layer)


def test_a_layer_without_a_token_gives_nothing_to_tell() -> None:
    cache = DynamicCache(config=tiny("llama").config)
    assert borrowing(cache.layers) == set() and all(map(hands_out_what_it_holds, cache.layers))
