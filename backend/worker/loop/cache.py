"""A static KV cache whose decode step is the same for every token: no branch, no shape and no address changes.

transformers' static sliding-window layer asks the host whether the window is full, which no captured graph can do, and
then moves every key and value each step. Here the window is a ring buffer: a new token overwrites the one that just
left it, and a mask on the device says which slots are filled.

In 8 bits, keys and values are float8_e4m3fn with a scale for each token and head. An attention kernel may read them as
they lie; the model's own attention gets those of one layer at a time in full precision.
"""

from collections.abc import Iterator
from typing import Any

import torch
from transformers import StaticCache
from transformers.cache_utils import (
    LinearAttentionAndStaticFullAttentionLayer,
    LinearAttentionAndStaticSlidingWindowAttentionLayer,
    LinearAttentionLayer,
    StaticLayer,
    StaticSlidingWindowLayer,
)

from tokendyno.backend.errors import InputError


def fixed_zeros(device: Any, *shape: int, dtype: torch.dtype = torch.long) -> Any:
    """Zeros that never move: compiled and captured graphs may hold their address."""
    tensor = torch.zeros(*shape, dtype=dtype, device=device)
    torch._dynamo.mark_static_address(tensor)
    return tensor


class StaticSlotCache(StaticCache):  # type: ignore[misc]
    """A `StaticCache` of such layers for texts of up to `length` tokens.

    eight_bits     keys and values are rounded to float8_e4m3fn
    undo           how many decode steps `rollback` can undo at most
    full, sliding  the slots shared by the layers of that kind, None where there are none
    additive       dtype of masks that attention adds to its scores; None: it takes boolean ones
    counters       (3,) int64 on the device: the current slot of full and of sliding, and `step`
    """

    def __init__(self, config: Any, max_cache_len: int, eight_bits: bool = False, undo: int = 0) -> None:
        super().__init__(config=config, max_cache_len=max_cache_len)
        self.length, self.eight_bits, self.undo = max_cache_len, eight_bits, undo
        self._overwritten: list[Overwritten] = []
        self.additive: Any = None
        self.counters: Any = None
        self.sizes: Any = None
        self.full: LayerSlots | None = None
        self.sliding: LayerSlots | None = None
        for i, layer in enumerate(self.layers):
            self.layers[i] = self._own(layer)

    def _own(self, layer: Any) -> Any:
        """Our replacement for a layer of transformers' static cache."""
        kind = type(layer)
        if kind is LinearAttentionLayer:
            return layer  # its states take no slots, and transformers updates them in place
        if issubclass(kind, StaticSlidingWindowLayer):
            slots = self.sliding = self.sliding or LayerSlots(self, 1, layer.max_cache_len)
        else:
            slots = self.full = self.full or LayerSlots(self, 0, layer.max_cache_len)
        known = kind is StaticLayer if self.eight_bits else kind in SLOT_LAYERS
        if not known or slots.size != layer.max_cache_len:
            raise InputError(
                "The custom decode loop does not support all of this model's cache layers. Use loop=generate."
            )
        return (StaticFp8SlotLayer if self.eight_bits else SLOT_LAYERS[kind])(layer, slots)

    @property
    def slots(self) -> "list[LayerSlots]":
        """Those of full attention and of the sliding window, where the model has them."""
        return [slots for slots in (self.full, self.sliding) if slots is not None]

    @property
    def step(self) -> Any:
        """(1,) int64, on the device: decode steps since the prompt."""
        return self.counters[2:]

    def reset(self) -> None:
        super().reset()
        for slots in self.slots:
            slots.decoding = False

    def begin(self, mask: Any) -> None:
        """The prompt, with `mask` (B, P), is in the cache: the next update is a decode step."""
        if self.counters is None:
            sizes = [slots.size if slots is not None else 1 for slots in (self.full, self.sliding)]
            self.counters, self.sizes = fixed_zeros(mask.device, 3), fixed_zeros(mask.device, 3)
            self.sizes.copy_(torch.tensor([*sizes, 1 << 62]))
        self.counters.zero_()
        for slots in self.slots:
            slots.begin(mask)
            slots.decoding = True
        if self.undo and not self._overwritten:
            self._overwritten = list(self._may_be_overwritten())

    def replayed(self, tokens: int) -> None:
        """After a captured pass read a prompt of so many tokens: set what the model's own code sets on the host."""
        for layer in self.layers:
            if isinstance(layer, SlotLayer):
                layer.empty = False
            if isinstance(layer, StaticSlidingWindowLayer):
                layer.cumulative_length_int = tokens
            if isinstance(layer, LinearAttentionLayer):
                initialized = [i for i, done in layer.is_conv_states_initialized.items() if done]
                layer.has_previous_state.update(dict.fromkeys(initialized, True))
        for slots in self.slots:
            slots.decoding = True

    def advance(self) -> None:
        """After a decode step."""
        self.counters.add_(1).remainder_(self.sizes)

    def keep(self) -> None:
        """Before a decode step: save what it may overwrite, if it may be undone."""
        for overwritten in self._overwritten:
            overwritten.keep(self.step)

    def _may_be_overwritten(self) -> "Iterator[Overwritten]":
        """What a decode step may overwrite, other than slots that were not filled."""
        for slots in self.slots:
            yield Overwritten(self.undo, slots.filled, slots, 1, ahead=1)  # the end of a step counts the next one
        for layer in self.layers:
            if isinstance(layer, StaticSlidingWindowLayer):
                yield from (Overwritten(self.undo, tensor, layer.slots, 2) for tensor in (layer.keys, layer.values))
            for states in (getattr(layer, "conv_states", {}), getattr(layer, "recurrent_states", {})):
                yield from (Overwritten(self.undo, state) for state in states.values() if state is not None)

    def rollback(self, steps: int) -> None:
        """Undo decode steps as if they had never been taken. ValueError for more than were taken, or than `undo`."""
        if not 0 <= steps <= min(self.undo, int(self.step)):
            raise ValueError(f"{steps} steps cannot be undone: {int(self.step)} were taken, and {self.undo} are kept.")
        for _ in range(steps):
            self.counters.sub_(1).remainder_(self.sizes)
            for overwritten in self._overwritten:
                overwritten.restore(self.step)
        for slots in self.slots:
            slots.add()


class LayerSlots:
    """The slots of all layers that hold `size` tokens: which are filled, and which one the next token is written to.

    filled    (B, size) bool on the device: slots that hold a token; padding does not count
    added     (B, 1, 1, size) on the device: the same as a mask that attention adds to its scores, 0 or the least number
              of the cache's `additive` dtype; None where that is None
    turns     int32 zeros on the device, in which an attention kernel counts its finished programs
    decoding  whether the layers write one token at `current`, or a prompt as in transformers
    """

    def __init__(self, cache: StaticSlotCache, number: int, size: int) -> None:
        self.cache, self._number, self.size = cache, number, size
        self.decoding = False
        self.filled: Any = None
        self.added: Any = None
        self.turns: Any = None

    @property
    def current(self) -> Any:
        """(1,) int64 on the device: the slot of this step's token. A fresh view each time, for torch.compile."""
        return self.cache.counters[self._number : self._number + 1]

    @property
    def mask(self) -> Any:
        """(B, 1, 1, size), as attention takes it."""
        return self.filled[:, None, None] if self.added is None else self.added

    def begin(self, mask: Any) -> None:
        """Start after a prompt with `mask` (B, P), 0 at padding. The slots hold its last `size` tokens in order."""
        tokens = mask.shape[1]
        if self.filled is None:
            self.filled = fixed_zeros(mask.device, mask.shape[0], self.size, dtype=torch.bool)
            self.turns = fixed_zeros(mask.device, 1024, dtype=torch.int32)
        self.current.fill_(tokens if tokens < self.size else 0)
        self.filled.zero_()
        last = mask[:, -self.size :].bool()
        self.filled[:, : last.shape[1]] = last
        if self.added is None and (dtype := self.cache.additive) is not None:
            self.added = fixed_zeros(mask.device, mask.shape[0], 1, 1, self.size, dtype=dtype)
        self.add()

    def add(self) -> None:
        """Set `added` from `filled`."""
        if self.added is not None:
            self.added.zero_().masked_fill_(~self.filled[:, None, None], torch.finfo(self.added.dtype).min)

    def fill(self) -> None:
        """Count the current slot as filled: before the step that writes it."""
        self.filled.index_fill_(1, self.current, True)
        if self.added is not None:
            self.added.index_fill_(3, self.current, 0.0)


class SlotLayer:
    """A layer that writes a token's keys and values into the current slot, in place, while it decodes.

    empty  nothing was written since the last reset. The host keeps track of that: to make the mask of a prompt it must
           not ask the device, which is impossible while a graph is captured
    """

    keys: Any
    values: Any
    empty = True

    def __init__(self, layer: Any, slots: LayerSlots) -> None:
        """In place of `layer`, one of transformers' without tensors yet."""
        vars(self).update(vars(layer))
        self.slots = slots

    def get_seq_length(self) -> Any:
        """Tokens of the prompt and of decode steps so far, from which models with learned positions count on."""
        if self.empty:
            return 0
        read = super().get_seq_length()  # type: ignore[misc]
        return read + self.slots.cache.step[0] if self.slots.decoding else read

    def reset(self) -> None:
        super().reset()  # type: ignore[misc]
        self.empty = True

    def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Shapes (B, heads, tokens, head size); returns the keys and values to attend to."""
        if not self.slots.decoding:
            self.empty = False
            pair: tuple[Any, Any] = super().update(key_states, value_states, *args, **kwargs)  # type: ignore[misc]
            return pair
        self.keys.index_copy_(2, self.slots.current, key_states)
        self.values.index_copy_(2, self.slots.current, value_states)
        return self.keys, self.values


class StaticSlotLayer(SlotLayer, StaticLayer):  # type: ignore[misc]
    """Full attention: tokens in order, one per slot."""


class RingSlotLayer(SlotLayer, StaticSlidingWindowLayer):  # type: ignore[misc]
    """A sliding window as a ring buffer."""


class HybridSlotLayer(SlotLayer, LinearAttentionAndStaticFullAttentionLayer):  # type: ignore[misc]
    """Full attention beside states of linear attention or of convolutions."""


class HybridRingSlotLayer(SlotLayer, LinearAttentionAndStaticSlidingWindowAttentionLayer):  # type: ignore[misc]
    """A sliding window beside such states."""


SLOT_LAYERS = {
    StaticLayer: StaticSlotLayer,
    StaticSlidingWindowLayer: RingSlotLayer,
    LinearAttentionAndStaticFullAttentionLayer: HybridSlotLayer,
    LinearAttentionAndStaticSlidingWindowAttentionLayer: HybridRingSlotLayer,
}
"""By the class of transformers' layer."""

FP8_LARGEST, FP8_LEAST = 448.0, 1e-12
"""The largest number of float8_e4m3fn, and the least that is taken for the largest number of a head."""


def to_fp8(states: Any) -> tuple[Any, Any]:
    """States (B, heads, tokens, head size) -> float8_e4m3fn, and the scale of each token and head, float32."""
    scales = states.float().abs().amax(-1).clamp(min=FP8_LEAST) / FP8_LARGEST
    return (states.float() / scales[..., None]).to(torch.float8_e4m3fn), scales


class StaticFp8SlotLayer(StaticSlotLayer):
    """Full attention to keys and values in 8 bits; `key_scales`, `value_scales`: (B, heads, slots) float32."""

    key_scales: Any
    value_scales: Any

    def lazy_initialization(self, key_states: Any, value_states: Any) -> None:
        super().lazy_initialization(*(s[..., :1, :].to(torch.float8_e4m3fn) for s in (key_states, value_states)))
        self.dtype = key_states.dtype
        self.key_scales, self.value_scales = (
            fixed_zeros(self.device, *codes.shape[:3], dtype=torch.float32) for codes in (self.keys, self.values)
        )

    def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        if self.slots.decoding:
            slots = self.slots.current
        else:
            tokens, self.empty = key_states.shape[2], False
            slots = torch.arange(tokens, device=self.device) + self.cumulative_length
            self.cumulative_length.add_(tokens)
        stored = (self.keys, self.key_scales), (self.values, self.value_scales)
        for (codes, scales), states in zip(stored, (key_states, value_states), strict=True):
            new_codes, new_scales = to_fp8(states)
            codes.view(torch.uint8).index_copy_(2, slots, new_codes.view(torch.uint8))
            scales.index_copy_(2, slots, new_scales)
        keys, values = (codes.float().mul_(scales[..., None]).to(self.dtype) for codes, scales in stored)
        return keys, values


class Overwritten:
    """The contents of a tensor before each of the last `steps` decode steps overwrote them: along `dim`, in the current
    slot of `slots` or so many slots `ahead`. Without slots: all of the tensor, which takes `steps` times its memory."""

    def __init__(self, steps: int, tensor: Any, slots: LayerSlots | None = None, dim: int = 0, ahead: int = 0) -> None:
        self._tensor, self._slots, self._dim, self._ahead = tensor, slots, dim, ahead
        contents = self._contents()
        self._saved = contents.new_empty((steps, *contents.shape))

    def _slot(self, slots: LayerSlots) -> Any:
        return (slots.current + self._ahead) % slots.size

    def _contents(self) -> Any:
        return self._tensor if self._slots is None else self._tensor.index_select(self._dim, self._slot(self._slots))

    def keep(self, step: Any) -> None:
        """Save the contents before that step, (1,) int64."""
        self._saved.index_copy_(0, step % len(self._saved), self._contents()[None])

    def restore(self, step: Any) -> None:
        """Put back the contents of before that step, to which the counters have returned."""
        saved = self._saved.index_select(0, step % len(self._saved))[0]
        if self._slots is None:
            self._tensor.copy_(saved)
        else:
            self._tensor.index_copy_(self._dim, self._slot(self._slots), saved)
