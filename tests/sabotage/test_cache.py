"""Caches whose layers are not of the kind that was asked for, or do not do what their class promises."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from transformers.cache_utils import (
    DynamicCache,
    DynamicLayer,
    DynamicSlidingWindowLayer,
    Fp8QuantizedLayer,
    HQQQuantizedLayer,
    QuantoQuantizedLayer,
    StaticLayer,
    StaticSlidingWindowLayer,
)

from backend.worker.loop import cache as own_cache
from backend.worker.loop.cache import SlotLayer, StaticFp8SlotLayer, StaticSlotLayer
from backend.worker.runners import decode
from backend.worker.runners.cache import Caches
from tests.sabotage.saboteur import Sabotage, tests_of
from tests.sabotage.small_models import LAYERS, llama

OWN = (("loop", "own"),)
SHARES = {"all": 1.0, "half": 0.5, "one": 0.0}


def swapped(share: str, other: Callable[[Any], Any], seam: str = "make") -> Callable[[], Any]:
    """A patch of the worker's seam: some layers of every new cache are replaced. `other` gets the layer. With the seam
    `_build` those of a cache that is kept for the next run are replaced once."""
    plain = getattr(Caches, seam)

    def make(self: Any, *given: Any) -> Any:
        cache = plain(self, *given)
        changed = [i for i, layer in enumerate(cache.layers) if type(other(layer)) is not type(layer)]
        for i in changed[: max(1, int(len(changed) * SHARES[share]))]:
            cache.layers[i] = other(cache.layers[i])
        return cache

    return lambda: mock.patch.object(Caches, seam, make)


def _growing(layer: Any) -> Any:
    return DynamicLayer() if isinstance(layer, StaticLayer) else layer


def _without_window(layer: Any) -> Any:
    return StaticLayer(layer.max_cache_len) if isinstance(layer, StaticSlidingWindowLayer) else layer


def _keeps_all(layer: Any) -> Any:
    return DynamicLayer() if isinstance(layer, DynamicSlidingWindowLayer) else layer


def _windows(share: str) -> Callable[[], Any]:
    """Layers that should keep everything have windows after all; transformers adds plain ones behind them."""
    plain = Caches.make

    def make(self: Any, plan: Any, batch_size: int, length: int) -> Any:
        cache, windowed = plain(self, plan, batch_size, length), DynamicCache(config=self._config).layers
        sliding = [i for i, layer in enumerate(windowed) if isinstance(layer, DynamicSlidingWindowLayer)]
        wrong = sliding[: max(1, int(len(sliding) * SHARES[share]))]
        cache.layers = [layer if i in wrong else DynamicLayer() for i, layer in enumerate(windowed)]
        return cache

    return lambda: mock.patch.object(Caches, "make", make)


@contextlib.contextmanager
def _never_crops() -> Iterator[None]:
    """A sliding-window layer that attends to its window and keeps every token, under its own name."""
    plain = DynamicSlidingWindowLayer.update

    def update(self: Any, keys: Any, values: Any, *more: Any, **rest: Any) -> Any:
        kept = [self.keys, self.values] if self.is_initialized else [keys[..., :0, :], values[..., :0, :]]
        if self.is_initialized:
            self.keys, self.values = self.window
        found = plain(self, keys, values, *more, **rest)
        self.window = self.keys, self.values
        self.keys, self.values = torch.cat([kept[0], keys], -2), torch.cat([kept[1], values], -2)
        return found

    with mock.patch.object(DynamicSlidingWindowLayer, "update", update):
        yield


@contextlib.contextmanager
def _moves(every: int) -> Iterator[None]:
    """Static layers that hold their tokens in new memory at each step: every one, or one in so many."""
    plain, places = StaticLayer.lazy_initialization, itertools.count()

    def begin(self: Any, *states: Any) -> None:
        plain(self, *states)
        self.place = next(places)  # of a copy that a proof asks as well

    def moving(update: Any) -> Any:
        def updated(self: Any, *args: Any, **more: Any) -> Any:
            found = update(self, *args, **more)
            if self.place % every == 0:
                self.keys, self.values = self.keys.clone(), self.values.clone()
            return found

        return updated

    kinds = StaticLayer, StaticSlidingWindowLayer
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(StaticLayer, "lazy_initialization", begin))
        for kind in kinds:
            stack.enter_context(mock.patch.object(kind, "update", moving(kind.update)))
        yield


def _copies(*kinds: Any) -> Callable[[], Any]:
    """Layers of these kinds keep what they should and hand out the newest tokens of copies beside it."""

    def copying(update: Any) -> Any:
        def updated(self: Any, keys: Any, values: Any, *more: Any, **rest: Any) -> Any:
            slots = update(self, keys, values, *more, **rest)[0].shape[-2]
            kept = self.copies if keys.shape[-2] == 1 else (keys[..., :0, :], values[..., :0, :])
            self.copies = tuple(torch.cat([*pair], -2) for pair in zip(kept, (keys, values), strict=True))
            return tuple(one[..., -slots:, :] for one in self.copies)

        return updated

    @contextlib.contextmanager
    def broken() -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for kind in kinds:
                stack.enter_context(mock.patch.object(kind, "update", copying(kind.update)))
            yield

    return broken


@contextlib.contextmanager
def _updates(kind: type, other: Callable[[Any, int, Any, Any, Any], Any]) -> Iterator[None]:
    """Layers of this kind are updated by `other`: their own method, their place, the layer, keys and values."""
    plain, made = kind.update, itertools.count()  # type: ignore[attr-defined]

    def update(self: Any, keys: Any, values: Any, *more: Any, **rest: Any) -> Any:
        if not hasattr(self, "place"):
            self.place = next(made) % LAYERS
        return other(lambda *pair: plain(self, *pair, *more, **rest), self.place, self, keys, values)

    with mock.patch.object(kind, "update", update):
        yield


def _copies_elsewhere(kind: type) -> Any:
    """Keys and values are kept as they should, and others are handed out, which no layer knows of."""
    elsewhere: dict[int, Any] = {}

    def update(plain: Any, place: int, layer: Any, keys: Any, values: Any) -> Any:
        plain(keys, values)
        kept = elsewhere.get(place)
        if keys.shape[-2] > 1 or kept is None:
            kept = keys[..., :0, :], values[..., :0, :]
        elsewhere[place] = tuple(torch.cat([*pair], -2) for pair in zip(kept, (keys, values), strict=True))
        return elsewhere[place]

    return _updates(kind, update)


def _newest(where: Callable[[int], bool]) -> Any:
    """All tokens are kept, and the newest eight are handed out."""

    def update(plain: Any, place: int, layer: Any, keys: Any, values: Any) -> Any:
        found = plain(keys, values)
        return tuple(part[..., -8:, :] for part in found) if where(place) and keys.shape[-2] == 1 else found

    return _updates(DynamicLayer, update)


def _lent() -> Any:
    """All layers show the keys and values of the first one."""
    first: list[Any] = []

    def update(plain: Any, place: int, layer: Any, keys: Any, values: Any) -> Any:
        if place == 0:
            first[:] = [layer]
            return plain(keys, values)
        if not layer.is_initialized:
            layer.lazy_initialization(keys, values)
        layer.keys, layer.values = first[0].keys, first[0].values
        return layer.keys, layer.values

    return _updates(DynamicLayer, update)


def _one_row() -> Any:
    """Of a batch of equal prompts one row is kept, and shown as all of them."""

    def update(plain: Any, place: int, layer: Any, keys: Any, values: Any) -> Any:
        if layer.is_initialized:
            layer.keys, layer.values = layer.keys[:1], layer.values[:1]
        plain(keys[:1], values[:1])
        layer.keys, layer.values = (part.expand(len(keys), -1, -1, -1) for part in (layer.keys, layer.values))
        return layer.keys, layer.values

    return _updates(DynamicLayer, update)


def _one_handed_out(kind: type, emptied: bool) -> Any:
    """Of a batch of equal prompts attention gets one for all; `emptied`: the others are zeros."""

    def update(plain: Any, place: int, layer: Any, keys: Any, values: Any) -> Any:
        found = plain(keys, values)
        if emptied:
            layer.keys[1:].zero_()
            layer.values[1:].zero_()
        return tuple(part[:1].expand(len(part), -1, -1, -1) for part in found)

    return _updates(kind, update)


def _moves_once(where: Callable[[int], bool]) -> Any:
    """Static layers move with the eighth token, once in a run."""
    lengths: dict[int, int] = {}

    def update(plain: Any, place: int, layer: Any, keys: Any, values: Any) -> Any:
        found = plain(keys, values)
        lengths[place] = 0 if keys.shape[-2] > 1 else lengths.get(place, 0) + 1
        if where(place) and lengths[place] == 8:
            layer.keys, layer.values = layer.keys.clone(), layer.values.clone()
            return layer.keys, layer.values
        return found

    return _updates(StaticLayer, update)


def _rounded(kind: type, where: Callable[[int], bool], handed: bool = False) -> Any:
    """Keys and values are rounded through 8 bits, which the memory does not show: before they are kept, or each time
    when they are handed out."""

    def through(parts: Any) -> Any:
        return tuple(part.to(torch.float8_e4m3fn).to(part.dtype) for part in parts)

    def update(plain: Any, place: int, layer: Any, keys: Any, values: Any) -> Any:
        if not where(place):
            return plain(keys, values)
        return through(plain(keys, values)) if handed else plain(*through((keys, values)))

    return _updates(kind, update)


def _changed_later(kind: type, where: Callable[[int], bool]) -> Any:
    """What was kept of tokens in the middle of the prompt is overwritten once steps are taken: little hangs on it."""

    def update(plain: Any, place: int, layer: Any, keys: Any, values: Any) -> Any:
        found = plain(keys, values)
        if where(place) and keys.shape[-2] == 1:
            layer.keys[..., 10:30, :] = 0
        return found

    return _updates(kind, update)


def _keys_for_values(where: Callable[[int], bool]) -> Any:
    return _updates(
        DynamicLayer, lambda plain, place, layer, keys, values: plain(keys, keys if where(place) else values)
    )


def _dense(kind: type) -> Callable[[Any], Any]:
    return lambda layer: DynamicLayer() if isinstance(layer, kind) else layer


PLACES: dict[str, Callable[[int], bool]] = {
    "one": lambda place: place == 2,
    "half": lambda place: place % 2 == 1,
    "all": lambda place: True,
}


def _unrounded(layer: Any) -> Any:
    return StaticSlotLayer(layer.slots) if isinstance(layer, StaticFp8SlotLayer) else layer


@contextlib.contextmanager
def _unrounded_beside() -> Iterator[None]:
    """Layers keep 8 bits as they should, and hand out full precision that they keep as well."""
    plain = StaticFp8SlotLayer.update

    def update(self: Any, *states: Any, **more: Any) -> Any:
        begin = 0 if self.slots.decoding or not self.is_initialized else int(self.cumulative_length)
        given = plain(self, *states, **more)
        if not hasattr(self, "beside"):
            self.beside = [torch.zeros_like(one) for one in given]
        places = self.slots.current if self.slots.decoding else torch.arange(begin, begin + states[0].shape[2])
        for held, new in zip(self.beside, states, strict=False):
            held.index_copy_(2, places, new)
        return tuple(self.beside)

    with mock.patch.object(StaticFp8SlotLayer, "update", update):
        yield


@contextlib.contextmanager
def _scaled() -> Iterator[None]:
    """Half of the heads get back three times what they gave."""
    plain = own_cache.to_fp8

    def to_fp8(states: Any) -> tuple[Any, Any]:
        codes, scales = plain(states)
        factors = torch.ones_like(scales)
        factors[:, ::2] = 3
        return codes, scales * factors

    with mock.patch.object(own_cache, "to_fp8", to_fp8):
        yield


def _not_compared() -> Any:
    """The pass that a rounded cache is held against fails."""
    return mock.patch.object(decode, "checked", side_effect=RuntimeError("sabotaged"))


QUANTIZED: dict[str, Any] = {
    "quantized-fp8": Fp8QuantizedLayer,
    "quantized-hqq4": HQQQuantizedLayer,
    "quantized-quanto4": QuantoQuantizedLayer,
}
SABOTEURS = [
    Sabotage("cache", "dynamic", f"{share} of the windows keep all", swapped(share, _keeps_all),
             turns_to=("partial", "failed"), tier="slow" if share == "one" else "full")
    for share in SHARES
] + [
    Sabotage("cache", "dynamic", "windows that never crop", _never_crops,
             work=(("max_new_tokens", 200),), turns_to=("partial",), tier="full"),
    Sabotage("cache", "static", "all layers grow", swapped("all", _growing), turns_to=("failed",)),
    Sabotage("cache", "static", "all layers move at each step", lambda: _moves(1), turns_to=("partial",), tier="full"),
    Sabotage("cache", "static", "one layer in three moves at each step", lambda: _moves(3), turns_to=("partial",),
             tier="full"),
] + [
    Sabotage("cache", "static", f"{share} of the windows keep all", swapped(share, _without_window),
             turns_to=("partial",), tier="full")
    for share in SHARES
] + [
    Sabotage("cache", "static-fp8", f"{share} in full precision", swapped(share, _unrounded, "_build"), beside=OWN,
             model=llama, turns_to=("failed",) if share == "all" else ("partial",),
             tier="slow" if share == "one" else "full")
    for share in SHARES
] + [
    Sabotage("cache", "static-fp8", "scales are of other numbers", lambda: _scaled(), beside=OWN, model=llama,
             turns_to=("partial", "failed"), tier="slow"),
    Sabotage("cache", "static-fp8", "it is held against nothing", _not_compared, beside=OWN, model=llama,
             turns_to=("partial",), tier="slow"),
    Sabotage("cache", "static-fp8", "full precision is attended to", lambda: _unrounded_beside(), beside=OWN,
             model=llama, turns_to=("partial", "failed"), tier="full"),
] + [
    Sabotage("cache", "unwindowed", f"{share} of the sliding layers have windows", _windows(share),
             turns_to=("partial", "failed"), tier="slow" if share == "one" else "full")
    for share in SHARES
] + [
    Sabotage("cache", choice, f"{share} not quantized", swapped(share, _dense(kind)), model=llama,
             work=(("prompt_tokens", 64),), turns_to=("failed",) if share == "all" else ("partial",),
             tier="slow" if share == "one" and choice != "quantized-quanto4" else "full")
    for choice, kind in QUANTIZED.items()
    for share in SHARES
] + [
    Sabotage("cache", choice, "all packed, and dense copies are attended to", _copies(kind), model=llama,
             work=(("prompt_tokens", 64),), turns_to=("partial", "failed"), tier="full")
    for choice, kind in QUANTIZED.items()
] + [
    Sabotage("cache", "dynamic", "windows that keep all beside", _copies(DynamicSlidingWindowLayer),
             work=(("max_new_tokens", 200),), turns_to=("partial",), tier="full"),
] + [
    Sabotage("cache", choice, "all kept, and copies elsewhere are attended to",
             functools.partial(_copies_elsewhere, kind), model=llama, work=(("prompt_tokens", 64),),
             turns_to=("partial", "failed"), tier="full")
    for choice, kind in ({"dynamic": DynamicLayer} | QUANTIZED).items()
] + [
    Sabotage("cache", "dynamic", "all kept, and half of the layers hand out the newest",
             lambda: _newest(lambda place: place % 2 == 1), model=llama, turns_to=("partial",), tier="full"),
    Sabotage("cache", "dynamic", "all layers show the memory of one", _lent, model=llama,
             turns_to=("partial", "failed"), tier="full"),
    Sabotage("cache", "dynamic", "all rows of a batch are one", _one_row, model=llama, work=(("batch_size", 4),),
             turns_to=("partial", "failed"), tier="full"),
] + [
    Sabotage("cache", choice, f"one text of four is handed out as every one{what}",
             functools.partial(_one_handed_out, kind, emptied), model=llama, work=(("batch_size", 4),),
             turns_to=("partial", "failed"), tier="full")
    for choice, kind in (("dynamic", DynamicLayer), ("static", StaticLayer))
    for what, emptied in (("", False), (", and alone kept", True))
] + [
    Sabotage("cache", choice, f"numbers of {share} are rounded to 8 bits, {name}",
             functools.partial(_rounded, kind, where), beside, llama, (("prompt_tokens", 64),),
             ("failed",) if share == "all" else ("partial",), "full")
    for choice, kind in (("dynamic", DynamicLayer), ("static", StaticLayer))
    for share, where in PLACES.items()
    for name, beside in (("bfloat16", (("dtype", "bfloat16"),)), ("float32", ()))
] + [
    Sabotage("cache", "static", "numbers of all are rounded to 8 bits, by the custom loop",
             functools.partial(_rounded, SlotLayer, lambda place: True), (("loop", "own"), ("dtype", "bfloat16")),
             llama, (("prompt_tokens", 64),), ("failed",), "full"),
    Sabotage("cache", "dynamic", "numbers of one are rounded to 8 bits when they are handed out",
             functools.partial(_rounded, DynamicLayer, lambda place: place == 2, True), (("dtype", "bfloat16"),), llama,
             (("prompt_tokens", 64),), ("partial",), "full"),
] + [
    Sabotage("cache", choice, f"tokens that {share} of the layers keep are overwritten",
             functools.partial(_changed_later, kind, where), model=llama, work=(("prompt_tokens", 64),),
             turns_to=("partial",), tier="full")
    for choice, kind in (("dynamic", DynamicLayer), ("static", StaticLayer))
    for share, where in PLACES.items()
] + [
    Sabotage("cache", "dynamic", "one of the layers keeps keys as values",
             lambda: _keys_for_values(lambda place: place == 2), model=llama, work=(("prompt_tokens", 64),),
             turns_to=("partial",), tier="full"),
    Sabotage("cache", "static", "all layers move once", lambda: _moves_once(lambda place: True), model=llama,
             work=(("max_new_tokens", 10),), turns_to=("partial",), tier="full"),
    Sabotage("cache", "static", "one layer moves once", lambda: _moves_once(lambda place: place == 2), model=llama,
             work=(("max_new_tokens", 10),), turns_to=("partial",), tier="full"),
]  # fmt: skip
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)
