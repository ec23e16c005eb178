"""A static cache whose decode step is the same at every token: no branch, no shape and no address changes.

transformers' static layer for a sliding window asks the host whether the window is full, and once it is, rolls every
key and value by one each step. A captured graph can do neither. Here the window is a ring: a token's keys take the
place of those that just left the window, and a mask on the device says which places are filled. Attention does not
mind the order of keys.
"""

from typing import Any

import torch
from transformers import StaticCache
from transformers.cache_utils import StaticLayer, StaticSlidingWindowLayer

from backend.errors import InputError

_INSTEAD = " Take loop=generate."


class Place:
    """Where the next token of every row goes in layers that hold `size` tokens.

    filled    (B, size) bool, on the device: places that hold a token, padding left out
    turns     int32 zeros, on the device, with which a kernel of attention counts its programs
    decoding  whether the layers write one token at `slot`, or a prompt as transformers does
    """

    def __init__(self, cache: "SteadyCache", number: int, size: int) -> None:
        self._cache, self._number, self.size = cache, number, size
        self.decoding = False
        self.filled: Any = None
        self.turns: Any = None

    @property
    def slot(self) -> Any:
        """(1,) int64, on the device: a view, made anew where a compiler looks on."""
        return self._cache.counters[self._number : self._number + 1]

    def begin(self, mask: Any) -> None:
        """Stand after a prompt whose 2D `mask` (B, P) is 0 at padding. Its last `size` tokens lie in order."""
        tokens = mask.shape[1]
        if self.filled is None:
            self.filled = torch.zeros(mask.shape[0], self.size, dtype=torch.bool, device=mask.device)
            self.turns = torch.zeros(256, dtype=torch.int32, device=mask.device)
            for steady in (self.filled, self.turns):
                torch._dynamo.mark_static_address(steady)
        self.slot.fill_(tokens if tokens < self.size else 0)
        self.filled.zero_()
        last = mask[:, -self.size :].bool()
        self.filled[:, : last.shape[1]] = last

    def take(self) -> None:
        """Before a decode step, or at the end of the one before: the place of its token counts as filled."""
        self.filled.index_fill_(1, self.slot, True)


def _put(layer: Any, keys: Any, values: Any) -> tuple[Any, Any]:
    """The one token of a decode step."""
    layer.keys.index_copy_(2, layer.place.slot, keys)
    layer.values.index_copy_(2, layer.place.slot, values)
    return layer.keys, layer.values


class StaticPlacedLayer(StaticLayer):  # type: ignore[misc]
    """Full attention: every place of the cache, one after the other."""

    def __init__(self, place: Place) -> None:
        super().__init__(max_cache_len=place.size)
        self.place = place

    def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Shapes: (B, heads, tokens, head size); returns what attention shall look at."""
        if self.place.decoding:
            return _put(self, key_states, value_states)
        pair: tuple[Any, Any] = super().update(key_states, value_states, *args, **kwargs)
        return pair


class StaticRingLayer(StaticSlidingWindowLayer):  # type: ignore[misc]
    """A sliding window as a ring."""

    def __init__(self, place: Place) -> None:
        super().__init__(max_cache_len=place.size, sliding_window=place.size)
        self.place = place

    def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Shapes: (B, heads, tokens, head size); returns what attention shall look at."""
        if self.place.decoding:
            return _put(self, key_states, value_states)
        pair: tuple[Any, Any] = super().update(key_states, value_states, *args, **kwargs)
        return pair


class SteadyCache(StaticCache):  # type: ignore[misc]
    """A `StaticCache` of such layers for texts of up to `length` tokens.

    full, sliding   the places that its layers of that kind share, None where there are none
    counters        int64, on the device, all one larger after every step: the slots of both, and `count`
    sizes           where each of them begins anew
    """

    def __init__(self, config: Any, max_cache_len: int) -> None:
        super().__init__(config=config, max_cache_len=max_cache_len)
        self.length = max_cache_len
        self.counters: Any = None
        self.sizes: Any = None
        self.full: Place | None = None
        self.sliding: Place | None = None
        for i, layer in enumerate(self.layers):
            if isinstance(layer, StaticSlidingWindowLayer):
                self.sliding = self.sliding or Place(self, 1, layer.max_cache_len)
                if self.sliding.size != layer.max_cache_len:
                    raise InputError("The own loop knows one length of sliding window, this model has two." + _INSTEAD)
                self.layers[i] = StaticRingLayer(self.sliding)
            elif type(layer) is StaticLayer:
                self.full = self.full or Place(self, 0, layer.max_cache_len)
                self.layers[i] = StaticPlacedLayer(self.full)
            else:
                raise InputError(f"The own loop does not know cache layers of class {type(layer).__name__}." + _INSTEAD)

    @property
    def places(self) -> list[Place]:
        return [place for place in (self.full, self.sliding) if place is not None]

    def begin(self, mask: Any) -> None:
        """The prompt is in the cache: the next update is a decode step."""
        if self.counters is None:
            sizes = [place.size if place is not None else 1 for place in (self.full, self.sliding)]
            self.counters = torch.zeros(3, dtype=torch.long, device=mask.device)
            self.sizes = torch.tensor([*sizes, 1 << 62], device=mask.device)
            for steady in (self.counters, self.sizes):
                torch._dynamo.mark_static_address(steady)
        self.counters.zero_()
        for place in self.places:
            place.begin(mask)
            place.decoding = True

    @property
    def count(self) -> Any:
        """(1,) int64, on the device: decode steps since the prompt."""
        return self.counters[2:]

    def advance(self) -> None:
        """After a decode step."""
        self.counters.add_(1).remainder_(self.sizes)

    def reset(self) -> None:
        super().reset()
        for place in self.places:
            place.decoding = False
