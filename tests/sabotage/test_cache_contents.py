"""Caches in bfloat16, and quantized ones, that hold another token than a pass over the text would give, or one of
another place."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from transformers.cache_utils import DynamicLayer, StaticSlidingWindowLayer

from backend.worker.loop.cache import LayerSlots, RingSlotLayer
from backend.worker.loop.step import Step
from tests.sabotage.saboteur import Sabotage, tests_of
from tests.sabotage.small_models import llama
from tests.sabotage.test_cache import QUANTIZED

OWN = (("loop", "own"),)
CHUNKS = (*OWN, ("prefill", "chunks-512"))


@contextlib.contextmanager
def _a_token_is_lost() -> Iterator[None]:
    """The last but one of the prompt, in layers without a window."""
    plain = DynamicLayer.update

    def update(self: Any, keys: Any, values: Any, *more: Any, **rest: Any) -> Any:
        if type(self) is DynamicLayer and keys.shape[-2] > 1:
            keys, values = keys.clone(), values.clone()
            keys[..., -2, :], values[..., -2, :] = 0, 0
        return plain(self, keys, values, *more, **rest)

    with mock.patch.object(DynamicLayer, "update", update):
        yield


@contextlib.contextmanager
def _one_further() -> Iterator[None]:
    """Each step believes to be at the next position."""
    plain = Step._begin

    def begin(self: Any, *args: Any, **more: Any) -> None:
        plain(self, *args, **more)
        self.positions.add_(1)

    with mock.patch.object(Step, "_begin", begin):
        yield


@contextlib.contextmanager
def _chunks_alone() -> Iterator[None]:
    """No chunk of a prompt sees those before it."""
    plain = Step._read

    def read(self: Any, ids: Any, mask: Any, positions: Any) -> Any:
        model = self._model

        def call(**given: Any) -> Any:
            before = given["attention_mask"].shape[1] - given["input_ids"].shape[1]
            seen = given["attention_mask"].clone()
            seen[:, :before] = 0
            return model(**given | {"attention_mask": seen})

        self._model = call
        try:
            return plain(self, ids, mask, positions)
        finally:
            self._model = model

    with mock.patch.object(Step, "_read", read):
        yield


@contextlib.contextmanager
def _rings_turned() -> Iterator[None]:
    """After a prompt a window's keys lie one slot further than what is said of them."""
    plain = LayerSlots.begin

    def begin(self: Any, mask: Any) -> None:
        plain(self, mask)
        for layer in self._cache.layers:
            if isinstance(layer, RingSlotLayer) and layer.slots is self:
                layer.keys.copy_(layer.keys.roll(1, 2))

    with mock.patch.object(LayerSlots, "begin", begin):
        yield


@contextlib.contextmanager
def _shorter() -> Iterator[None]:
    """Windows of fixed memory have a slot fewer."""
    plain = StaticSlidingWindowLayer.__init__

    def begin(self: Any, max_cache_len: int, sliding_window: int, **more: Any) -> None:
        plain(self, max_cache_len - 1, sliding_window - 1, **more)

    with mock.patch.object(StaticSlidingWindowLayer, "__init__", begin):
        yield


@contextlib.contextmanager
def _packed_elsewhere(kind: Any) -> Iterator[None]:
    """Tokens are packed in the places of their neighbours."""
    plain = kind._quantize

    def pack(self: Any, states: Any, *args: Any, **more: Any) -> Any:
        return plain(self, states.roll(1, -2).contiguous(), *args, **more)

    with mock.patch.object(kind, "_quantize", pack):
        yield


def _of(
    choice: str, manner: str, patch: Callable[[], Any], beside: Any = (), tier: Any = "full", **work: int
) -> Sabotage:
    return Sabotage("cache", choice, manner, patch, beside, work=tuple(work.items()), turns_to=("partial",), tier=tier)


SABOTEURS = [
    *(
        Sabotage("cache", choice, "tokens lie in their neighbours' places", functools.partial(_packed_elsewhere, kind),
                 model=llama, work=(("prompt_tokens", 64),), turns_to=("partial", "failed"), tier="slow")
        for choice, kind in QUANTIZED.items()
    ),
    _of("dynamic", "a token of the prompt is lost", _a_token_is_lost, tier="slow", prompt_tokens=100),
    _of("static", "steps are one position further", _one_further, OWN, tier="slow", max_new_tokens=24),
    _of("static", "chunks of a prompt do not see each other", _chunks_alone, CHUNKS, prompt_tokens=700),
    _of("static", "windows are turned", _rings_turned, OWN, prompt_tokens=300),
    _of("static", "windows are turned that are not full", _rings_turned, OWN, prompt_tokens=20),
    _of("static", "windows have a slot fewer", _shorter, prompt_tokens=300),
]  # fmt: skip
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)
