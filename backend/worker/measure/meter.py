"""Takes the time of each token at the moment it exists, and the bytes of the KV cache then.

`generate` calls its stopping criteria right after it has chosen a token. On a CPU a clock is read then; on CUDA an
event is recorded behind the token, and its id is copied later, by another thread on another stream. The custom loop
takes an `event` as soon as a step is in the stream, and calls `tell` once the token is read, a few steps later.
"""

import time
from typing import Any, NamedTuple

import torch
from transformers import StoppingCriteria
from transformers.cache_utils import DynamicCache, DynamicSlidingWindowLayer

from tokendyno.backend.worker.prove.tensor_bytes import CacheBytes, cache_bytes, layer_bytes


def moment(cuda: bool) -> Any:
    """Now, in seconds; on CUDA an event in the current stream, recorded without waiting for the device."""
    if not cuda:
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def seconds_between(begin: Any, end: Any) -> float:
    return float(end - begin) if isinstance(begin, float) else float(begin.elapsed_time(end)) / 1e3


class TokenRow(NamedTuple):
    """One token as it was measured; `event`: its `moment`; `token`: its id, 0 where `generate` keeps it."""

    event: Any
    token: int
    kv: CacheBytes
    memory_bytes: int


def sliding_layers(config: Any) -> list[bool]:
    """For each layer with a KV cache, whether it has a sliding window, as transformers itself reads the config."""
    fresh = DynamicCache(config=config.get_text_config(decoder=True))
    return [isinstance(layer, DynamicSlidingWindowLayer) for layer in fresh.layers]


class Meter(StoppingCriteria):  # type: ignore[misc]
    """Measures one generation. The generating thread appends to `rows`; other threads read a prefix of it.

    Tokens of one step (speculation) are rows with the same event and with the bytes that the cache held after it.

    clock     how times are taken, for the user
    launched  steps whose work was given to the device; more than `steps` where tokens are read late
    stop      asked at each token: True ends the generation with this token
    copied    `generate` runs on CUDA: ids are copied in batches, on a stream of their own
    """

    clock = "host clock after the step"

    def __init__(
        self,
        cache: Any,
        sliding: list[bool],
        batch_size: int,
        sampler: Any,
        stop: Any,
        prompt_tokens: int = 0,
        cuda: bool = False,
        copied: bool = False,
    ) -> None:
        self.rows: list[TokenRow] = []
        self.steps = self.launched = 0
        self._cuda = cuda
        if cuda:
            self.clock = "CUDA events"
        self._length = prompt_tokens
        self._cache, self._sliding, self._sampler, self._stop = cache, sliding, sampler, stop
        device = "cuda" if copied else "cpu"
        self._continue = torch.zeros(batch_size, dtype=torch.bool, device=device)
        self._finished = torch.ones(batch_size, dtype=torch.bool, device=device)
        self._stream = torch.cuda.Stream() if copied else None
        if copied:
            with torch.cuda.stream(self._stream):
                self._continue.cpu()  # its first use takes memory, and time that is no token's
        self._newest: tuple[int, Any, Any] | None = None  # of `generate`: rows so far, ids (B, length), their event
        self._ready: tuple[int, Any, Any] | None = None
        self._groups: list[tuple[bool, Any, int]] = []
        self._counted_at = 0
        self.begin: Any = None

    def start(self) -> None:
        self.begin = moment(self._cuda)

    # --- told by `generate` -----------------------------------------------------------------------

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """Shapes: input_ids (B, length so far); returns (B,) bool, True = finished."""
        event, length = moment(self._cuda), input_ids.shape[1]
        new = length - self._length if self._length else 1
        self._length, self.steps = length, self.steps + 1
        self.launched = self.steps
        row = TokenRow(event, 0, self._cache_bytes(), self._sampler.latest)
        self._newest = len(self.rows) + new, input_ids, event  # before its rows: `ready` looks in the other order
        self.rows += [row] * new
        return self._finished if self._stop() else self._continue

    # --- told by the custom loop: see `loop.TokenMeter` -------------------------------------------

    def event(self) -> Any:
        """Now: a step was launched."""
        self.launched += 1
        return moment(self._cuda)

    def tell(self, event: Any, ids: list[int]) -> None:
        """The tokens that existed at `event`, one a row; that of sequence 0 is kept."""
        self.steps += 1
        self.rows.append(TokenRow(event, ids[0], self._cache_bytes(), self._sampler.latest))

    def stopping(self) -> bool:
        return bool(self._stop())

    # --- the cache --------------------------------------------------------------------------------

    def release(self) -> None:
        """Let go of the cache; the rows stay."""
        self._cache, self._groups = None, []

    def _cache_bytes(self) -> CacheBytes:
        """Bytes in the cache's tensors now. Where layers of one kind are equally large, one of each kind is read and
        multiplied: all are looked at for the first two tokens and then every 64 tokens."""
        n = len(self.rows)
        if n < 2 or n - self._counted_at >= 64:
            self._counted_at, self._groups = n, self._grouped()
        return cache_bytes(self._groups)

    def _grouped(self) -> list[tuple[bool, Any, int]]:
        """(has a sliding window, a layer, how many are like it)."""
        layers = list(zip(self._sliding, self._cache.layers, strict=False))
        kinds: dict[tuple[bool, type], list[Any]] = {}
        for slides, layer in layers:
            kinds.setdefault((slides, type(layer)), []).append(layer)
        if any(len(set(map(layer_bytes, kind))) > 1 for kind in kinds.values()):
            return [(slides, layer, 1) for slides, layer in layers]
        return [(slides, kind[0], len(kind)) for (slides, _), kind in kinds.items()]

    # --- read by another thread ---------------------------------------------------------------------

    def ready(self) -> int:
        """How many rows, from the first, can be read now. May wait for the device, never for the next token."""
        count, self._ready = len(self.rows), self._newest
        if self._stream is not None and self._ready is not None:
            self._ready[2].synchronize()
        return count

    def seconds(self, row: TokenRow) -> float:
        """When a row's token existed, since `start`."""
        return seconds_between(self.begin, row.event)

    def tokens(self, first: int, end: int) -> list[int]:
        """Ids of tokens `first` to `end`, which must be within the latest `ready`."""
        if self._ready is None:
            return [row.token for row in self.rows[first:end]]
        count, ids, _ = self._ready
        offset = ids.shape[1] - count
        with torch.cuda.stream(self._stream):
            read: list[int] = ids[0, offset + first : offset + end].tolist()
        return read


class PassMeter(Meter):
    """Takes the time after each forward pass without a cache. A pass is a row, as if it were a token with the id 0."""

    clock = "host clock after the pass"

    def __init__(self, sampler: Any, cuda: bool) -> None:
        super().__init__(None, [], 1, sampler, None, cuda=cuda)

    def tick(self) -> None:
        event = moment(self._cuda)
        if self._cuda:
            event.synchronize()
        self.launched += 1
        self.rows.append(TokenRow(event, 0, CacheBytes(0, 0), self._sampler.latest))
