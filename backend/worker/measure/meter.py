"""Takes the time of each token at the moment it exists, inside `generate`, and the bytes of the KV cache.

`generate` calls its stopping criteria right after it has chosen a token. On a CPU the token exists then, and a clock
is read. On CUDA it exists once the device gets there: see `clock.CudaMeter`.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from transformers import StoppingCriteria
from transformers.cache_utils import DynamicCache, DynamicSlidingWindowLayer

from tokendyno.backend.worker.prove.tensor_bytes import HeldBytes, held_bytes, layer_bytes

COUNT_ALL_EVERY = 64


@dataclass(slots=True)
class TokenRow:
    """One token as it was measured; `event` is a time in seconds or a CUDA event, depending on the meter's clock."""

    event: Any
    token: int
    kv: HeldBytes
    memory_bytes: int


def sliding_layers(config: Any) -> list[bool]:
    """For each layer with a KV cache, whether it has a sliding window, as transformers itself reads the config."""
    fresh = DynamicCache(config=config.get_text_config(decoder=True))
    return [isinstance(layer, DynamicSlidingWindowLayer) for layer in fresh.layers]


class Meter(StoppingCriteria):  # type: ignore[misc]
    """Measures one generation. The generating thread appends to `rows`; other threads read a prefix of it.

    Tokens of one step (speculation) are rows with the same event and with the bytes that the cache held after it.

    launched       steps whose work was given to the device; more than `steps` where tokens are read late
    stop           asked at each token: True ends the generation with this token
    moved          layers of the cache whose tensors were found at another address than at first: all layers of a
                   growing cache
    """

    clock = "host clock after the step"

    def __init__(
        self, cache: Any, sliding: list[bool], batch_size: int, sampler: Any, stop: Any, prompt_tokens: int = 0
    ) -> None:
        self.rows: list[TokenRow] = []
        self.steps = self.launched = 0
        self._length = prompt_tokens
        self._cache, self._sliding, self._sampler, self._stop = cache, sliding, sampler, stop
        self._go = torch.zeros(batch_size, dtype=torch.bool)
        self._end = torch.ones(batch_size, dtype=torch.bool)
        self._alike: list[tuple[bool, Any, int]] | None = None
        self._uneven, self._counted_at = False, 0
        self._addresses: dict[int, tuple[int, int]] = {}
        self.moved: set[int] = set()
        self.begin: Any = None

    def start(self) -> None:
        """Time 0 is now."""
        self.begin = time.perf_counter()

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """Shapes: input_ids (B, length so far); returns (B,) bool, True = finished."""
        event = time.perf_counter()
        new = self._new(input_ids)
        held = self._cache_bytes(), self._sampler.latest
        self.rows.extend([TokenRow(event, token, *held) for token in input_ids[0, -new:].tolist()])
        return self._end if self._stop() else self._go

    def release(self) -> None:
        """Let go of the cache; the rows stay."""
        self._cache = self._alike = None

    def _new(self, input_ids: torch.Tensor) -> int:
        """How many tokens this step generated."""
        new = input_ids.shape[1] - self._length if self._length else 1
        self._length, self.steps = input_ids.shape[1], self.steps + 1
        self.launched = self.steps
        return new

    def _cache_bytes(self) -> HeldBytes:
        """Bytes in the cache's tensors now.

        Layers of one kind are equally large, so one of each kind is read and multiplied. All layers are counted for
        the first two tokens and then every 64 tokens; a cache with uneven layers is counted whole from there on.
        """
        n = len(self.rows)
        self._note_addresses(n)
        if self._alike is None or n < 2 or n - self._counted_at >= COUNT_ALL_EVERY:
            self._counted_at = n
            return self._count_all()
        return held_bytes(self._alike)

    def _note_addresses(self, n: int) -> None:
        """Of all layers for the first two tokens, then of one layer for two tokens in turn."""
        layers = range(len(self._cache.layers))
        self._compare(layers if n < 2 or not layers else (n // 2 % len(layers),))

    def moved_layers(self) -> int:
        """How many layers have moved when the run has ended, at which all of them are looked at once more."""
        if self._cache is not None and self._addresses:
            self._compare(range(len(self._cache.layers)))
        return len(self.moved)

    def _compare(self, layers: Iterable[int]) -> None:
        for i in layers:
            keys, values = (getattr(self._cache.layers[i], name, None) for name in ("keys", "values"))
            if keys is not None and values is not None:
                address = keys.data_ptr(), values.data_ptr()
                if self._addresses.setdefault(i, address) != address:
                    self.moved.add(i)

    def _count_all(self) -> HeldBytes:
        groups: dict[tuple[bool, type], list[Any]] = {}
        for layer, slides in zip(self._cache.layers, self._sliding, strict=False):
            groups.setdefault((slides, type(layer)), []).append(layer)
        self._uneven = self._uneven or any(len(set(map(layer_bytes, group))) > 1 for group in groups.values())
        self._alike = None if self._uneven else [(key[0], group[0], len(group)) for key, group in groups.items()]
        return held_bytes((slides, layer, 1) for (slides, _), group in groups.items() for layer in group)

    def ready(self) -> int:
        """How many rows, from the first, can be read now. May wait for the device, never for the next token."""
        return len(self.rows)

    def seconds(self, row: TokenRow) -> float:
        """When a row's token existed, since `start`."""
        return float(row.event - self.begin)

    def tokens(self, first: int, end: int) -> list[int]:
        """Ids of tokens `first` to `end`, which must be within the latest `ready`."""
        return [row.token for row in self.rows[first:end]]
