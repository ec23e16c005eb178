"""cache: layers that are not of the kind that was asked for, or do not do what their class promises."""

import functools
from collections.abc import Callable
from typing import Any
from unittest import mock

from transformers.cache_utils import (
    DynamicLayer,
    DynamicSlidingWindowLayer,
    Fp8QuantizedLayer,
    HQQQuantizedLayer,
    QuantoQuantizedLayer,
    StaticLayer,
    StaticSlidingWindowLayer,
)

from tests.sabotage.saboteur import SHARES, Patch, table, tests_of
from tests.sabotage.small_models import LAYERS, WINDOW, mistral
from tokendyno.backend.worker.loop.cache import StaticFp8SlotLayer, StaticSlotLayer
from tokendyno.backend.worker.runners.token_loops import Caches

QUANTIZED = {
    "quantized-fp8": Fp8QuantizedLayer,
    "quantized-hqq4": HQQQuantizedLayer,
    "quantized-quanto4": QuantoQuantizedLayer,
}


def swapped(share: str, kind: type, other: Callable[[Any], Any], seam: str = "make") -> Patch:
    """One, half or all layers of this kind are replaced by `other` of them, in each new cache. With the seam `_build`
    those of a cache that is kept for the next run are replaced once."""
    original = getattr(Caches, seam)

    def make(self: Any, *args: Any) -> Any:
        cache = original(self, *args)
        indices = [i for i, layer in enumerate(cache.layers) if isinstance(layer, kind)]
        for i in indices[: {"one": 1, "half": len(indices) // 2, "all": len(indices)}[share]]:
            cache.layers[i] = other(cache.layers[i])
        return cache

    return lambda: mock.patch.object(Caches, seam, make)


def growing(layer: Any) -> Any:
    return DynamicLayer()


def keep_all() -> dict[str, Patch]:
    return {f"{share} of the windows keep all": swapped(share, DynamicSlidingWindowLayer, growing) for share in SHARES}


def fixed_windows_keep_all() -> dict[str, Patch]:
    def whole(layer: Any) -> Any:
        return StaticLayer(layer.max_cache_len)

    return {f"{share} of the windows keep all": swapped(share, StaticSlidingWindowLayer, whole) for share in SHARES}


def windowed() -> dict[str, Patch]:
    """Layers have windows after all; the cache has none when it is made, and gets them as they are used."""
    original = Caches.make

    def patch(share: str) -> Any:
        have = {"one": 1, "half": LAYERS // 2, "all": LAYERS}[share]

        def make(self: Any, *args: Any) -> Any:
            cache = original(self, *args)
            windows = [DynamicSlidingWindowLayer(sliding_window=WINDOW) for _ in range(have)]
            cache.layers = windows + [DynamicLayer() for _ in range(LAYERS - have)]
            return cache

        return mock.patch.object(Caches, "make", make)

    return {f"{share} of the sliding layers have windows": functools.partial(patch, share) for share in SHARES}


def in_full_precision() -> dict[str, Patch]:
    def wide(layer: Any) -> Any:
        return StaticSlotLayer(StaticLayer(layer.slots.size), layer.slots)

    return {f"{share} in full precision": swapped(share, StaticFp8SlotLayer, wide, "_build") for share in SHARES}


SABOTEURS = [
    *table("cache", {"dynamic": keep_all()}, model=mistral),
    *table("cache", {"static": fixed_windows_keep_all(), "unwindowed": windowed()}, model=mistral),
    *table("cache", {"static": {"all layers grow": swapped("all", StaticLayer, growing)}}),
    *table("cache", {"static-fp8": in_full_precision()}, {"loop": "own"}),
    *table(
        "cache",
        {
            choice: {f"{share} not quantized": swapped(share, kind, growing) for share in SHARES}
            for choice, kind in QUANTIZED.items()
        },
        prompt_tokens=64,
    ),
]
test_sabotage_turns_a_row, test_the_control_is_verified = tests_of(SABOTEURS)
